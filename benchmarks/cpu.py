"""Compares a debate's CPU time with that of a bare client making the same calls."""

from statistics import median

from benchmarks.harness import Result, cpu, debate, model_process, replay

LIMIT = 3.0
_RUNS = 5


def results() -> list[Result]:
    """Measure with answers of 200 tokens, streamed one by one as from a fast model."""
    ours, bare = [], []
    with model_process("--tokens", "200", "--chunk-delay", "0.002") as server:
        cpu(debate)  # imports and caches
        calls = server.take_calls()
        cpu(lambda: replay(calls))
        for _ in range(_RUNS):
            ours.append(cpu(debate) / len(calls))
            bare.append(cpu(lambda: replay(calls)) / len(calls))
    ratio = median(mine / yardstick for mine, yardstick in zip(ours, bare, strict=True))
    note = f"{median(ours) * 1000:.0f} ms a call; the bare client {median(bare) * 1000:.0f} ms"
    return [Result("CPU per model call over the bare client", ratio, LIMIT, "x", note)]
