"""Three models discuss until all but one have conceded; every turn is printed as it ends.

python examples/forum.py ollama:qwen3:32b
"""

import asyncio
import sys

from contend import create_debate

MODEL = sys.argv[1] if len(sys.argv) > 1 else "embedded:smollm2-135m"
print(f"Using {MODEL}; this takes minutes. To change it: {sys.argv[0]} MODEL", file=sys.stderr)


async def main() -> None:
    debate = create_debate(
        "Is it better to write tests first?",
        protocol="forum",
        seats=[{"name": name, "model": MODEL} for name in ("Ann", "Ben", "Cyd")],
        judge_model=MODEL,
        judge_mode="self_convergence",
        max_rounds=2,
    )
    async for event in debate:
        if event["event"] == "seat_complete":
            print(f"{event['metadata']['seat']}: {event['content']}\n")
    record = await debate.result()
    print(f"{record.winner_name} wrote the answer ({record.winner_by}):\n\n{record.final_answer}")


asyncio.run(main())
