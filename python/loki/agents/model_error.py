"""What became of a call to a model: whatever a client raises, as one `loki.LLMError`.

What services say is data: ``model-errors.yml``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from loki.action.gates import yaml_model
from loki.base.error import OUTAGES, ErrorKind, LLMError
from loki.base.secret import mask_secrets
from loki.base.token_estimate import clip_line
from loki.decision.retry_after import retry_after

LONGEST = 500
"""Characters of a service's words in a message; chosen, not measured."""

OK, SERVER_ERROR = 400, 500  # HTTP statuses below the first are no errors


class _Rule(BaseModel, extra="forbid", frozen=True):
    kind: ErrorKind
    names: frozenset[str] = frozenset()
    says: tuple[str, ...] = ()
    source: str


class _Knowledge(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

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
    path = Path(__file__).with_name("model-errors.yml")
    return yaml_model.read(path.read_bytes(), path.name, _Knowledge)


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
    hint = f"; it asks to wait {wait:g} s" if wait else _hint(kind, service)
    said = said.rstrip(".") if hint else said
    request_id = headers.get("request-id") or headers.get("x-request-id") or ""
    return service.error(
        f"{head}: {said}{hint}",
        kind,
        status=status,
        retry_after=wait,
        request_id=request_id,
        output=output,
    )


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


def _hint(kind: ErrorKind, service: Service) -> str:
    hints: dict[str, str] = {
        "authentication": f": is the key right ({service.variable}, or the api_key_variable of its "
        "[agents.NAME])?",
        "permission": f": may the key in {service.variable} use this model?",
        "not_found": ": is the model's name right, and the base URL?",
        "too_long": ": show it less of the project (files_tokens of [agents.NAME])",
        "quota": ": a person has to raise the limit or pay; asking again does not help",
    }
    return hints.get(kind, "")


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
