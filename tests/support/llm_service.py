"""A model service on this machine: the wire formats of four APIs, said by a script, faults included.

    with LLMService([Said("Hello"), failed(529, "overloaded_error"), Said(arguments={"edits": []})]) as service:
        client = anthropic.Anthropic(base_url=service.url, api_key="k", max_retries=0)

Each request takes the next reply, whichever format it speaks; a function is asked instead of a list.
``received`` holds the requests. Whatever is held (``stalls``, ``hangs``) goes on when the service
ends. Any client may be pointed at it, also programs: ``url`` for Anthropic's and Google's, ``url +
"/v1"`` for OpenAI's.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, TypeAlias

from support import llm_wire_gemini
from support.llm_wire import DOCUMENTS as DOCUMENTS_OF_THREE
from support.llm_wire import EVENTS as EVENTS_OF_THREE
from support.llm_wire import Event, Said, Wire, error_body, is_piece

__all__ = [
    "Broken",
    "Failed",
    "LLMService",
    "Received",
    "Reply",
    "Said",
    "Streamed",
    "broken",
    "failed",
]

EVENTS = {**EVENTS_OF_THREE, "gemini": llm_wire_gemini.events}
DOCUMENTS = {**DOCUMENTS_OF_THREE, "gemini": llm_wire_gemini.document}

Fault: TypeAlias = Literal["ends", "drops", "resets", "stalls", "garbles", "errs", "hangs"]
"""What becomes of a stream: it ends as if all had been said; the connection is closed, or reset,
before that; nothing more comes; an event is no JSON; an event tells of an error. ``hangs``: not even
a status comes."""


@dataclass(frozen=True)
class Received:
    """A request.

    Attributes:
        method, path: as sent, without a query.
        headers: names in lower case.
        body: its JSON; {} where there is none.
        wire: the format, by the path; None: another path.
        peer: the client's address, one for each connection.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    wire: Wire | None
    peer: tuple[str, int] = ("", 0)

    @property
    def streams(self) -> bool:
        """Whether a stream is asked for; Google's says it by the path."""
        return bool(self.body.get("stream")) or ":streamGenerateContent" in self.path

    @property
    def text(self) -> str:
        """Everything in its body, as JSON text: to look for what a model was told."""
        return json.dumps(self.body, ensure_ascii=False)


@dataclass(frozen=True)
class Failed:
    """An HTTP error; ``body`` None: as the service of the request's format tells such an error."""

    status: int
    type: str = "api_error"
    message: str = "it failed"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | str | None = None


@dataclass(frozen=True)
class Broken:
    """A stream that breaks ``after`` so many pieces of the answer's text and arguments; -1: after all."""

    said: Said
    fault: Fault
    after: int = 1
    error: str = "overloaded_error"


@dataclass(frozen=True)
class Streamed:
    """A stream of events as they are, whatever the format; each a name, or None, and its data."""

    events: tuple[Event, ...]


Reply: TypeAlias = Said | Failed | Broken | Streamed
Script: TypeAlias = Iterable[Reply] | Callable[[Received], Reply]


def failed(
    status: int, type_: str = "api_error", message: str = "it failed", **more: Any
) -> Failed:
    """An HTTP error; ``more`` as the attributes of `Failed`."""
    return Failed(status, type_, message, **more)


def broken(
    fault: Fault, after: int = 1, text: str = "a text of some length", **more: Any
) -> Broken:
    """A stream that breaks after some events; ``more`` as the attributes of `Said`."""
    return Broken(Said(text, **more), fault, after)


