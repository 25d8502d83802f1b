"""Telling people that something waits for them: what is told, and to whom.

A notification is a small object of JSON. A channel sends it: a webhook (`Webhook`), or a command
(`loki.execution.assembly`). One that fails is one warning: work goes on.
"""

from __future__ import annotations

import json
import logging
import threading
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, get_args
from urllib.parse import urlsplit

from loki.base import codec
from loki.base.error import LokiError, UsageError
from loki.base.secret import masked
from loki.base.time import Clock, isoformat
from loki.config import NotificationKind

KINDS: tuple[NotificationKind, ...] = get_args(NotificationKind)

TIMEOUT = 10.0
"""Seconds that a channel may take; chosen, not measured."""

logger = logging.getLogger("loki")


@dataclass(frozen=True, slots=True)
class Notification:
    """What people are told.

    Attributes:
        kind: one of `KINDS`.
        text: what happened, in a sentence or two.
        at: when, ISO 8601 UTC.
        project: the project's folder.
        task_id: the task that it is about, or "".
        id: of what waits, as ``loki status`` shows it, or "".
        answer: the command that answers it, or "".
    """

    kind: NotificationKind
    text: str
    at: str
    project: str = ""
    task_id: str = ""
    id: str = ""
    answer: str = ""

    def body(self) -> bytes:
        """As it is sent: JSON in UTF-8, secrets masked."""
        text = json.dumps(masked(codec.write(self)), ensure_ascii=False)
        return text.encode("utf-8", "backslashreplace")


class Channel(Protocol):
    """Sends notifications somewhere; ``name`` holds no secret."""

    @property
    def name(self) -> str:
        """What it is called in a warning."""

    def send(self, body: bytes) -> None:
        """Send one.

        Raises:
            OSError, LokiError: it did not arrive, for all that is known.
        """


@dataclass
class Notifier:
    """Tells people, by every channel that there is.

    Args:
        channels: whom to tell.
        kinds: of what; all where nothing is said.
        project: the project's folder.
        clock: the time.

    Example:
        >>> from loki.base.time import SystemClock
        >>> Notifier((), KINDS, "/srv/app", SystemClock()).notify("escalation", "look").kind
        'escalation'
    """

    channels: Sequence[Channel]
    kinds: Sequence[str]
    project: str
    clock: Clock
    _warned: set[str] = field(default_factory=set, init=False)

    def notify(
        self,
        kind: NotificationKind,
        text: str,
        *,
        task_id: str = "",
        id: str = "",  # noqa: A002 - the name of the field everywhere else
        answer: str = "",
    ) -> Notification:
        """Tell people; never raises: what is not told stands in ``loki status`` all the same.

        Args:
            kind: one of `KINDS`.
            text: what happened.
            task_id: the task that it is about.
            id: of what waits.
            answer: the command that answers it.
        """
        at = isoformat(self.clock.now())
        told = Notification(kind, text, at, self.project, task_id, id, answer)
        for channel in self.channels if kind in self.kinds else ():
            self._send(channel, told.body())
        return told

    def _send(self, channel: Channel, body: bytes) -> None:
        try:
            channel.send(body)
        except (OSError, LokiError, ValueError) as error:
            if channel.name not in self._warned:  # one is enough to be looked at
                self._warned.add(channel.name)
                logger.warning("nobody was told by %s: %s", channel.name, error)


class Webhook:
    """POSTs notifications to a URL; it follows no redirect, and waits for no answer's body.

    Args:
        url: where to; http or https. It may hold a secret, and is never shown.
        timeout: seconds, for all of it.

    Raises:
        UsageError: it is no such URL.
    """

    def __init__(self, url: str, timeout: float = TIMEOUT) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise UsageError("the webhook's URL is none: expected https://… or http://…")
        self._url = url
        self._timeout = timeout
        self.name = f"the webhook at {parts.scheme}://{parts.hostname}"
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if parts.hostname in {"localhost", "127.0.0.1", "::1"}:
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def send(self, body: bytes) -> None:
        """POST one notification.

        Raises:
            OSError: it did not arrive, or was not taken.
        """
        failed: list[Exception] = []

        def post() -> None:
            try:
                self._post(body)
            except Exception as error:
                failed.append(error)

        # A server that sends a byte now and then never runs into a time-out of its socket.
        thread = threading.Thread(target=post, name="loki-webhook", daemon=True)
        thread.start()
        thread.join(self._timeout)
        if thread.is_alive() or (failed and isinstance(failed[0], TimeoutError)):
            raise OSError(f"it took longer than {self._timeout:g} s")
        if failed:
            raise OSError(_said(failed[0])) from None  # its own words may hold the URL

    def _post(self, body: bytes) -> None:
        request = urllib.request.Request(  # noqa: S310 - looked at above
            self._url,
            body,
            {"Content-Type": "application/json", "User-Agent": "loki", "Connection": "close"},
            method="POST",
        )
        try:
            with self._opener.open(request, timeout=self._timeout):
                pass
        except urllib.error.HTTPError as error:
            error.close()  # it holds the connection
            raise


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """What is told to one address is told to no other."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """None: the answer is an error."""


def _said(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"it answered with HTTP status {error.code}"
    if isinstance(error, urllib.error.URLError):
        reason = error.reason
        if isinstance(reason, OSError):
            return reason.strerror or type(reason).__name__
        return "it cannot be reached"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return f"it cannot be reached ({type(error).__name__})"
