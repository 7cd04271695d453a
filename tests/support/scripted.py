"""A scripted chat model that records its calls, and debates that use it."""

import json
import re
import typing
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import RunControl
from pydantic import BaseModel, ValidationError

from contend.graph import adversarial, forecast, forum, moderated, refine
from contend.graph.events import NodeEvent
from contend.graph.settings import (
    AdversarialSettings,
    DebateSettings,
    ForumSettings,
    RefineSettings,
)
from contend.graph.state import DebateState, Turn
from contend.graph.values import Degradation
from contend.models.providers.registry import Opened, Options, Provider, register
from tests.support.instructions import instructions_in
from tests.support.model_server import Request

THREAD = "5f0c1f0e-0000-4000-8000-000000000001"
BUILDERS: dict[str, Any] = {
    "adversarial": adversarial.builder,
    "forum": forum.builder,
    "refine": refine.builder,
    "forecast": forecast.builder,
    "moderated": moderated.builder,
}
_NODES = {name for builder in BUILDERS.values() for name in builder.nodes}
ROLES = ("proposer", "skeptic", "synthesizer", "judge")
USAGE = UsageMetadata(input_tokens=10, output_tokens=5, total_tokens=15)


@dataclass(frozen=True)
class Sent:
    """One call as the model received it."""

    model: str
    messages: list[BaseMessage]
    schema: type[BaseModel] | None = None
    tools: tuple[str, ...] = ()
    options: Options | None = None

    @property
    def results(self) -> list[str]:
        """The results of the tools that it called."""
        return [message.text for message in self.messages if isinstance(message, ToolMessage)]

    @property
    def system(self) -> str:
        return self.messages[0].text

    @property
    def instructions(self) -> str:
        """The speaker's role, and the system message."""
        return instructions_in(self.system, self.user)

    @property
    def user(self) -> str:
        return self.messages[1].text

    @property
    def text(self) -> str:
        return "\n".join(message.text for message in self.messages)

    @property
    def nonce(self) -> str:
        """The nonce that this call's control block must have: the last one in the prompt."""
        found = re.findall(r'"nonce": "([0-9a-f]{10})"', self.text)
        assert found, f"{self.model} was asked for no control block"
        return str(found[-1])


def as_sent(request: Request) -> Sent:
    """Convert an HTTP request to a call as scripted models receive it."""
    return Sent(request.model, [SystemMessage(request.system), HumanMessage(request.user)])


class Asking(str):
    """A line in which a model calls tools, by name and arguments, and may also say something."""

    __slots__ = ("calls",)
    calls: tuple[tuple[str, Mapping[str, Any]], ...]

    def __new__(cls, *calls: tuple[str, Mapping[str, Any]], text: str = "") -> "Asking":
        asking = super().__new__(cls, text)
        asking.calls = calls
        return asking


Line = str | Callable[[Sent], str]
"""What a model says: text, or a function of the call that it received."""
Lines = Line | Sequence[Line]
"""One line or several; several are said in turn, and the last one is repeated."""


class Cast:
    """The speakers in a test's debates, by model name, and all calls that they received."""

    def __init__(self, **lines: Lines) -> None:
        self.lines: dict[str, Lines] = dict(lines)
        self.sent: list[Sent] = []
        self.before: Callable[[Sent], Awaitable[None] | None] = lambda _: None
        """Called, and awaited if necessary, before a call is answered."""

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
    """A model that says its lines in the current cast, a few characters at a time."""

    part: str
    options: Options = Options()

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
        await self._wait(Sent(self.part, list(messages), options=self.options))
        text = self._say(messages, tools=kwargs.get("tools", ()))
        for at in range(0, len(text), 7):
            yield ChatGenerationChunk(message=AIMessageChunk(content=text[at : at + 7]))
        if isinstance(text, Asking):
            calls = [
                {"name": name, "args": dict(given), "id": f"{self.part}-{number}"}
                for number, (name, given) in enumerate(text.calls)
            ]
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_calls=calls))
        yield ChatGenerationChunk(message=AIMessageChunk(content="", **_ending()))

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        return self.bind(tools=tuple(tool.name for tool in tools))

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
            await self._wait(Sent(self.part, list(messages), bound, options=self.options))
            raw = AIMessage(self._say(messages, bound), **_ending())
            try:
                parsed, error = bound.model_validate_json(raw.text), None
            except ValidationError as failed:
                parsed, error = None, failed
            if include_raw:
                return {"raw": raw, "parsed": parsed, "parsing_error": error}
            return parsed

        return RunnableLambda(answer)

    @staticmethod
    async def _wait(sent: Sent) -> None:
        """Wait for whatever the test wants to happen before this call is answered."""
        waiting = _on_stage.get().before(sent)
        if waiting:
            await waiting

    def _say(
        self,
        messages: list[BaseMessage],
        schema: type[BaseModel] | None = None,
        tools: tuple[str, ...] = (),
    ) -> str:
        return _on_stage.get().say(Sent(self.part, list(messages), schema, tools, self.options))


