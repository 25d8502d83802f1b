"""One call to a model over the wire: in time, cancelled soon, no longer than it may be.

What the adapters of clients share. They are asynchronous inside: only there can a read that waits be
ended at once. An asynchronous client belongs to the event loop it was used in, so there is one for each;
calls of those who have no loop go through one in a thread of its own.

Whatever a client raises becomes one `loki.LLMError`. What services say is data: ``model-errors.yml``.
"""

from __future__ import annotations

import asyncio
import atexit
import ipaddress
import os
import threading
import weakref
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
)
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import urlsplit

from loki.action.agent_protocol import Answer, Ending, Request
from loki.action.loop.agent_call import LOST, exception_causes, http_status_of, run_coroutine
from loki.base.error import OUTAGES, ErrorKind, LLMError, UsageError
from loki.base.secret import holds_secret, mask_secrets
from loki.base.time import Clock, Duration, SystemClock, argument_seconds
from loki.base.tokens import TokenUsage, clip_line, tokens_said
from loki.base.yaml_document import Strict, read_beside
from loki.decision.retry import retry_after

# --- What became of a call ----------------------------------------------------------------------------

LONGEST = 500
"""Characters of a service's words in a message; chosen, not measured."""

OK, SERVER_ERROR = 400, 500  # HTTP statuses below the first are no errors


class _Rule(Strict):
    kind: ErrorKind
    names: frozenset[str] = frozenset()
    says: tuple[str, ...] = ()
    source: str


class _Knowledge(Strict):
    rules: tuple[_Rule, ...]
    statuses: Mapping[int, ErrorKind]


@dataclass(frozen=True, slots=True)
class Service:
    """Who was asked.

    Attributes:
        provider, model: as the LLM says.
        variable: the environment variable of the key.
        url: where it is; "": not known.
    """

    provider: str
    model: str
    variable: str
    url: str = ""

    @property
    def place(self) -> str:
        """Where it is, without path and password: `` to http://localhost:8000``, or ""."""
        parts = urlsplit(self.url)
        return f" to {parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else ""

    def error(self, message: str, kind: ErrorKind, **more: Any) -> LLMError:
        """An error of this service; ``more`` as `loki.LLMError` takes it."""
        text = f"{self.provider} {self.model}: {mask_secrets(message)}"
        return LLMError(text, kind, provider=self.provider, model=self.model, **more)


@cache
def _knowledge() -> _Knowledge:
    return read_beside(__file__, "model-errors.yml", _Knowledge)


def kind_of(status: int | None, body: object) -> ErrorKind:
    """What an error of a service means.

    Args:
        status: the HTTP status; None: it came inside a stream.
        body: the answer, read as JSON where it is that.

    Example:
        >>> kind_of(429, {"error": {"type": "insufficient_quota", "message": "Check your plan."}})
        'quota'
        >>> kind_of(429, "<html>Too many requests</html>"), kind_of(504, None)
        ('rate_limit', 'server')
    """
    names, message = frozenset(_names(body)), _message(body).casefold()
    known = _knowledge()
    for rule in known.rules:
        if names & rule.names or any(words in message for words in rule.says):
            # A gateway in between knows the status better than an error type that is sent for all.
            if rule.kind in _GENERAL and status is not None:
                break
            return rule.kind
    if status is None or status >= SERVER_ERROR:
        return known.statuses.get(status or 0, "server")
    return known.statuses.get(status, "bad_request")


_GENERAL = frozenset({"server", "bad_request"})
"""Kinds whose error types stand for many things."""


def status_error(
    service: Service,
    status: int | None,
    body: object,
    headers: Mapping[str, str],
    now: datetime,
    output: str = "",
) -> LLMError:
    """An error that the service told.

    Args:
        service: who was asked.
        status: the HTTP status; None, or below 400: it came inside a stream.
        body: the answer, read as JSON where it is that.
        headers: of the answer.
        now: the time that a Retry-After date is seen from, with a zone.
        output: what had been answered before.
    """
    status = status if status is not None and status >= OK else None
    kind = kind_of(status, body)
    what = next(_names(body), "")
    said = _brief(_message(body)) or "no reason was given"
    head = " ".join(filter(None, [str(status or ""), what])) or "an error in mid-answer"
    wait = retry_after(headers, now) if kind in OUTAGES else None
    hint = _HINTS.get(kind, "").format(variable=service.variable)
    hint = f"; it asks to wait {wait:g} s" if wait else hint
    said = said.rstrip(".") if hint else said
    request_id = headers.get("request-id") or headers.get("x-request-id") or ""
    more = {"retry_after": wait, "request_id": request_id, "output": output}
    return service.error(f"{head}: {said}{hint}", kind, status=status, **more)


