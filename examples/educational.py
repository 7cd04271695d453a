"""An educational debate between three perspectives, with a fact checker.

python examples/educational.py openai:gpt-5-mini lecture.pdf notes.md
"""

import asyncio
import sys

from contend import advocate, create_debate, fact_checker, judge, moderator

MODEL = sys.argv[1] if len(sys.argv) > 1 else "embedded:smollm2-135m"
print(f"Using {MODEL}; this takes minutes. To change it: {sys.argv[0]} MODEL", file=sys.stderr)
DOCUMENTS = sys.argv[2:]

debate = create_debate(
    "Why did the Roman Republic fall?",
    [
        advocate("Economist", "Land, debt and inequality broke it", MODEL),
        advocate("Soldier", "Armies that followed their generals broke it", MODEL),
        advocate("Jurist", "Its offices were made for a city, not for an empire", MODEL),
        moderator("Teacher", MODEL),
        fact_checker(model=MODEL),
        judge(model=MODEL),
    ],
    {"debateFormat": "educational", "roundCount": 1, "generateFullTranscript": True},
    documents=DOCUMENTS,
)
record = asyncio.run(debate.result())

print(record.summary)
for check in record.fact_checks:
    print(f"- {check.verdict} [{check.source}]: {check.claim}")
print(f"\nThe transcript is in {record.output_dir}")
