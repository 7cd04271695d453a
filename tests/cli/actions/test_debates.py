"""list, show, rate and export of debates that are kept, and the commands around them."""

import re
import subprocess
import sys
from pathlib import Path

from contend.debates.repository import Repository
from contend.graph.settings import AdversarialSettings
from contend.graph.state import DebateState
from contend.models.providers.weights import DEFAULT_EMBEDDING, EMBEDDINGS, weights_path
from tests.cli.support import QUESTION, ROOT, Command, debaters
from tests.support.model_server import ModelServer, Reply


def test_a_kept_debate_can_be_listed_shown_rated_and_exported(
    contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    def thinks(role: str, number: int, reply: Reply) -> Reply:
        return Reply(f"<think>A private thought.</think>{reply.text}")

    models.script = debaters(thinks)
    record = contend.ask_here("--json", "--quiet").json
    debate, short = record["id"], record["id"][:8]

    wide = contend.here("list", COLUMNS="120").out
    assert wide.splitlines()[0].split() == (
        ["ID", "Started", "Status", "Protocol", "Rounds", "Stopped", "by", "Score", "Question"]
    )
    assert all(text in wide for text in (short, "done", "max_rounds", "7.65", QUESTION[:10]))
    narrow = contend.here("list", COLUMNS="60").out
    assert max(map(len, narrow.splitlines())) <= 60
    (listed,) = contend.here("list", "--json", "--limit", "3").json
    assert (listed["id"], listed["stop_reason"]) == (debate, "max_rounds")

    shown = contend.here("show", short)
    assert (shown.code, shown.err) == (0, "")
    assert "This is proposal 1" in shown.out
    assert "✅ S1" in shown.out
    assert "🔴 S1 The cost is never estimated. (resolved)" in shown.out
    assert "Keep the monolith" in shown.out
    assert "private" not in shown.out
    assert "A private thought." in contend.here("show", short, "--thinking").out

    rated = contend.here("rate", short, "9")
    assert (rated.code, rated.err) == (0, f"Rated debate {short} 9 of 10.\n")
    facts = contend.here("show", short).out.partition("Done")[2].replace("\u00a0", " ")
    assert re.search(r"^Score +\d", facts, re.MULTILINE)
    assert re.search(r"^Your rating +9 of 10$", facts, re.MULTILINE)

    markdown = contend.here("export", short).out
    assert markdown.startswith(f"# {QUESTION}\n")
    file = tmp_path / "debate.json"
    written = contend.here("export", short, "--format", "json", "--output", str(file))
    assert written.out == ""
    assert contend.here("show", short, "--json").out.strip()
    assert '"user_rating": 9' in file.read_text("utf-8")
    refused = contend.here("export", short, "--output", str(tmp_path))
    assert refused.code == 2


def test_an_empty_house_says_how_to_begin_and_stays_empty(contend: Command) -> None:
    ended = contend.here("list")
    assert (ended.code, ended.out) == (0, "")
    assert "contend ask" in ended.err
    assert contend.here("list", "--json").json == []
    assert not contend.home.exists()


def test_doctor_names_every_fix_and_no_secret(contend: Command) -> None:
    ended = contend.here("doctor")
    assert ended.code == 0
    assert "sk-canary" not in ended.out + ended.err
    findings = {each["what"]: each for each in contend.here("doctor", "--json").json}
    assert findings["OPENAI_API_KEY"]["detail"] == "set"
    assert findings["OPENROUTER_API_KEY"]["detail"] == "not set (optional)"
    assert findings["embedded:smollm2-135m"]["fix"].startswith("contend models pull")
    assert "reachable, 2 models" in findings["ollama"]["detail"]
    assert findings["tracing"]["detail"] == "off"
    assert all(each["fix"] for each in findings.values() if each["level"] != "ok")
    assert not contend.home.exists()


def test_doctor_sees_damaged_weights(contend: Command) -> None:
    (contend.home / "models").mkdir(parents=True)
    for file in EMBEDDINGS[DEFAULT_EMBEDDING]:
        with weights_path(file, contend.home).open("wb") as sink:
            sink.truncate(file.size)
    findings = {each["what"]: each for each in contend.here("doctor", "--json").json}
    found = findings["embedded:minilm-l6"]
    assert (found["level"], "checksum" in found["detail"]) == ("problem", True)
    assert "contend models pull minilm-l6" in found["fix"]


def test_doctor_sees_a_broken_database_and_tracing(contend: Command) -> None:
    contend.home.mkdir()
    (contend.home / "contend.db").write_bytes(b"not a database" * 100)
    ended = contend.here("doctor", LANGSMITH_TRACING="true", OLLAMA_HOST="http://127.0.0.1:1")
    assert ended.code == 1
    assert "problem database" in " ".join(ended.out.split())
    assert "debates are sent to LangSmith" in ended.out
    assert "not reachable" in ended.out
    listed = contend.here("list")
    assert listed.code == 2
    assert "Cannot open the" in listed.err


def test_config_says_where_each_value_comes_from(contend: Command, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("maxRounds: 7\nminRounds: 2\n")
    arguments = ["--config", str(file), "--set", "min_rounds=4", "--model", "openai:m"]
    arguments += ["--set", "judge_model=ollama:other"]
    ended = contend.here("config", "--json", *arguments, CONTEND_MAX_RETRIES="0")
    found = ended.json["settings"]
    assert found["max_rounds"] == {"value": 7, "source": str(file)}
    assert found["min_rounds"] == {"value": 4, "source": "--set"}
    assert found["max_retries"] == {"value": 0, "source": "CONTEND_MAX_RETRIES"}
    assert found["skeptic_model"] == {"value": "openai:m", "source": "--model"}
    assert found["judge_model"] == {"value": "ollama:other", "source": "--set"}
    assert found["pause"] == {"value": "never", "source": "default"}
    shown = contend.here("config", OPENAI_API_KEY="").out
    assert "max_rounds = 5  (default)\n" in shown
    assert "context_tokens = null  (default)\n" in shown
    assert "skeptic_fallbacks = []  (default)\n" in shown
    assert "otherwise embedded:smollm2-135m (no API key is set)." in shown
    assert shown.endswith("Ollama has it, otherwise embedded:minilm-l6.\n")
    assert "OPENAI_API_KEY is set" in contend.here("config").out
    assert "Models: as set above." in contend.here("config", "-m", "openai:m").out


def test_doctor_tries_the_data_folder(contend: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for unusable in ("/proc/nope", str(tmp_path / "file" / "home")):
        ended = contend.here("doctor", CONTEND_HOME=unusable)
        assert ended.code == 1
        assert f"{unusable} is not writable" in ended.out


def test_doctor_breaks_no_word_in_a_narrow_terminal(contend: Command) -> None:
    ended = contend.here("doctor", COLUMNS="60", FORCE_COLOR="1", TERM="dumb")
    lines = [line for line in ended.out.splitlines() if str(contend.home) not in line]
    assert max(map(len, lines)) <= 60


def test_graph_models_version_and_help(contend: Command) -> None:
    drawn = contend.here("graph").out
    assert "graph TD" in drawn
    assert "judge_continue" in drawn
    assert "not downloaded" in contend.here("models", "list").out
    assert contend.here("models", "list", "--json").json[0]["pulled"] is False
    version = contend("--version")
    assert version.out.startswith("contend ")
    assert "Exit codes" in contend.here().out
    bare = contend.here("models")
    assert (bare.code, bare.err) == (0, "")
    assert "Usage: contend models" in bare.out


def test_an_id_must_be_unique(contend: Command) -> None:
    contend.home.mkdir()
    records = Repository(contend.home / "contend.db")
    for end in "12":
        seats = AdversarialSettings(judge_model="openai:m").build_seats()
        debate = f"aaaaaaaa-0000-4000-8000-00000000000{end}"
        state: DebateState = {"question": f"Question {end}?", "seats": seats}
        records.start(debate, "adversarial", state, {}, demonstration=False)
    records.close()
    for prefix in ("", "aaaaaaaa"):
        ended = contend.here("show", prefix)
        assert ended.code == 2
        assert "contend list" in ended.err
    found = contend.here("show", "aaaaaaaa-0000-4000-8000-000000000001")
    assert "Interrupted, started" in found.out
    assert "Continue with: contend resume aaaaaaaa" in found.out


def test_help_loads_nothing_heavy() -> None:
    """The process ends through the same code as any other, which must stay light as well."""
    code = (
        "import sys\n"
        "sys.argv = ['contend', '--help']\n"
        "from contend.cli.main import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "heavy = {'langgraph', 'langchain_core', 'pydantic', 'numpy'}\n"
        "sys.exit(','.join(heavy & {*sys.modules}) or 0)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
