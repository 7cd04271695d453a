"""Three models refine their answers after a judge's feedback, and the judge merges them.

python examples/refine.py ollama:qwen3:32b
"""

import sys

import contend

MODEL = sys.argv[1] if len(sys.argv) > 1 else "embedded:smollm2-135m"
print(f"Using {MODEL}; this takes minutes. To change it: {sys.argv[0]} MODEL", file=sys.stderr)

record = contend.ask(
    "How should a small library keep its API stable?",
    protocol="refine",
    seats=[{"name": name, "model": MODEL} for name in ("Ann", "Ben", "Cyd")],
    judge_model=MODEL,
    max_debate_rounds=1,
)

print(record.final_answer)
print(f"\nTokens written: {record.usage.output_tokens}")