def client_error(
    service: Service, error: Exception, now: datetime, output: str = ""
) -> LLMError | None:
    """Whatever a client of the official kind raises, normalized; None: it is no error of a call.

    Args:
        service: who was asked.
        error: what was raised: by the client, by the HTTP library below it, or while an event
            was read.
        now: the time that a Retry-After date is seen from.
        output: what had been answered before.
    """
    names = {base.__name__ for base in type(error).__mro__}
    response = getattr(error, "response", None)
    if "APIStatusError" in names:
        status, body = getattr(error, "status_code", None), getattr(error, "body", None)
        return status_error(service, status, body or str(error), response.headers, now, output)  # type: ignore[union-attr]
    for kind, known, message in _FAILURES:
        if names & known:
            said = _brief(str(error.__cause__ or error)) or type(error).__name__
            return service.error(message.format(said, to=service.place), kind, output=output)
    if "APIError" in names:  # inside a stream
        return status_error(service, None, getattr(error, "body", None), {}, now, output)
    return None


_FAILURES: tuple[tuple[ErrorKind, frozenset[str], str], ...] = (
    (
        "timeout",
        frozenset({"APITimeoutError", "TimeoutException", "TimeoutError"}),
        "nothing came in time, or no longer",
    ),
    (
        "connection",
        frozenset({"APIConnectionError", "TransportError", "OSError", "EndOfStream"}),
        "the connection{to} failed: {}",
    ),
    ("bad_request", frozenset({"UnicodeEncodeError"}), "the request cannot be sent: {}"),
    (
        "malformed",
        frozenset({"APIResponseValidationError", "ValueError"}),
        "the answer cannot be read: {}",
    ),
)
"""What errors of a client mean, by names of their classes.

By name: the HTTP library below the clients goes by different ones in their versions, and what it
raises in mid-stream reaches us as it is."""


def is_about_force(message: str) -> bool:
    """Whether a bad request was one because it makes the model call a tool.

    Models that always think refuse that, as do some compatible services. Source:
    https://platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5

    Example:
        >>> is_about_force("tool_choice: type 'tool' is not supported for this model")
        True
    """
    said = message.casefold()
    return any(words in said for words in ("tool_choice", "forced tool", "forces tool"))


_HINTS: Mapping[str, str] = {
    "authentication": ": is the key right ({variable}, or the api_key_variable of its [agents.NAME])?",
    "permission": ": may the key in {variable} use this model?",
    "not_found": ": is the model's name right, and the base URL?",
    "too_long": ": show it less of the project (files_tokens of [agents.NAME])",
    "quota": ": a person has to raise the limit or pay; asking again does not help",
}
"""What to do about it, by kind."""


def _error(body: object) -> Mapping[str, Any]:
    """The error in a body, in any of the forms that services use."""
    if not isinstance(body, Mapping):
        return {"message": body if isinstance(body, str) else ""}
    inner = body.get("error", body)
    if isinstance(inner, Mapping):
        return inner
    return {"message": inner if isinstance(inner, str) else ""}


def _brief(text: str) -> str:
    return clip_line(" ".join(text.split()), LONGEST)


def _names(body: object) -> Iterator[str]:
    """The most telling name first."""
    error = _error(body)
    details = error.get("details")
    more = details.get("error_code") if isinstance(details, Mapping) else None
    for name in (more, error.get("code"), error.get("type")):
        if isinstance(name, str) and name:
            yield name


def _message(body: object) -> str:
    error = _error(body)
    said = error.get("message") or error.get("detail") or ""
    return said if isinstance(said, str) else str(said)


