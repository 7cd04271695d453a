"""A casual debate, with a conversational tone, loose rules and no winner.

python examples/casual.py ollama:qwen3:32b
"""

import asyncio
import sys

from contend import advocate, create_debate, moderator

MODEL = sys.argv[1] if len(sys.argv) > 1 else "embedded:smollm2-135m"
print(f"Using {MODEL}; this takes minutes. To change it: {sys.argv[0]} MODEL", file=sys.stderr)

debate = create_debate(
    "Pineapple on pizza",
    [
        advocate("Gio", "It is a crime against dough", MODEL, temperature=1.0),
        advocate("Kai", "Sweet and salty belong together", MODEL, temperature=1.0),
        moderator("Host", MODEL, system_prompt="You have a soft spot for food puns."),
    ],
    {"debateFormat": "casual", "roundCount": 1, "scoringEnabled": False, "outputFormat": "text"},
)
record = asyncio.run(debate.result())

for turn in record.turns:
    if turn.role == "position_advocate":
        print(f"{turn.seat.capitalize()}: {turn.text}\n")
print(record.summary)
