"""A casual debate: conversational, loose rules, no winner.

python examples/casual.py ollama:qwen3:32b
"""

import asyncio
import sys

from contend.debates.creating import advocate, create_debate, moderator

MODEL = sys.argv[1] if len(sys.argv) > 1 else "embedded:smollm2-135m"
print(f"{MODEL} debates; this takes minutes. Name another: {sys.argv[0]} MODEL", file=sys.stderr)

debate = create_debate(
    "Pineapple on pizza",
    [
        advocate("Gio", "It is a crime against dough", MODEL, temperature=1.0),
        advocate("Kai", "Sweet and salty belong together", MODEL, temperature=1.0),
        moderator("Host", MODEL, system_prompt="You have a soft spot for food puns."),
    ],
    {"debateFormat": "casual", "roundCount": 1, "scoringEnabled": False, "outputFormat": "text"},
)
result = asyncio.run(debate.run())

for turn in result.record["turns"]:
    if turn["role"] == "position_advocate":
        print(f"{turn['seat'].capitalize()}: {turn['text']}\n")
print(result.summary)