# --- Whether it was an outage, whoever's client that is -----------------------------------------------

_CLIENTS = frozenset(
    {
        "APIStatusError",
        "APITimeoutError",
        "APIConnectionError",
        "TimeoutException",
        "TransportError",
    }
)


def outage(error: Exception, name: str, now: datetime) -> LLMError | None:
    """An outage, normalized; None: asking again does not help, or it is no error of a call at all.

    Clients' errors are known by their names, as `loki.agents.model_call.client_error` knows them; any
    other by the HTTP status that it carries. Frameworks wrap them, so causes are looked at, too; a group
    of errors is an outage where each of them is an error of a call, and one of them an outage.

    Args:
        error: what was raised.
        name: whom was asked, for messages.
        now: the time that a Retry-After date is seen from, with a zone.

    Example:
        >>> from datetime import timezone
        >>> now = datetime(2026, 4, 4, tzinfo=timezone.utc)
        >>> outage(ConnectionResetError("reset"), "api/x/y", now).kind, outage(KeyError("x"), "x", now)
        ('connection', None)
    """
    found = normalized(error, name, now)
    return found if found is not None and found.retryable else None


def normalized(error: Exception, name: str, now: datetime) -> LLMError | None:
    """What became of a call, whether asking again helps or not; None: it is no error of a call.

    Args:
        error, name, now: as `outage` takes them.
    """
    group = getattr(error, "exceptions", None)
    if isinstance(group, tuple) and group:
        each = [normalized(one, name, now) for one in group]
        told = [one for one in each if one is not None]
        is_calls = len(told) == len(each)
        return next((one for one in told if one.retryable), told[0]) if is_calls else None
    provider, _, model = name.removeprefix("api/").partition("/")
    service = Service(provider, model, "its key")
    return next(
        (one for cause in exception_causes(error) if (one := _of(cause, service, now))), None
    )


def _of(error: Exception, service: Service, now: datetime) -> LLMError | None:
    if isinstance(error, LLMError):
        return error
    if isinstance(error, LOST) or {base.__name__ for base in type(error).__mro__} & _CLIENTS:
        return client_error(service, error, now)
    status = http_status_of(error)
    if status is None:
        return None
    body = getattr(error, "body", None) or str(error)
    return status_error(service, status, body, _headers(error), now)


def _headers(error: Exception) -> Mapping[str, Any]:
    for holder in (getattr(error, "response", None), error):
        headers = getattr(holder, "headers", None)
        if isinstance(headers, Mapping):
            return headers
    return {}


# --- Clients that are kept between calls, with their connections --------------------------------------

_T = TypeVar("_T")


class PersistentClient:
    """A client for each event loop that asks; closed with the loop, or with its owner.

    Args:
        make: makes one, of either official library.
        closes: its connections are its own: a caller's are the caller's to close.
    """

    def __init__(self, make: Callable[[], Any], *, closes: bool) -> None:
        self._make, self._closes = make, closes
        self._lock = threading.Lock()
        self._of: dict[asyncio.AbstractEventLoop, tuple[Any, AsyncGenerator[Any, None]]] = {}
        # Held by the finalizer: what is garbage together with its owner is not closed any more.
        weakref.finalize(self, _close_all, self._of).atexit = False

    async def client(self) -> Any:
        """The running loop's."""
        loop = asyncio.get_running_loop()
        with self._lock:
            for one in [one for one in self._of if one.is_closed()]:
                del self._of[one]
            kept = self._of.get(loop)
        if kept is None:
            # A loop ends its asynchronous generators before it is closed: nothing else hears of that.
            holder = _held(self._make(), closes=self._closes)
            kept = await holder.__anext__(), holder
            with self._lock:
                self._of[loop] = kept
        return kept[0]


async def _held(client: Any, *, closes: bool) -> AsyncGenerator[Any, None]:
    try:
        yield client
    finally:
        with suppress(RuntimeError):  # a loop that is ending may have closed the connections
            if closes:
                await client.close()


def _close_all(
    kept: Mapping[asyncio.AbstractEventLoop, tuple[object, AsyncGenerator[Any, None]]],
) -> None:
    for loop, (_, holder) in kept.items():
        with suppress(RuntimeError):  # closed, and its clients with it
            loop.call_soon_threadsafe(_close, loop, holder)


