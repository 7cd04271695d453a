import os
import platform
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version

from benchmarks import (
    checkpoints,
    cluster,
    commits,
    cpu,
    crowd,
    forecast,
    long_page,
    moderated,
    parallel,
    paths,
    prefixes,
    retrieval,
    startup,
    travel,
    viewers,
)
from benchmarks.harness import REPOSITORY, Result
from benchmarks.peers import compare

ALL: dict[str, Callable[[], list[Result]]] = {
    "paths": paths.results,
    "parallel": parallel.results,
    "prefixes": prefixes.results,
    "cpu": cpu.results,
    "crowd": crowd.results,
    "checkpoints": checkpoints.results,
    "commits": commits.results,
    "moderated": moderated.results,
    "startup": startup.results,
    "forecast": forecast.results,
    "travel": travel.results,
    "retrieval": retrieval.results,
    "retrieval_million": retrieval.million,
    "viewers": viewers.results,
    "long_page": long_page.results,
}
# Run only if named: one needs programs that a machine may lack, the other installs packages.
EXTRA: dict[str, Callable[[], list[Result]]] = {
    "cluster": cluster.results,
    "peers": compare.results,
}
_PACKAGES = (
    "langgraph",
    "langgraph-checkpoint-sqlite",
    "langchain-core",
    "langchain-openai",
    "openai",
    "faiss-cpu",
)
_HEADER = "| what | measured | at most | | |\n|---|---|---|---|---|"


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all of them; save the results only if all ran."""
    known = ALL | EXTRA
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"Unknown benchmark {unknown[0]}. Choose from: {', '.join(known)}.", file=sys.stderr)
        return 2
    found: list[Result] = []
    for name in names or ALL:
        for result in known[name]():
            print(result.row(), flush=True)
            found.append(result)
    if not names:
        (REPOSITORY / "benchmarks" / "RESULTS.md").write_text(_report(found), encoding="utf-8")
    return 0 if all(result.holds for result in found) else 1


def _report(found: list[Result]) -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    lines = [
        "# Results",
        "",
        f"`make bench`, {datetime.now(UTC):%Y-%m-%d}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}, {packages}.",
        "",
        "Ratios are taken within one run, against the bare openai client making the same calls, "
        "bare FAISS searching the same vectors, or a bare Starlette loop that streams the same "
        "tokens.",
        "",
        _HEADER,
        *(result.row() for result in found),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
