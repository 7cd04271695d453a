"""A fake LangGraph server in this process; tests define its threads, runs and streams."""

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any, NamedTuple, Self


class Part(NamedTuple):
    """An event of a run's stream."""

    id: str
    event: str
    data: Any


Stream = Callable[[str | None], Iterator[Part]]


class LangGraphServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.state: dict[str, Any] | None = None
        self.runs: list[dict[str, Any]] = []
        self.threads: set[str] = set()
        self.streams: deque[Stream] = deque()
        """What each listener gets; the last entry is repeated for all later ones."""
        self.refusals: dict[str, deque[int]] = {}
        """Error statuses for the next requests, by the last part of the path."""
        self.status_of_new_runs = "running"
        self.lost_answers = 0
        """For how many of the next created runs the client gets no response."""
        self.lost_threads = 0
        """For how many of the next created threads the client gets no response."""
        self._answered: Counter[str] = Counter()
        self._has_answered = Condition()
        self.is_cancelled = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answers(self, *kinds: str) -> int:
        """How many requests of these kinds have been answered."""
        return sum(self._answered[kind] for kind in kinds)

    def wait_for_more(self, answers: int, *kinds: str) -> None:
        with self._has_answered:
            self._has_answered.wait_for(lambda: self.answers(*kinds) > answers)

    def note_answer(self, kind: str) -> None:
        with self._has_answered:
            self._answered[kind] += 1
            self._has_answered.notify_all()

    def end_runs(self, status: str) -> None:
        for run in self.runs:
            run["status"] = status

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: LangGraphServer

    def do_GET(self) -> None:
        kind = self._kind()
        if self._is_refused(kind):
            return
        if kind == "stream":
            self._stream()
        elif kind == "runs":
            self._answer(200, self.server.runs)
        elif kind in ("state", "thread"):
            self._answer_known(self.server.state)
        else:
            self._answer_known(self._run())

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
        kind = self._kind()
        if self._is_refused(kind):
            return
        if kind == "cancel":
            self.server.end_runs("interrupted")
            self.server.is_cancelled = True
            self._answer(200, {})
        elif kind == "runs":
            self._create(given)
        elif kind == "threads":
            self._create_thread(given["thread_id"])
        else:
            self._answer(200, [{}] if kind == "search" else {})

    def do_DELETE(self) -> None:
        kind = self._kind()
        if not self._is_refused(kind):
            self.server.state = None
            self.server.threads.discard(self.path.rpartition("/")[2])
            self._answer(204, None)

    def _kind(self) -> str:
        last = self.path.partition("?")[0].rpartition("/")[2]
        if last in ("stream", "runs", "state", "cancel", "threads", "search"):
            return last
        return "run" if "/runs/" in self.path else "thread"

    def _is_refused(self, kind: str) -> bool:
        waiting = self.server.refusals.get(kind)
        if not waiting:
            return False
        self._answer(waiting.popleft(), {"detail": "not now"})
        return True

    def _run(self) -> dict[str, Any] | None:
        wanted = self.path.partition("?")[0].rpartition("/")[2]
        return next((run for run in self.server.runs if run["run_id"] == wanted), None)

    def _create(self, given: dict[str, Any]) -> None:
        name = f"run{len(self.server.runs) + 1}"
        status, config = self.server.status_of_new_runs, given.get("config", {})
        made = {"run_id": name, "status": status, "config": config}
        made["command"] = given.get("command")
        self.server.runs.insert(0, made)
        if self.server.lost_answers:
            self.server.lost_answers -= 1
            self.close_connection = True
        else:
            self._answer(200, made)

    def _create_thread(self, thread: str) -> None:
        is_known = thread in self.server.threads
        self.server.threads.add(thread)
        if is_known:
            self._answer(409, {"detail": "Thread already exists"})
        elif self.server.lost_threads:
            self.server.lost_threads -= 1
            self.close_connection = True
        else:
            self._answer(200, {"thread_id": thread})

    def _stream(self) -> None:
        streams = self.server.streams
        stream = streams[0] if len(streams) == 1 else streams.popleft()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for part in stream(self.headers.get("Last-Event-ID")):
            words = f"id: {part.id}\nevent: {part.event}\ndata: {json.dumps(part.data)}\n\n"
            self.wfile.write(words.encode())
            self.wfile.flush()
        self.close_connection = True

    def _answer_known(self, body: object) -> None:
        if body is None:
            self._answer(404, {"detail": "not found"})
        else:
            self._answer(200, body)

    def _answer(self, status: int, body: object) -> None:
        words = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(words)))
        self.end_headers()
        self.wfile.write(words)
        self.server.note_answer(self._kind())

    def log_message(self, *_: object) -> None:
        pass