def _ending() -> dict[str, Any]:
    return {"response_metadata": {"finish_reason": "stop"}, "usage_metadata": USAGE}


def _open(name: str, options: Options) -> Opened[BaseChatModel]:
    return Opened(ScriptedChat(part=name, options=options))


async def _check(names: list[str]) -> None:
    """Accept any name, because every scripted model exists."""


class ScriptedEmbeddings(Embeddings):
    """Embeddings by hashed bags of words: similar texts are near, and no download is needed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        embedded.extend(texts)
        if self.name == "broken":
            raise ConnectionError("the embedding server is down")
        return [bag_of_words(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


embedded: list[str] = []
"""All texts given to scripted embedding models; tests clear this list."""


def bag_of_words(text: str, dimensions: int = 512) -> list[float]:
    vector = [0.0] * dimensions
    for word in re.findall(r"\w+", text.lower()) or [""]:
        vector[zlib.crc32(word.encode()) % dimensions] += 1.0
    return vector


def register_cast() -> None:
    """Register `scripted:NAME` as a model."""
    provider = Provider(
        open=_open,
        check=_check,
        open_embeddings=lambda name, _: Opened(ScriptedEmbeddings(name)),
        takes_images=lambda name: name != "blind",
        takes_tools=lambda name: name != "handless",
        is_small=lambda name: name == "small",
    )
    register("scripted", provider)


def scripted_settings(**changes: Any) -> AdversarialSettings:
    """Return settings with a scripted model in every seat, named after its role."""
    usual: dict[str, Any] = {f"{role}_model": f"scripted:{role}" for role in ROLES}
    usual |= {"embedding_model": "scripted:embed", "templates": False}
    return AdversarialSettings.model_validate(usual | changes)


def refine_settings(names: Sequence[str] = ("Ann", "Ben", "Cyd"), **changes: Any) -> RefineSettings:
    """Return refine settings with a scripted model in every seat, named after the seat."""
    seats = [{"name": name, "model": f"scripted:{name.lower()}"} for name in names]
    usual: dict[str, Any] = {"seats": seats, "judge_model": "scripted:judge"}
    usual |= {"embedding_model": "scripted:embed", "templates": False}
    return RefineSettings.model_validate(usual | changes)


def forum_settings(names: Sequence[str] = ("Ann", "Ben", "Cyd"), **changes: Any) -> ForumSettings:
    """Return forum settings with a scripted model in every seat, named after the seat."""
    seats = [{"name": name, "model": f"scripted:{name.lower()}"} for name in names]
    usual: dict[str, Any] = {"seats": seats, "judge_model": "scripted:judge"}
    usual |= {"embedding_model": "scripted:embed", "templates": False}
    return ForumSettings.model_validate(usual | changes)


class Prompted(typing.Protocol):
    """A call whose last message is known, whether or not it was made over HTTP."""

    @property
    def user(self) -> str: ...


def asked_for(sent: Prompted) -> str:
    """Return what a speaker in a forum is asked for, judging by its prompt."""
    signs = {
        "Rate this answer": "score",
        "CONTINUE\nSTOP": "continue",
        "Give your verdict": "verdict",
        "answer the user will read": "final",
        "A concession must rest on": "conviction_again",
        "NOT CONVINCED": "conviction",
    }
    return next((what for sign, what in signs.items() if sign in sent.user), "speech")


def forum_cast(**lines: Mapping[str, Line]) -> Cast:
    """Return three debaters who name their round and never concede, and a judge who continues.

    To let a seat say something else, give its lines by request: `ann={"conviction": ...}`.
    """

    def speaker(name: str) -> Callable[[Sent], str]:
        said: dict[str, Line] = {
            "speech": lambda sent: f"{name.capitalize()} argues in round {round_of(sent)}.",
            "conviction": "NOT CONVINCED\nMine still holds.",
            "conviction_again": "NOT CONVINCED\nI take it back.",
            "final": f"The answer of {name}.",
            "continue": "CONTINUE\nMuch is open.",
            "verdict": "Each has a point.",
            "score": ratings(),
            **lines.get(name, {}),
        }

        def say(sent: Sent) -> str:
            line = said[asked_for(sent)]
            return line if isinstance(line, str) else line(sent)

        return say

    return Cast(**{name: speaker(name) for name in {"ann", "ben", "cyd", "judge", *lines}})


def concedes(
    to: str, argument: str = "The costs decide.", quote: str = "", reasoning: str = "It does."
) -> Callable[[Sent], str]:
    """Return a script for a concession with its control block."""

    def say(sent: Sent) -> str:
        data = {"nonce": sent.nonce, "convinced": True, "convinced_by": to, "argument": argument}
        data |= {"quote": quote, "reasoning": reasoning}
        return f"CONVINCED: {to}\n\n```json\n{json.dumps(data)}\n```"

    return say


def round_of(sent: Prompted) -> int:
    """Return the round in which a debater in a forum speaks."""
    found = re.search(r"Round (\d+) of at most", sent.user)
    return int(found.group(1)) if found else 1


def refining_cast(**lines: Lines) -> Cast:
    """Return three debaters who name their round, and a judge who advises, merges and rates."""

    def debater(name: str) -> Callable[[Sent], str]:
        return lambda sent: f"{name} says in round {refined_in(sent)}."

    usual: dict[str, Lines] = {name: debater(name.capitalize()) for name in ("ann", "ben", "cyd")}
    return Cast(**usual | {"judge": judging()} | lines)


def refined_in(sent: Sent) -> int:
    """Return the refinement round in which a debater is asked."""
    found = re.search(r"Round (\d+) of \d+\. Improve", sent.user)
    return int(found.group(1)) if found else 0


def judging(
    feedback: Line = "Be concrete.", merge: Line = "The merged answer."
) -> Callable[[Sent], str]:
    """Return a script for the judge in refine, which tells from the prompt what it is asked for."""

    def line(said: Line, sent: Sent) -> str:
        return said if isinstance(said, str) else said(sent)

    def say(sent: Sent) -> str:
        if "Rate this answer" in sent.user:
            return ratings()(sent)
        return line(merge if "Merge these answers" in sent.user else feedback, sent)

    return say


def block(
    ready: bool = False,
    score: int | None = None,
    points: Sequence[Mapping[str, str]] = (),
    nonce: str | None = None,
) -> Callable[[Sent], str]:
    """Return a script for the Skeptic's control block, with the call's nonce or another one."""

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
    """Return a script for a Skeptic's speech with one objection and its control block."""
    point = {"id": "", "severity": severity, "status": status, "text": text}
    write = block(ready, score, [point])
    return lambda sent: f"{text}\n\n{write(sent)}"


