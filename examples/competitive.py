"""A competitive debate, which is scored in both orders and ends with a winner or a draw.

    python examples/competitive.py openai:gpt-5-mini openrouter:mistralai/mistral-large

The first model argues and moderates, and the second one judges, because a judge should not score
its own model.
"""

import asyncio
import sys

from contend import advocate, create_debate, judge, moderator

MODEL = sys.argv[1] if len(sys.argv) > 1 else "embedded:smollm2-135m"
print(f"Using {MODEL}; this takes minutes. To change it: {sys.argv[0]} MODEL", file=sys.stderr)
JUDGE = sys.argv[2] if len(sys.argv) > 2 else MODEL

debate = create_debate(
    "Cities should ban private cars from their centers",
    [
        advocate("Pro", "They should", MODEL),
        advocate("Contra", "They should not", MODEL),
        moderator(model=MODEL),
        judge(model=JUDGE),
    ],
    {"debateFormat": "competitive", "roundCount": 2, "outputFormat": "json"},
)
record = asyncio.run(debate.result())

scoring = record.scoring
print(f"Winner: {record.winner_name or 'nobody, ' + scoring.no_winner}")
for name, score in record.scores.items():
    # None if every score of this side is contested or could not be parsed.
    total = "no valid score" if score.total is None else f"{score.total:.2f}"
    print(f"{name}: {total} ({len(score.turns)} statements scored)")
print(f"Contested statements: {len(scoring.contested)}\n\n{record.summary}")