def _close(loop: asyncio.AbstractEventLoop, holder: AsyncGenerator[Any, None]) -> None:
    closing = loop.create_task(holder.aclose())
    _closings.add(closing)
    closing.add_done_callback(_closings.discard)


_closings: set[asyncio.Task[None]] = set()  # a loop holds its tasks weakly


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="loki-models", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def is_here(self) -> bool:
        """Whether this is its thread."""
        return threading.current_thread() is self._thread

    def stop(self) -> None:
        """End it with what it keeps open."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(1)


class _Shared:
    """The loop of this process, begun when it is needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: _Loop | None = None

    def loop(self) -> _Loop:
        """That loop."""
        with self._lock:
            if self._loop is None:
                self._loop = _Loop()
                atexit.register(self._loop.stop)
            return self._loop

    def in_child(self) -> None:
        """A process was forked: its thread is not here, and what it keeps open is the parent's."""
        if self._loop is not None:
            atexit.unregister(self._loop.stop)
            _inherited.append(self._loop)
        self.__init__()  # type: ignore[misc]


_inherited: list[object] = []  # closing them would reach into what the parent shares
_shared = _Shared()
os.register_at_fork(after_in_child=_shared.in_child)


def run_with_clients(work: Coroutine[Any, Any, _T]) -> _T:
    """The outcome of a coroutine; a running event loop is blocked by it.

    Example:
        >>> async def answer():
        ...     return 42
        >>> run_with_clients(answer())
        42
    """
    shared = _shared.loop()
    if shared.is_here():  # a model is asked while a piece of another's answer is told
        return run_coroutine(work)  # type: ignore[no-any-return]
    future = asyncio.run_coroutine_threadsafe(_outcome(work), shared.loop)
    try:
        value, error = future.result()
    except BaseException:  # Ctrl-C: what runs there hears nothing of it
        future.cancel()
        raise
    if error is not None:
        raise error
    return value  # type: ignore[return-value]


async def _outcome(work: Coroutine[Any, Any, _T]) -> tuple[_T | None, BaseException | None]:
    """What came of it; an exception as a value: some end the loop that they come through."""
    try:
        return await work, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return None, error


# --- One call -----------------------------------------------------------------------------------------

STALL = 300.0
"""Seconds without a byte after which a stream counts as stalled, where nothing else is said.

Models that think before they answer are silent for minutes. Chosen, not measured."""

CONNECT = 15.0
"""Seconds that a connection may take to come about. Chosen, not measured."""

LONGEST_ANSWER = 8_000_000
"""Characters of an answer, at most: over ten times what models can say at once, so that whoever
answers more is broken. Chosen, not measured."""

KEPT = 2_000
"""Characters of an unfinished answer that an error keeps. Chosen, not measured."""

LONGEST_NAME = 200
"""Characters of a model's name, at most. Chosen, not measured."""

GLANCE = 0.05
"""Seconds between two looks at whether the call is to be ended. Chosen: nobody notices."""

HOTTEST = 2
"""The highest temperature that any service takes: OpenAI's Chat Completions."""

_allowed = True


@dataclass(frozen=True)
class Options:
    """What goes with every request to one model.

    Attributes:
        temperature: None: the model's own.
        effort: how hard it thinks, in the service's words; None: its own.
        headers: of HTTP, besides the client's.
        http_client: the caller's own; None: the client's.

    Raises:
        UsageError: the temperature can be none.
    """

    temperature: float | None = None
    effort: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    http_client: Any = None

    def __post_init__(self) -> None:
        value = self.temperature
        if value is not None and not (isinstance(value, (int, float)) and 0 <= value <= HOTTEST):
            raise UsageError(f"temperature is {value!r}: expected a number from 0 to {HOTTEST}")


def allow_calls(allowed: bool) -> bool:
    """Allow or forbid every call over the wire; whether they were allowed before.

    For tests: see `loki.testing.no_model_calls`.
    """
    global _allowed
    before, _allowed = _allowed, allowed
    return before


