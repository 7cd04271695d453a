"""Five roles argue over the outcomes of a question and state probabilities.

python examples/forecast.py ollama:qwen3:32b
"""

import sys

import contend

MODEL = sys.argv[1] if len(sys.argv) > 1 else "embedded:smollm2-135m"
print(f"Using {MODEL}; this takes minutes. To change it: {sys.argv[0]} MODEL", file=sys.stderr)

record = contend.ask(
    "Will the bridge open before May?",
    protocol="forecast",
    model=MODEL,
    outcomes=["yes: It opens", "no: It does not open"],
    overall_timeout=600,
)

for outcome in record.forecast["probability_distribution"]:
    print(f"{outcome['outcome_id']}: {outcome['probability']}")
print(f"Agreement of the roles: {record.forecast['consensus_score']}")
for gap in record.forecast["report"]["gaps"]:
    print(f"Missing: {gap}")