def ratings(
    correctness: int = 8, completeness: int = 7, clarity: int = 9, depth: int = 6
) -> Callable[[Sent], str]:
    """Return a script for the judge's ratings with their control block."""
    rated = {"correctness": correctness, "completeness": completeness, "clarity": clarity}

    def write(sent: Sent) -> str:
        data = {"nonce": sent.nonce, **rated, "depth": depth, "justification": "Sound, a bit thin."}
        data |= {"would_benefit_from_finetune": True}
        return "My ratings.\n```json\n" + json.dumps(data) + "\n```"

    return write


def full_cast(**lines: Lines) -> Cast:
    """Return a cast that argues to the last round, unless given other lines."""
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
    """A debate that was run: the nodes it passed, its events and its state."""

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
    settings: DebateSettings | None = None,
    **changes: Any,
) -> Played:
    """Run a debate from its question, or from where its saver left it, to the next stop."""
    settings = settings or scripted_settings(**changes)
    graph = BUILDERS[settings.protocol].compile(checkpointer=saver or InMemorySaver())
    config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": 200}
    played = Played(cast)
    with cast.on_stage():
        async for mode, part in graph.astream(
            {"question": given} if isinstance(given, str) else given,
            config,
            context=settings,
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
        # Leave out tasks inside nodes, which are reported too.
        played.path += [name for name in part if name in _NODES]
