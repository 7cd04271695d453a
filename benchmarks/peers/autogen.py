"""AutoGen: a debate on its core, where agents get messages, or a round robin of its chat agents."""

import asyncio
import sys
from dataclasses import dataclass

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import AgentId, MessageContext, RoutedAgent, SingleThreadedAgentRuntime
from autogen_core import message_handler as handles
from autogen_core.models import CreateResult, SystemMessage, UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient

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


@dataclass
class Turn:
    instructions: str
    said: list[str]


class Speaker(RoutedAgent):  # type: ignore[misc]
    def __init__(self, client: OpenAIChatCompletionClient) -> None:
        super().__init__("A speaker in a debate.")
        self._client = client

    @handles  # type: ignore[untyped-decorator]
    async def speak(self, message: Turn, ctx: MessageContext) -> str:
        asked = "\n\n".join([QUESTION, *message.said])
        given = [SystemMessage(content=message.instructions)]
        given.append(UserMessage(content=asked, source="user"))
        text = ""
        async for part in self._client.create_stream(
            given, cancellation_token=ctx.cancellation_token
        ):
            if isinstance(part, CreateResult):
                text = str(part.content)
        return text


async def debate_on_core(client: OpenAIChatCompletionClient) -> None:
    runtime = SingleThreadedAgentRuntime()
    await Speaker.register(runtime, "speaker", lambda: Speaker(client))
    runtime.start()
    said: list[str] = []
    for _ in range(ROUNDS):
        turn = Turn(RULES, list(said))
        answers = await asyncio.gather(
            *(runtime.send_message(turn, AgentId("speaker", name)) for name in SPEAKERS)
        )
        said += [f"{name}: {text}" for name, text in zip(SPEAKERS, answers, strict=True)]
    await runtime.send_message(Turn(VERDICT, said), AgentId("speaker", "judge"))
    await runtime.stop()


async def debate_in_turn(client: OpenAIChatCompletionClient) -> None:
    team = RoundRobinGroupChat(
        [_assistant(client, name, RULES) for name in SPEAKERS],
        termination_condition=MaxMessageTermination(1 + ROUNDS * len(SPEAKERS)),
    )
    result = await team.run(task=QUESTION)
    said = [each for each in result.messages if isinstance(each, TextMessage)]
    await _assistant(client, "Judge", VERDICT).run(task=said)


def _assistant(client: OpenAIChatCompletionClient, name: str, rules: str) -> AssistantAgent:
    return AssistantAgent(name, client, system_message=rules, model_client_stream=True)


def main() -> None:
    debate = debate_in_turn if "--in-turn" in sys.argv else debate_on_core
    client = OpenAIChatCompletionClient(model=MODEL, max_retries=0, timeout=3600)
    run = on_event_loop(lambda: debate(client))
    serve(run, "autogen-core", "openai")
