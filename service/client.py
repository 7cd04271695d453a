import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import httpx2
from pydantic import ValidationError

from contend.debates.events import Event
from contend.graph.record import Status
from contend.service.address import DEBATES_PREFIX
from contend.service.errors import ErrorBody
from contend.service.forks import ComparisonAnswer, EditableReply, FamilyAnswer
from contend.service.listing import DebateList
from contend.service.summaries import DebateDetails, DebateSummary

_TRIES = 8
_LONGEST_WAIT = 30.0
# Longer than the time between two heartbeats of a stream.
_TIMEOUT = httpx2.Timeout(60.0)
_TRY_AGAIN = (429, 503)


class ApiError(Exception):
    def __init__(self, status: int, body: ErrorBody) -> None:
        self.status, self.body = status, body
        super().__init__(" ".join([body.detail, *body.problems]))


class DebateClient:
    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        token: str | None = None,
        *,
        http: httpx2.Client | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else None
        self.http = http or httpx2.Client(base_url=url, headers=headers, timeout=_TIMEOUT)
        self._wait = wait

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def start(
        self,
        question: str,
        *,
        settings: Mapping[str, Any] | None = None,
        documents: Sequence[Path] = (),
        images: Sequence[Path] = (),
        **more: Any,
    ) -> DebateSummary:
        """Start a debate; `more` holds other request fields, such as `protocol` or `outcomes`."""
        body = {"question": question, "settings": dict(settings or {}), **more}
        given = (("documents", documents), ("images", images))
        files = [(part, (path.name, path.read_bytes())) for part, paths in given for path in paths]
        if files:
            found = self._call("POST", data={"debate": json.dumps(body)}, files=files)
        else:
            found = self._call("POST", json=body)
        return DebateSummary.model_validate_json(found.content)

    def get(self, debate_id: str) -> DebateDetails:
        return DebateDetails.model_validate_json(self._call("GET", debate_id).content)

    def events(
        self,
        debate_id: str,
        after: int = 0,
        *,
        html: bool = False,
        chunks: Literal["all", "open"] = "all",
        follow: bool = True,
    ) -> Iterator[Event]:
        """Yield the events after number `after` until the debate is done; reconnect if necessary.

        Without `follow`, yield only events that are already stored.
        """
        query = {"html": html, "chunks": chunks, "follow": follow}
        failures = empty_streams = 0
        while empty_streams < 2:  # a stream may end early when the service stops
            empty_streams += 1
            try:
                for event in self._stream(debate_id, after, query):
                    after, failures, empty_streams = event["seq"], 0, 0
                    yield event
                    if event["event"] == "complete":
                        return
            except (httpx2.TransportError, ApiError) as lost:
                if isinstance(lost, ApiError) and lost.status not in _TRY_AGAIN:
                    raise
                failures, empty_streams = failures + 1, 0
                if failures == _TRIES:
                    raise
                self._wait(min(2.0 ** (failures - 1), _LONGEST_WAIT))
            if not follow:
                return

    def pause(self, debate_id: str) -> DebateSummary:
        return self._change(debate_id, "pause")

    def resume(
        self,
        debate_id: str,
        say: str = "",
        *,
        budget: int | None = None,
        max_cost: float | None = None,
    ) -> DebateSummary:
        """Continue a paused or failed debate, or comment on a running one with `say`."""
        limits = {"budget": budget, "max_cost": max_cost}
        given = {name: value for name, value in limits.items() if value is not None}
        return self._change(debate_id, "resume", say=say, **given)

    def finish(self, debate_id: str, say: str = "") -> DebateSummary:
        """Finish the current round, then write the answer."""
        return self._change(debate_id, "finish", say=say)

    def fork(
        self,
        debate_id: str,
        *,
        say: str = "",
        settings: Mapping[str, Any] | None = None,
        **place: Any,
    ) -> DebateSummary:
        body = {"say": say, "settings": dict(settings or {}), **place}
        found = self._call("POST", debate_id, "forks", json=body)
        return DebateSummary.model_validate_json(found.content)

    def reply(self, debate_id: str, turn: str) -> str:
        """Return a turn's complete model reply, to edit with `fork(edit=...)`."""
        found = self._call("GET", debate_id, "turns", turn, "reply")
        return EditableReply.model_validate_json(found.content).text

    def family(self, debate_id: str) -> FamilyAnswer:
        return FamilyAnswer.model_validate_json(self._call("GET", debate_id, "family").content)

    def diff(self, debate_id: str, other_id: str) -> ComparisonAnswer:
        found = self._call("GET", debate_id, "diff", other_id)
        return ComparisonAnswer.model_validate_json(found.content)

    def rate(self, debate_id: str, rating: int) -> DebateSummary:
        return self._change(debate_id, "rate", rating=rating)

    def export(self, debate_id: str, name: str = "md") -> str:
        return self._call("GET", debate_id, "export", params={"format": name}).text

    def delete(self, debate_id: str) -> None:
        self._call("DELETE", debate_id)

    def list(
        self,
        *,
        search: str = "",
        status: Status | None = None,
        protocol: str | None = None,
        limit: int = 30,
        cursor: str | None = None,
    ) -> DebateList:
        """Return one page of debates; pass its `next` as `cursor` to get the following page."""
        wanted = {"search": search, "status": status, "protocol": protocol, "cursor": cursor}
        given = {name: value for name, value in wanted.items() if value}
        return DebateList.model_validate_json(
            self._call("GET", params={**given, "limit": limit}).content
        )

    def _change(self, debate_id: str, what: str, **body: Any) -> DebateSummary:
        found = self._call("POST", debate_id, what, **({"json": body} if body else {}))
        return DebateSummary.model_validate_json(found.content)

    def _call(self, method: str, *path: str, **options: Any) -> httpx2.Response:
        response = self.http.request(method, "/".join((DEBATES_PREFIX, *path)), **options)
        _raise_refusal(response)
        return response

    def _stream(self, debate_id: str, after: int, query: Mapping[str, Any]) -> Iterator[Event]:
        headers = {"Last-Event-ID": str(after)} if after else None
        url = f"{DEBATES_PREFIX}/{debate_id}/events"
        with self.http.stream("GET", url, params=query, headers=headers) as response:
            if response.is_error:
                response.read()
            _raise_refusal(response)
            for line in response.iter_lines():
                name, _, value = line.partition(":")
                if name == "data":
                    yield json.loads(value)


def _raise_refusal(response: httpx2.Response) -> None:
    if not response.is_error:
        return
    try:
        body = ErrorBody.model_validate_json(response.content)
    except ValidationError:  # the response came from a proxy, not from the service
        body = ErrorBody(error="unknown", detail=f"The answer was {response.status_code}.")
    raise ApiError(response.status_code, body)