@dataclass
class Draft:
    """An answer as far as it has come.

    Attributes:
        text, arguments: in pieces; arguments None: the tool has not been called.
        refusal: pieces of the words by which the model refuses.
        is_whole: the stream's last event has come.
        content_type: of the answer.
        cost: US dollars, where the service says so.
        size: characters of all pieces.
    """

    text: list[str] = field(default_factory=list)
    arguments: list[str] | None = None
    refusal: list[str] = field(default_factory=list)
    ending: Ending = "end"
    usage: TokenUsage = field(default_factory=TokenUsage)
    model: str = ""
    request_id: str = ""
    is_whole: bool = False
    content_type: str = ""
    cost: float | None = None
    size: int = 0
    _call: object = None

    def say(self, piece: str | None) -> str:
        """Add to the text; the piece."""
        return self._add(self.text, piece)

    def call(self, key: object, piece: str | None = None) -> str:
        """The tool is called; add to its arguments. Of several calls, by their keys, the first counts."""
        if self.arguments is None:
            self.arguments, self._call = [], key
        if key == self._call:
            self._add(self.arguments, piece)
        return ""

    def refuse(self, piece: str | None) -> str:
        """The model refuses."""
        self.ending = "refused"
        self._add(self.refusal, piece)
        return ""

    def _add(self, pieces: list[str], piece: str | None) -> str:
        if not piece:
            return ""
        if not isinstance(piece, str):  # the clients do not check what services send
            raise TypeError(f"{type(piece).__name__} for text")
        pieces.append(piece)
        self.size += len(piece)
        return piece

    @property
    def output(self) -> str:
        """The end of what has come, for an error."""
        return "".join([*self.text, *(self.arguments or ())])[-KEPT:]

    def answer(self, service: Service) -> Answer:
        """The whole answer.

        Raises:
            LLMError: it ended before its end, or says nothing.
        """
        if not self.is_whole and "event-stream" not in self.content_type:
            what = self.content_type or "something"
            message = f"it answered with {what} instead of a stream: is the base URL right?"
            raise service.error(message, "malformed", retryable=False)
        if not self.is_whole:
            message = "the answer was cut off: its stream ended before its last event"
            raise service.error(message, "connection", output=self.output)
        text = "".join(self.text) or "".join(self.refusal)
        arguments = None if self.arguments is None else "".join(self.arguments)
        if not text.strip() and not arguments and self.ending != "refused":
            is_cut = self.ending == "length"
            what = "all tokens of the answer went into thinking: allow more (max_tokens)"
            message = what if is_cut else "the answer is empty"
            raise service.error(message, "malformed", retryable=not is_cut)
        ending = "tool" if arguments is not None and self.ending == "end" else self.ending
        model = self.model or service.model
        return Answer(text, arguments, ending, self.usage, model, self.request_id, self.cost)

    def opened(self, headers: Mapping[str, str], request_id: str) -> None:
        """Take over what the head of an answer says; ``request_id``: the header that has it."""
        self.request_id = headers.get(request_id, "")
        self.content_type = headers.get("content-type", "")

    def on(self, error: LLMError) -> LLMError:
        """An error with what is known of the call that it ended."""
        error.request_id = error.request_id or self.request_id
        error.usage, error.tokens, error.cost = self.usage, self.usage.total or None, self.cost
        return error

    def count(self, **tokens: object) -> None:
        """Take over counts of tokens, those that are said and can be."""
        said = {k: n for k, v in tokens.items() if (n := tokens_said(v)) is not None}
        self.usage = replace(self.usage, **said)

    def named(self, model: object) -> None:
        """Take over the model's name, where it is one."""
        if isinstance(model, str) and model:
            self.model = model[:LONGEST_NAME]


