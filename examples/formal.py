"""A formal debate, with strict rules, formal language, explicit scoring and a winner.

python examples/formal.py openai:gpt-5-mini
python examples/formal.py openrouter:mistralai/mistral-large
"""

import asyncio
import sys

from contend import advocate, create_debate, judge, moderator

MODEL = sys.argv[1] if len(sys.argv) > 1 else "embedded:smollm2-135m"
print(f"Using {MODEL}; this takes minutes. To change it: {sys.argv[0]} MODEL", file=sys.stderr)

debate = create_debate(
    "The societal impact of artificial general intelligence",
    [
        advocate("Advocate A", "The technology offers more benefits than risks", MODEL),
        advocate("Advocate B", "The risks of the technology outweigh the benefits", MODEL),
        moderator(model=MODEL),
        judge(model=MODEL),
    ],
    {
        "debateFormat": "formal",
        "roundCount": 3,
        "openingStatementMaxTokens": 300,
        "argumentMaxTokens": 250,
        "closingStatementMaxTokens": 350,
        "scoringEnabled": True,
    },
)
record = asyncio.run(debate.result())

print(f"Ended: {record.end_reason}, after {record.duration_ms / 1000:.1f} s")
for name, score in record.scores.items():
    parts = ", ".join(f"{criterion} {value:.2f}" for criterion, value in score.breakdown.items())
    total = score.total  # None if the judge's scores could not be parsed
    print(f"{name}: no valid score" if total is None else f"{name}: {total:.2f} ({parts})")
print(f"Winner: {record.winner_name or 'nobody'}")
print(f"\n{record.summary}\n\nEvery message is in {record.output_dir}")
