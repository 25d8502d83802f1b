"""A service on this machine that fails as it is told: what `benchmarks.calls` asks.

It speaks as much of OpenAI's and Anthropic's wire format as a client needs to see an answer, or an
error with its status and `Retry-After`. Each call is noted with its time and status.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ERRORS = (503, 429)


@dataclass
class Plan:
    """When the service fails.

    Attributes:
        share: of all calls that fail, one every so often, 503 and 429 in turn.
        begins, lasts: an outage: seconds from the start, and for how long; 0: none.
        tells: whether its errors say when it is back, in `Retry-After`.
    """

    share: float = 0.0
    begins: float = 0.0
    lasts: float = 0.0
    tells: bool = False


@dataclass
class Noted:
    """A call that came: seconds since the start, and the status it was answered with."""

    at: float
    status: int


@dataclass
class Service:
    """The service; `start` it, `stop` it.

    Attributes:
        plan: when it fails.
        noted: its calls so far.
    """

    plan: Plan
    noted: list[Noted] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._failures = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._began = time.monotonic()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def ends(self) -> float:
        """When the outage is over, in seconds since the start."""
        return self.plan.begins + self.plan.lasts

    def start(self) -> None:
        """Answer from now on; the outage is reckoned from now."""
        self._began = time.monotonic()
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self) -> tuple[int, dict[str, str]]:
        """Status and headers for the next call."""
        with self._lock:
            now = time.monotonic() - self._began
            left, count = self.ends - now, len(self.noted)
            status = 200
            if self.plan.lasts and self.plan.begins <= now < self.ends:
                status = 503
            elif int(count * self.plan.share) < int((count + 1) * self.plan.share):
                status = ERRORS[self._failures % len(ERRORS)]
                self._failures += 1
            self.noted.append(Noted(now, status))
        tells = self.plan.tells and status != 200 and left > 0
        return status, {"Retry-After": str(int(left) + 1)} if tells else {}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                """Answer a call."""
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, headers = service.answer()
                good = _message(asked) if "messages" in self.path else _completion(asked)
                bad = {"error": {"message": "try again later", "type": "overloaded_error"}}
                streams = status == 200 and asked.get("stream")
                body = _events(asked) if streams else json.dumps(good if status == 200 else bad)
                self.send_response(status)
                kind = "text/event-stream" if streams else "application/json"
                for name, value in {"Content-Type": kind, **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        return Handler


def _completion(asked: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": "yes"}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": asked.get("model"),
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def _events(asked: dict[str, Any]) -> str:
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": asked.get("model"),
    }
    parts: list[dict[str, Any]] = [
        {**chunk, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "yes"}}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {
            **chunk,
            "choices": [],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        },
    ]
    return "".join(f"data: {json.dumps(part)}\n\n" for part in parts) + "data: [DONE]\n\n"


def _message(asked: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked.get("model"),
        "content": [{"type": "text", "text": "yes"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