class LLMService:
    """The service; it runs inside ``with``.

    Attributes:
        url: where it is, without ``/v1``.
        received: the requests that took a reply, in order.
        keeps_alive: a connection may be used again after a stream.
    """

    keeps_alive = False

    def __init__(self, script: Script = ()) -> None:
        self.received: list[Received] = []
        self._script = script if callable(script) else iter(script)
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )

    def __enter__(self) -> LLMService:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def reply(self, request: Received) -> Reply:
        """What a request gets; a script that is over refuses."""
        with self._lock:
            self.received.append(request)
            if callable(self._script):
                return self._script(request)
            return next(self._script, Failed(400, "invalid_request_error", "the script is over"))

    def hold(self) -> None:
        """Wait for the service's end."""
        self._released.wait()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are what it is for."""


def _handler(service: LLMService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
            pass

        def do_HEAD(self) -> None:
            _document(self, 200, {})

        def do_GET(self) -> None:
            if self.path.split("?")[0].endswith("/models"):
                _document(self, 200, {"object": "list", "data": [], "has_more": False})
            else:
                _document(self, 404, error_body("messages", "not_found_error", self.path))

        def do_POST(self) -> None:
            request = _read(self)
            if request.path.endswith("/count_tokens"):
                _document(self, 200, {"input_tokens": len(request.text) // 4})
            elif request.path.endswith(":countTokens"):
                _document(self, 200, {"totalTokens": len(request.text) // 4})
            elif request.wire is None:
                _document(self, 404, error_body("messages", "not_found_error", request.path))
            else:
                _answer(self, service, request, service.reply(request))

    return Handler


def _read(handler: BaseHTTPRequestHandler) -> Received:
    raw = handler.rfile.read(int(handler.headers.get("content-length") or 0))
    path = handler.path.split("?")[0]
    wire: Wire | None = None
    if path.endswith("/messages"):
        wire = "messages"
    elif path.endswith("/chat/completions"):
        wire = "chat"
    elif path.endswith("/responses"):
        wire = "responses"
    elif path.endswith((":generateContent", ":streamGenerateContent")):
        wire = "gemini"
    try:
        body = json.loads(raw or b"{}")
    except ValueError:
        body = {}
    headers = {name.lower(): value for name, value in handler.headers.items()}
    return Received(handler.command, path, headers, body, wire, handler.client_address)


def _answer(
    handler: BaseHTTPRequestHandler, service: LLMService, request: Received, reply: Reply
) -> None:
    assert request.wire is not None
    if isinstance(reply, Failed):
        body = reply.body
        if body is None:
            body = error_body(request.wire, reply.type, reply.message, reply.code)
            if request.wire == "gemini":
                body = llm_wire_gemini.error_body(reply.status, reply.type, reply.message)
        _document(handler, reply.status, body, reply.headers)
        return
    if isinstance(reply, Broken) and reply.fault == "hangs":
        service.hold()
        handler.close_connection = True
        return
    if isinstance(reply, Streamed):
        _stream(handler, service, request.wire, iter(reply.events), None)
        return
    said = reply.said if isinstance(reply, Broken) else reply
    if not request.streams and isinstance(reply, Said):
        _document(handler, 200, DOCUMENTS[request.wire](said, request.body))
        return
    events = EVENTS[request.wire](said, request.body)
    _stream(handler, service, request.wire, events, reply if isinstance(reply, Broken) else None)


def _document(
    handler: BaseHTTPRequestHandler,
    status: int,
    body: Mapping[str, Any] | str,
    headers: Mapping[str, str] | None = None,
) -> None:
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    handler.close_connection = True
    handler.send_response(status)
    kind = "text/html" if isinstance(body, str) else "application/json"
    own = {"content-type": kind, "content-length": str(len(data)), "connection": "close",
           "request-id": "req_1", "x-request-id": "req_1"}  # fmt: skip
    for name, value in {**own, **(headers or {})}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(data)


def _stream(
    handler: BaseHTTPRequestHandler,
    service: LLMService,
    wire: Wire,
    events: Iterator[Event],
    breaks: Broken | None,
) -> None:
    handler.close_connection = not service.keeps_alive or breaks is not None
    handler.send_response(200)
    for name, value in {"content-type": "text/event-stream", "transfer-encoding": "chunked",
                        "connection": "close" if handler.close_connection else "keep-alive",
                        "request-id": "req_1", "x-request-id": "req_1"}.items():  # fmt: skip
        handler.send_header(name, value)
    handler.end_headers()
    pieces = 0
    for event in events:
        if breaks is not None:
            if pieces == breaks.after:
                if not _break(handler, service, wire, breaks):
                    return
                break
            pieces += is_piece(event)
        _chunk(handler, _encoded(event))
    if breaks is not None and breaks.after < 0 and not _break(handler, service, wire, breaks):
        return
    _chunk(handler, b"")  # the last one: all has been said


def _break(
    handler: BaseHTTPRequestHandler, service: LLMService, wire: Wire, breaks: Broken
) -> bool:
    """Break a stream; whether it ends as if all had been said."""
    fault = breaks.fault
    if fault == "garbles":
        _chunk(handler, b'event: content_block_delta\ndata: {"type": "content_bl\n\n')
    elif fault == "errs":
        body = error_body(wire, breaks.error, "it failed in mid-answer", breaks.error)
        if wire == "responses":
            body = {"type": "error", "code": breaks.error, "message": "it failed in mid-answer",
                    "param": None, "sequence_number": breaks.after}  # fmt: skip
        _chunk(handler, _encoded((None if wire == "chat" else "error", body)))
    elif fault == "stalls":
        service.hold()
    elif fault == "resets":
        # No time to linger: the kernel sends a reset (socket(7)).
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.connection.close()
    return fault in {"ends", "garbles", "errs"}


def _encoded(event: Event) -> bytes:
    name, data = event
    text = data if isinstance(data, str) else json.dumps(data)
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {text}\n\n".encode()


def _chunk(handler: BaseHTTPRequestHandler, data: bytes) -> None:
    handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
