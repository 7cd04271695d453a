"""llm-consortium: three models answer at once, and an arbiter synthesizes after each round."""

from pathlib import Path

from benchmarks.peers.driver import MODEL, QUESTION, ROUNDS, SPEAKERS, in_threads, serve


def debate() -> None:
    from llm_consortium import create_consortium

    consortium = create_consortium(
        models=[f"{MODEL}:{len(SPEAKERS)}"],
        arbiter=MODEL,
        max_iterations=ROUNDS,
        minimum_iterations=ROUNDS,
    )
    found = consortium.orchestrate(QUESTION)
    if found["metadata"]["total_iterations"] != ROUNDS:
        raise RuntimeError("llm-consortium did not run all rounds")


def main() -> None:
    # Its import fails if this folder does not exist.
    (Path.home() / ".config" / "io.datasette.llm").mkdir(parents=True, exist_ok=True)
    serve(in_threads(debate), "llm-consortium", "llm", "openai")
