"""CrewAI: three agents and a judge, whose tasks run one after another."""

from crewai import LLM, Agent, Crew, Task

from benchmarks.peers.driver import (
    MODEL,
    QUESTION,
    ROUNDS,
    RULES,
    SPEAKERS,
    VERDICT,
    on_event_loop,
    serve,
)

# Tasks of one round cannot run at once: CrewAI refuses asynchronous tasks that read
# asynchronous tasks, unless another task stands between them.


async def debate() -> None:
    llm = LLM(model=MODEL, stream=True, timeout=3600, max_retries=0)
    debaters = [_agent(llm, name, RULES) for name in SPEAKERS]
    tasks = [_task(each, QUESTION) for _ in range(ROUNDS) for each in debaters]
    judge = _agent(llm, "Judge", VERDICT)
    tasks.append(_task(judge, f"Judge the debate of this question: {QUESTION}"))
    await Crew(agents=[*debaters, judge], tasks=tasks).akickoff()


def _agent(llm: LLM, name: str, rules: str) -> Agent:
    return Agent(role=name, goal=rules, backstory="You speak plainly.", llm=llm)


def _task(agent: Agent, what: str) -> Task:
    return Task(description=what, expected_output="Your answer.", agent=agent)


def main() -> None:
    serve(on_event_loop(debate), "crewai", "openai")
