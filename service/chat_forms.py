"""Defines the requests, responses and errors of the part of OpenAI's chat API that we support."""

from datetime import date
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr

from contend.service.errors import Refused
from contend.service.openapi import Responses, errors


class DebateOptions(BaseModel):
    """Debate options that OpenAI's chat API lacks."""

    model_config = ConfigDict(extra="forbid")

    settings: dict[str, Any] = Field(default_factory=dict, max_length=100)
    outcomes: list[StrictStr] = Field(default_factory=list, max_length=20)
    due: date | None = None


class TextPart(BaseModel):
    type: Literal["text"]
    text: StrictStr


class ChatMessage(BaseModel):
    role: Literal["system", "developer", "user", "assistant"]
    content: StrictStr | list[TextPart]

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "\n\n".join(part.text for part in self.content)


class StreamOptions(BaseModel):
    include_usage: StrictBool = False


class ChatRequest(BaseModel):
    """A request in the format of OpenAI's chat API."""

    model_config = ConfigDict(extra="allow")

    model: StrictStr = Field(max_length=200, description="contend/PROTOCOL or contend/PRESET")
    messages: list[ChatMessage] = Field(min_length=1, max_length=1000)
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    contend: DebateOptions = Field(default_factory=DebateOptions)


class ChatModel(BaseModel):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ChatModels(BaseModel):
    """The protocols and presets, as chat models."""

    object: Literal["list"]
    data: list[ChatModel]


class ChatAnswer(BaseModel):
    """A finished debate as a chat completion."""

    id: str = Field(description="`chatcmpl-` and the id of the debate.")
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[dict[str, Any]] = Field(min_length=1, max_length=1)
    usage: dict[str, Any] | None = Field(description="Null if a provider reported no usage.")


class ChatProblem(BaseModel):
    message: str
    type: str
    param: str | None = None
    code: str


class ChatError(BaseModel):
    """The body of every error response."""

    error: ChatProblem


def chat_status(refused: Refused) -> int:
    # OpenAI's clients know no 422.
    return 400 if refused.code == 422 else refused.code


def chat_error(refused: Refused) -> dict[str, Any]:
    message = " ".join([refused.body.detail, *refused.body.problems])
    kind = "invalid_request_error" if refused.code < 500 else "server_error"
    problem = ChatProblem(message=message, type=kind, code=refused.body.error)
    return ChatError(error=problem).model_dump()


def chat_errors(*statuses: int) -> Responses:
    """Describe the same errors as `errors`, in the format that OpenAI's clients expect."""
    described: Responses = {}
    for status, response in errors(*statuses).items():
        shown = response["content"]["application/json"]["example"]
        refused = Refused(int(status), **shown)
        content = {"application/json": {"example": chat_error(refused)}}
        described[chat_status(refused)] = {**response, "model": ChatError, "content": content}
    return described
