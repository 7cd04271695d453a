"""Compares the CPU time and the wall-clock time of one debate in Contend and in other frameworks.

`python -m benchmarks peers`; it is not part of `make bench`, because it installs the frameworks.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.harness import ModelProcess, ObservedCall, Result
from benchmarks.peers.process import NotMeasured, SystemProcess, prepare_python

SECONDS = 0.25  # of a call
AT_ONCE = 20
_TOKENS = ("--tokens", "200")
_RUNS, _CROWDS = 5, 3


@dataclass(frozen=True)
class System:
    """What runs the debate: a module of this package with options, and the packages it needs."""

    name: str
    command: str
    packages: tuple[str, ...] = ()
    """Installed into a virtual environment of their own; none: this project's is used."""


_AUTOGEN = ("autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5")
# llm-consortium imports scikit-learn, but does not require it.
_CONSORTIUM = ("llm-consortium==0.8.0", "llm==0.36", "scikit-learn==1.9.1")
# MALLM requires a NumPy that newer versions of pyarrow refuse.
_MALLM = ("mallm==1.0.5", "pyarrow==19.0.1")
BASELINE = System("openai client", "openai_client")
SYSTEMS = (
    BASELINE,
    System("openai client, answers not streamed", "openai_client --whole"),
    System("aiohttp by hand", "aiohttp_by_hand"),
    System("Contend, refine", "contend"),
    System("Contend, forum", "contend --forum"),
    System("AutoGen core", "autogen", _AUTOGEN),
    System("AutoGen round robin", "autogen --in-turn", _AUTOGEN),
    System("CrewAI", "crewai", ("crewai==1.15.30",)),
    System("llm-consortium", "llm_consortium", _CONSORTIUM),
    System("MALLM", "mallm", _MALLM),
)


@dataclass
class Measured:
    """What one system took; every list holds one value per run."""

    versions: dict[str, str] = field(default_factory=dict)
    calls: int = 0
    in_a_row: int = 0
    cpu_per_call: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    over_calls: list[float] = field(default_factory=list)
    crowd: list[float] = field(default_factory=list)


def results() -> list[Result]:
    """Print a table for docs/performance.md, and what could not be measured."""
    found, skipped = measure(SYSTEMS)
    print("\n".join(table(found)))
    for name, reason in skipped.items():
        print(f"Not measured: {name}: {reason}")
    if BASELINE.name in skipped:
        raise RuntimeError("the baseline could not be measured")
    return []


def measure(systems: Sequence[System]) -> tuple[dict[str, Measured], dict[str, str]]:
    """Return what each system took, and why the others could not be measured."""
    found = {system.name: Measured() for system in systems}
    skipped: dict[str, str] = {}
    pythons: dict[str, Path] = {}
    for system in systems:
        with _skipping(system, skipped):
            pythons[system.name] = prepare_python(system.command.split()[0], system.packages)
    with _running(systems, pythons, skipped) as (server, processes):
        for _ in range(_RUNS):
            for system in _left(systems, skipped):
                with _skipping(system, skipped):
                    _measure_cpu(found[system.name], processes[system.name], server)
    with _running(systems, pythons, skipped, "--delay", str(SECONDS)) as (server, processes):
        for count in (*[1] * _RUNS, *[AT_ONCE] * _CROWDS):
            for system in _left(systems, skipped):
                with _skipping(system, skipped):
                    _measure_seconds(found[system.name], processes[system.name], server, count)
    return {system.name: found[system.name] for system in _left(systems, skipped)}, skipped


def _left(systems: Sequence[System], skipped: Mapping[str, str]) -> list[System]:
    return [system for system in systems if system.name not in skipped]


@contextmanager
def _running(
    systems: Sequence[System], pythons: Mapping[str, Path], skipped: dict[str, str], *options: str
) -> Iterator[tuple[ModelProcess, dict[str, SystemProcess]]]:
    """Start a model server and every system, which then wait, because they run in turn."""
    processes: dict[str, SystemProcess] = {}
    with ExitStack() as stack:
        server = ModelProcess(*_TOKENS, *options)
        stack.callback(server.stop)
        for system in _left(systems, skipped):
            home = Path(stack.enter_context(TemporaryDirectory(prefix="contend-peer-")))
            python, given = pythons[system.name], server.environment()
            with _skipping(system, skipped):
                process = SystemProcess(python, system.command, home, given)
                stack.callback(process.stop)
                processes[system.name] = process
        yield server, processes


@contextmanager
def _skipping(system: System, skipped: dict[str, str]) -> Iterator[None]:
    try:
        yield
    except NotMeasured as reason:
        print(f"Not measured: {system.name}: {reason}", file=sys.stderr)
        skipped[system.name] = str(reason)


def _measure_cpu(measured: Measured, process: SystemProcess, server: ModelProcess) -> None:
    server.take_calls()
    took = process.run(1)
    measured.versions, measured.calls = process.versions, len(server.take_calls())
    measured.cpu_per_call.append(took["cpu"] / measured.calls)


def _measure_seconds(
    measured: Measured, process: SystemProcess, server: ModelProcess, count: int
) -> None:
    server.take_calls()
    took = process.run(count)["seconds"]
    calls = server.take_calls()
    if len(calls) != (expected := count * measured.calls):
        raise NotMeasured(f"{count} debates made {len(calls)} calls instead of {expected}")
    if count > 1:
        measured.crowd.append(took)
        return
    chain = longest_chain(calls)
    measured.in_a_row = len(chain)
    measured.seconds.append(took)
    measured.over_calls.append(took / sum(call.ended - call.started for call in chain))


def longest_chain(calls: Sequence[ObservedCall]) -> list[ObservedCall]:
    """Return the calls that waited for one another and took longest together."""
    best: list[tuple[float, list[ObservedCall]]] = []
    for call in sorted(calls, key=lambda each: each.ended):
        before = [chain for chain in best if chain[1][-1].ended <= call.started]
        seconds, chain = max(before, key=lambda each: each[0], default=(0.0, []))
        best.append((seconds + call.ended - call.started, [*chain, call]))
    return max(best, key=lambda each: each[0])[1]


def table(found: Mapping[str, Measured]) -> list[str]:
    bare = found[BASELINE.name]
    at_once = f"{AT_ONCE} debates at once"
    return [
        "| | calls, in a row | CPU per call | one debate | over its calls in a row "
        f"| {at_once} | the same per call | versions |",
        "|---|---|---|---|---|---|---|---|",
        *(_row(name, each, bare) for name, each in found.items()),
    ]


def _row(name: str, measured: Measured, bare: Measured) -> str:
    cpu, bare_cpu = median(measured.cpu_per_call), median(bare.cpu_per_call)
    crowd, bare_crowd = median(measured.crowd), median(bare.crowd)
    cells = (
        name,
        f"{measured.calls}, {measured.in_a_row}",
        f"{cpu / bare_cpu:.2f} ({1000 * cpu:.1f} ms)",
        f"{median(measured.seconds):.2f} s",
        f"{median(measured.over_calls):.2f}",
        f"{crowd / bare_crowd:.2f} ({crowd:.1f} s)",
        f"{crowd / measured.calls / (bare_crowd / bare.calls):.2f}",
        ", ".join(f"{package} {version}" for package, version in measured.versions.items()),
    )
    return f"| {' | '.join(cells)} |"