async def collect(
    events: AsyncIterator[Any],
    read: Callable[[Draft, Any], str],
    draft: Draft,
    service: Service,
    request: Request,
) -> None:
    """Read a stream to its end.

    Args:
        events: of the client.
        read: takes over what an event says into the draft; the piece of text in it.
        draft: what becomes of them.
        service: who answers.
        request: whose ``on_text`` gets the pieces.
    """
    async for event in events:
        try:
            piece = read(draft, event)
        except (AttributeError, KeyError, TypeError, IndexError) as error:
            # The clients do not check what services send.
            raise ValueError(f"an event in an unknown form: {error}") from error
        if draft.size > LONGEST_ANSWER:
            raise service.error(
                f"the answer is longer than {LONGEST_ANSWER:,} characters: the call was ended",
                "malformed",
                retryable=False,
                output=draft.output,
            )
        if piece and request.on_text is not None:
            try:
                request.on_text(piece)
            except BaseException as error:  # also what ends a program: it would end the loop, too
                raise _Caller(error) from error


class _Caller(Exception):
    """The caller's own code raised; no error of the service."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


async def perform(
    work: Callable[[Draft], Awaitable[None]], service: Service, request: Request, clock: Clock
) -> Answer:
    """A call, up to its answer.

    Args:
        work: makes the call, and collects into the draft what comes.
        service: who is asked.
        request: says how long it may take, and when it is to be ended.
        clock: what a Retry-After date is seen from.

    Raises:
        LLMError: no answer came.
        Exception: what ``on_text`` raised.
    """
    if not _allowed:
        raise service.error("calls to models are forbidden here", "bad_request")
    draft = Draft()
    try:
        await _in_time(work(draft), service, request, draft)
        return draft.answer(service)
    except _Caller as error:
        raise error.error from None
    except LLMError as error:
        if draft.is_whole and error.kind == "timeout":
            return draft.answer(service)
        draft.on(error)
        raise
    except Exception as error:
        known = client_error(service, error, clock.now(), draft.output)
        if known is None:
            raise
        if draft.is_whole and known.kind in {"connection", "timeout"}:
            # What is paid for is not asked again for want of a good-bye.
            return draft.answer(service)
        raise draft.on(known) from (None if holds_secret(str(error)) else error)


async def _in_time(work: Awaitable[None], service: Service, request: Request, draft: Draft) -> None:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    end = loop.time() + request.timeout
    try:
        while not task.done():
            if request.cancelled.is_set():
                raise service.error("the call was cancelled", "cancelled", output=draft.output)
            left = end - loop.time()
            if left <= 0:
                message = f"no whole answer within {request.timeout:g} s"
                raise service.error(message, "timeout", output=draft.output)
            await asyncio.wait({task}, timeout=min(GLANCE, left))
        task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        elif not task.cancelled():
            task.exception()  # Ctrl-C in one of its steps left the loop; asyncio would print it, too


def key_of(
    model: str, variable: str, given: str | None, base_url: str | None, found: str | None
) -> str | None:
    """The key that a client is to be given; None: it finds one by itself.

    Args:
        model: whom it is for, as people call it.
        variable: the environment variable that holds it.
        given: what the caller says.
        base_url: where the service is; one on this machine needs no key.
        found: what the client has found by itself.

    Raises:
        UsageError: there is none.
    """
    if given or found:
        return given
    if base_url is not None and is_local(base_url):
        return "none"
    raise UsageError(
        f"no key for {model}: set the environment variable {variable} (another one is "
        "api_key_variable of [agents.NAME] in .loki/config.toml, or api_key in Python)"
    )


def is_local(base_url: str) -> bool:
    """Whether an address is on this machine.

    Example:
        >>> is_local("http://localhost:11434/v1"), is_local("https://api.openai.com/v1")
        (True, False)
    """
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def breaker_name(provider: str, model: str, where: str, own: str) -> str:
    """The name of a model's circuit breaker: the same model elsewhere has one of its own.

    Args:
        provider, model: who is asked.
        where: its address.
        own: the provider's own host, or the end of it.

    Example:
        >>> breaker_name("openai", "gpt-5", "https://api.openai.com/v1", "openai.com")
        'api/openai/gpt-5'
        >>> breaker_name("openai", "qwen3", "http://localhost:11434/v1", "openai.com")
        'api/openai@localhost:11434/qwen3'
    """
    parts = urlsplit(where)
    host = parts.hostname or ""
    if host == own or host.endswith(f".{own}"):
        return f"api/{provider}/{model}"
    return f"api/{provider}@{parts.netloc.rpartition('@')[2]}/{model}"


def checked_url(base_url: str | None) -> str | None:
    """A base URL that can be one.

    Raises:
        UsageError: it is none.
    """
    if base_url is None:
        return None
    parts = urlsplit(base_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(
            f"base_url {base_url!r}: expected an address like 'http://localhost:8000/v1'"
        )
    return base_url


# --- What the models share: a call, blocking or not ---------------------------------------------------


class CalledLLM:
    """A model over the wire; whoever is one says in `_ask` how it is asked."""

    _service: Service
    _clock: Clock

    def complete(self, request: Request) -> Answer:
        """The model's answer.

        Raises:
            LLMError: there is none; ``kind`` says why.
        """
        return run_with_clients(self.acomplete(request))

    async def acomplete(self, request: Request) -> Answer:
        """The same without blocking the event loop."""
        return await perform(
            lambda draft: self._ask(request, draft), self._service, request, self._clock
        )

    async def _ask(self, request: Request, draft: Draft) -> None:
        raise NotImplementedError


def loaded(module: str, name: str, extra: str = "") -> Any:
    """The module of a client, which is an extra, loaded when the first model is made that needs it.

    Args:
        module: its name; name: what people call the client.
        extra: of loki's; "": called as the module is.

    Raises:
        UsageError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(
            f"{name} is not installed: pip install 'loki-core[{extra or module}]'"
        ) from error


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """What is sent: not what nobody has said, which is None."""
    return {name: value for name, value in values.items() if value is not None}


