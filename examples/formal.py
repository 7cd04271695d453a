"""A formal debate: strict rules, formal language, explicit scoring, a winner.

python examples/formal.py openai:gpt-5-mini
python examples/formal.py openrouter:mistralai/mistral-large
"""

import asyncio
import sys

from contend.debates.creating import advocate, create_debate, judge, moderator

MODEL = sys.argv[1] if len(sys.argv) > 1 else "embedded:smollm2-135m"
print(f"{MODEL} debates; this takes minutes. Name another: {sys.argv[0]} MODEL", file=sys.stderr)

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
result = asyncio.run(debate.run())

print(f"Ended: {result.end_reason}, after {result.duration_ms / 1000:.1f} s")
for name, score in result.scores.items():
    parts = ", ".join(f"{criterion} {mark:.2f}" for criterion, mark in score["breakdown"].items())
    total = score["total"]  # None if the judge could not be read
    print(f"{name}: no score that counts" if total is None else f"{name}: {total:.2f} ({parts})")
print(f"Winner: {result.winner or 'nobody'}")
print(f"\n{result.summary}\n\nEvery message is in {result.output_dir}")
