"""A chat model that plays a script and remembers what it was sent, and debates cast with it."""

import json
import re
import typing
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import RunControl
from pydantic import BaseModel, ValidationError

from graph.adversarial import builder
from graph.events import NodeEvent
from graph.settings import AdversarialSettings
from graph.state import DebateState, Degradation, Turn
from models.providers import Opened, Options, Provider, register

THREAD = "5f0c1f0e-0000-4000-8000-000000000001"
ROLES = ("proposer", "skeptic", "synthesizer", "judge")
USAGE = UsageMetadata(input_tokens=10, output_tokens=5, total_tokens=15)


@dataclass(frozen=True)
class Sent:
    """One call as the model received it."""

    model: str
    messages: list[BaseMessage]
    schema: type[BaseModel] | None = None

    @property
    def system(self) -> str:
        return self.messages[0].text

    @property
    def user(self) -> str:
        return self.messages[1].text

    @property
    def text(self) -> str:
        return "\n".join(message.text for message in self.messages)

    @property
    def nonce(self) -> str:
        """The tag the control block of this call must carry; its form closes the prompt."""
        found = re.findall(r'"nonce": "([0-9a-f]{10})"', self.text)
        assert found, f"{self.model} was asked for no control block"
        return str(found[-1])


Line = str | Callable[[Sent], str]
"""What a model says: words, or a function of what it was sent."""
Lines = Line | Sequence[Line]
"""Several lines are said in turn; the last one again and again."""


class Cast:
    """The speakers of a test's debates, by model name, and everything they were sent."""

    def __init__(self, **lines: Lines) -> None:
        self.lines: dict[str, Lines] = dict(lines)
        self.sent: list[Sent] = []

    def say(self, sent: Sent) -> str:
        lines = self.lines[sent.model]
        if not isinstance(lines, str) and isinstance(lines, Sequence):
            turn = sum(earlier.model == sent.model for earlier in self.sent)
            lines = lines[min(turn, len(lines) - 1)]
        self.sent.append(sent)
        return lines if isinstance(lines, str) else lines(sent)

    def sent_to(self, model: str) -> list[Sent]:
        return [sent for sent in self.sent if sent.model == model]

    @contextmanager
    def on_stage(self) -> Any:
        token = _on_stage.set(self)
        try:
            yield self
        finally:
            _on_stage.reset(token)


_on_stage: ContextVar[Cast] = ContextVar("_on_stage")


class ScriptedChat(BaseChatModel):
    """Plays its part of the cast on stage, a few characters at a time."""

    part: str

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        said = AIMessage(self._say(messages), **_ending())
        return ChatResult(generations=[ChatGeneration(message=said)])

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        text = self._say(messages)
        for at in range(0, len(text), 7):
            yield ChatGenerationChunk(message=AIMessageChunk(content=text[at : at + 7]))
        yield ChatGenerationChunk(message=AIMessageChunk(content="", **_ending()))

    def with_structured_output(
        self,
        schema: dict[str, Any] | type,
        *,
        include_raw: bool = False,
        method: str = "json_schema",
        **kwargs: Any,
    ) -> Runnable[Any, Any]:
        assert method == "json_schema"
        assert isinstance(schema, type)
        assert issubclass(schema, BaseModel)
        bound: type[BaseModel] = schema

        async def answer(messages: list[BaseMessage]) -> Any:
            raw = AIMessage(self._say(messages, bound), **_ending())
            try:
                parsed, error = bound.model_validate_json(raw.text), None
            except ValidationError as failed:
                parsed, error = None, failed
            if include_raw:
                return {"raw": raw, "parsed": parsed, "parsing_error": error}
            return parsed

        return RunnableLambda(answer)

    def _say(self, messages: list[BaseMessage], schema: type[BaseModel] | None = None) -> str:
        return _on_stage.get().say(Sent(self.part, list(messages), schema))


def _ending() -> dict[str, Any]:
    return {"response_metadata": {"finish_reason": "stop"}, "usage_metadata": USAGE}


def _open(name: str, options: Options) -> Opened:
    return Opened(ScriptedChat(part=name))


async def _check(names: list[str]) -> None:
    """Every scripted model exists."""


def register_cast() -> None:
    """Make `scripted:NAME` a model."""
    register("scripted", Provider(open=_open, check=_check))


