"""One call to a model over the wire: in time, cancelled soon, no longer than it may be.

What the adapters of the official clients share. They are asynchronous inside: only there can a read
that waits be ended at once. ``complete`` runs that in an event loop that is kept for it (`kept_client`).
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from loki.action.llm_protocol import Answer, Ending, Request, TokenUsage
from loki.agents.model_error import Service, client_error
from loki.base.error import LLMError, UsageError
from loki.base.secret import holds_secret
from loki.base.time import Clock
from loki.base.token_usage import tokens_said

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

    def refuse(self, piece: str | None = None) -> str:
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
            raise service.error(
                what if is_cut else "the answer is empty",
                "malformed",
                retryable=not is_cut,
            )
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
    model: str, variable: str, given: str | None, base_url: str | None, found: str | None = None
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
