"""`contend demo`: a recorded debate that ships with Contend."""

from tests.cli.support import Command
from tests.support.model_server import ModelServer


def test_the_recording_is_played_without_a_model(contend: Command, models: ModelServer) -> None:
    played = contend("demo", "--speed", "1000000")
    assert played.code == 0, played.err
    first, *_ = played.out.splitlines()
    assert first.startswith("This is a recording: embedded:qwen2.5-coder-1.5b wrote every word on")
    for sign in ("Round 2 of 2", "Proposer", "Skeptic", "Synthesizer", "contend doctor"):
        assert sign in played.out
    assert not models.calls
    assert not contend.home.exists(), "nothing is stored"
