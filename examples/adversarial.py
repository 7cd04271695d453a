"""A proposer drafts an answer, a skeptic attacks it, and a synthesizer writes the final one.

python examples/adversarial.py ollama:qwen3:32b
"""

import sys

import contend

MODEL = sys.argv[1] if len(sys.argv) > 1 else "embedded:smollm2-135m"
print(f"Using {MODEL}; this takes minutes. To change it: {sys.argv[0]} MODEL", file=sys.stderr)

record = contend.ask(
    "Should a team of four split its monolith into services?",
    model=MODEL,
    min_rounds=1,
    max_rounds=2,
)

print(record.final_answer)
print(f"\nStopped after round {record.total_rounds}: {record.stop_reason}")
for point in record.points.open:
    print(f"Still open ({point.severity}): {point.text}")