def scripted_settings(**changes: Any) -> AdversarialSettings:
    """Settings with a scripted model in every seat, named after its role."""
    models = {f"{role}_model": f"scripted:{role}" for role in ROLES}
    return AdversarialSettings.model_validate(models | changes)


def block(
    ready: bool = False,
    score: int | None = None,
    points: Sequence[Mapping[str, str]] = (),
    nonce: str | None = None,
) -> Callable[[Sent], str]:
    """A control block as the Skeptic writes it, with this call's nonce or another."""

    def write(sent: Sent) -> str:
        data = {"nonce": nonce or sent.nonce, "ready": ready, "score": score}
        return "```json\n" + json.dumps(data | {"points": list(points)}) + "\n```"

    return write


def critique(
    text: str = "The cost model is missing.",
    ready: bool = False,
    score: int | None = None,
    severity: str = "critical",
    status: str = "open",
) -> Callable[[Sent], str]:
    """A Skeptic's speech with one point, closed by its control block."""
    point = {"id": "", "severity": severity, "status": status, "text": text}
    write = block(ready, score, [point])
    return lambda sent: f"{text}\n\n{write(sent)}"


def ratings(
    correctness: int = 8, completeness: int = 7, clarity: int = 9, depth: int = 6
) -> Callable[[Sent], str]:
    """The judge's control block."""
    rated = {"correctness": correctness, "completeness": completeness, "clarity": clarity}

    def write(sent: Sent) -> str:
        data = {"nonce": sent.nonce, **rated, "depth": depth, "justification": "Sound, a bit thin."}
        data |= {"would_benefit_from_finetune": True}
        return "My ratings.\n```json\n" + json.dumps(data) + "\n```"

    return write


def full_cast(**lines: Lines) -> Cast:
    """A cast that argues to the last round, unless told otherwise."""
    usual: dict[str, Lines] = {
        "proposer": lambda sent: f"Answer number {_round_of(sent)}.",
        "skeptic": critique(),
        "synthesizer": "## Answer\nKeep the monolith.",
        "judge": ratings(),
    }
    return Cast(**usual | lines)


def _round_of(sent: Sent) -> str:
    found = re.search(r"Round (\d+) of at most", sent.user)
    return found.group(1) if found else "?"


def as_state(values: object) -> DebateState:
    return typing.cast("DebateState", values)


@dataclass
class Played:
    """A debate that was run: its path over the nodes, its events and its state."""

    cast: Cast
    path: list[str] = field(default_factory=list)
    events: list[NodeEvent] = field(default_factory=list)
    interrupts: list[Any] = field(default_factory=list)
    state: DebateState = field(default_factory=DebateState)

    @property
    def turns(self) -> list[Turn]:
        return self.state.get("turns", [])

    @property
    def degraded(self) -> list[Degradation]:
        return self.state.get("degraded", [])

    @property
    def rounds(self) -> int:
        return self.path.count("critique")

    @property
    def stop_reason(self) -> str:
        return self.state["stop"].reason

    def named(self, event: str) -> list[NodeEvent]:
        return [each for each in self.events if each["event"] == event]


async def play(
    cast: Cast,
    given: Any = "Should a four-person team split its monolith?",
    *,
    saver: BaseCheckpointSaver[str] | None = None,
    thread: str = THREAD,
    control: RunControl | None = None,
    settings: AdversarialSettings | None = None,
    **changes: Any,
) -> Played:
    """Run a debate from its question, or on from where its saver left it, to the next stop."""
    graph = builder.compile(checkpointer=saver or InMemorySaver())
    config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": 200}
    played = Played(cast)
    with cast.on_stage():
        async for mode, part in graph.astream(
            {"question": given} if isinstance(given, str) else given,
            config,
            context=settings or scripted_settings(**changes),
            stream_mode=["updates", "custom"],
            durability="sync",
            control=control,
        ):
            _note(played, str(mode), part)
    played.state = as_state((await graph.aget_state(config)).values)
    return played


def _note(played: Played, mode: str, part: Any) -> None:
    if mode == "custom":
        played.events.append(part)
    elif "__interrupt__" in part:
        played.interrupts += [waiting.value for waiting in part["__interrupt__"]]
    else:
        # Tasks inside a node report as well; the path is made of nodes.
        played.path += [name for name in part if name in builder.nodes]