def plain_messages(request: Request) -> list[dict[str, str]]:
    """The conversation as the services take it."""
    return [{"role": message.role, "content": message.text} for message in request.messages]


class OfficialLLM(CalledLLM):
    """A model by its provider's official client; those of Anthropic and OpenAI are built alike.

    Whoever is one says in `_begin` what is sent, and in `_read` what an event says.
    """

    provider: str
    _company: str
    _client_name: str
    _host: str
    _variable: str
    _request_id: str

    def __init__(
        self,
        model: str,
        api_key: str | None,
        base_url: str | None,
        options: Options,
        stall: Duration,
        clock: Clock | None,
    ) -> None:
        """Args: as of the models that are one; where it is says `_place`."""
        self._module = loaded(self.provider, f"{self._company}'s client")
        self.model = model
        self.base_url = checked_url(base_url)
        self._api_key = api_key
        self._options = options
        self._stall = argument_seconds("stall", stall)
        self._clock = clock or SystemClock()
        self._can_force = True

    def _place(
        self, where: str, breaker: str | None, api_key: str | None, found: str | None
    ) -> None:
        """Take over where the client says that the service is; the rest as `key_of` takes it."""
        name = f"{self.provider}:{self.model}"
        self._api_key = key_of(name, self._variable, api_key, where, found)
        self._service = Service(self.provider, self.model, self._variable, where)
        own = breaker_name(self.provider, self.model, where, self._host)
        self.breaker = breaker or own
        self._is_own = "@" not in own.split("/", 2)[1]
        self._kept = PersistentClient(self._client, closes=self._options.http_client is None)

    def _client(self) -> Any:
        return getattr(self._module, self._client_name)(
            api_key=self._api_key,
            base_url=self.base_url,
            max_retries=0,
            timeout=None,
            default_headers=self._options.headers,
            http_client=self._options.http_client,
        )

    async def _ask(self, request: Request, draft: Draft) -> None:
        client = await self._kept.client()
        timeout = self._module.Timeout(min(self._stall, request.timeout), connect=CONNECT)
        try:
            stream = await self._begin(client, request, timeout)
        except self._module.BadRequestError as error:
            if request.tool is None or not self._can_force or not is_about_force(str(error)):
                raise
            self._can_force = False
            stream = await self._begin(client, request, timeout)
        async with stream:
            draft.opened(stream.response.headers, self._request_id)
            await collect(stream, self._read, draft, self._service, request)

    async def _begin(self, client: Any, request: Request, timeout: Any) -> Any:
        raise NotImplementedError

    def _read(self, draft: Draft, event: Any) -> str:
        raise NotImplementedError
