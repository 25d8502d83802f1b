"""Any model that pydantic-ai knows, as one of loki's.

What is sent and why: ``docs/design/llm.md``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from loki.action.agent_protocol import Request
from loki.agents.model_call import (
    CalledLLM,
    Draft,
    Options,
    Service,
    client_error,
    collect,
    loaded,
    status_error,
    without_none,
)
from loki.agents.openai_llm import FINISHES
from loki.base.error import UsageError
from loki.base.time import Clock, SystemClock

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings


class PydanticAILLM(CalledLLM):
    """A model of pydantic-ai's: of any provider that it knows.

    Streams always; one call over the wire for a request.

    Example:
        >>> llm = PydanticAILLM("test")
        >>> llm.provider, llm.model, llm.breaker
        ('test', 'test', 'api/test/test')
    """

    def __init__(
        self,
        model: str | Model,
        *,
        temperature: float | None = None,
        effort: str | None = None,
        headers: Mapping[str, str] | None = None,
        breaker: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        """A model; nothing is sent yet.

        Args:
            model: as pydantic-ai names it, ``google:gemini-3-pro`` for instance, or one of its models,
                with a client and settings of its own.
            temperature: None: the model's own.
            effort: how hard it thinks: ``minimal``, ``low``, ``medium``, ``high``, …; None: its own.
            headers: sent with each request.
            breaker: name of the circuit breaker; None: by provider and model.
            clock: what a Retry-After date is seen from.

        Raises:
            UsageError: pydantic-ai is not installed, does not know the model, or finds no key for it.
        """
        self._of = _model(model)
        self.provider, self.model = self._of.system, self._of.model_name
        where = self._of.base_url or ""
        self.breaker = breaker or f"api/{self.provider}/{self.model}"
        self._options = Options(temperature, effort, headers or {})
        self._clock: Clock = clock or SystemClock()
        self._service = Service(self.provider, self.model, "its provider's key", where)

    async def _ask(self, request: Request, draft: Draft) -> None:
        asked = self._of.request_stream(_messages(request), self._settings(request), _form(request))
        with self._errors(draft):
            async with asked as stream:
                await collect(aiter(stream), _read, draft, self._service, request)
                _complete(draft, stream.get())

    def _settings(self, request: Request) -> ModelSettings:
        from pydantic_ai.settings import merge_model_settings

        said: dict[str, Any] = {
            "max_tokens": request.max_tokens,
            "timeout": request.timeout,
            "temperature": self._options.temperature,
            "thinking": self._options.effort,
            "extra_headers": dict(self._options.headers) or None,
        }
        if "max_retries" not in self._of.unsupported_settings:
            said["max_retries"] = 0  # loki is the one who asks again
        own = cast("ModelSettings", without_none(said))
        return merge_model_settings(self._of.settings, own) or own

    @contextmanager
    def _errors(self, draft: Draft) -> Iterator[None]:
        """What pydantic-ai makes of a client's errors, as loki's."""
        from pydantic_ai import exceptions

        try:
            yield
        except exceptions.ModelHTTPError as error:
            body = error.body or error.message
            headers, now = error.headers or {}, self._clock.now()
            status = error.status_code
            made = status_error(self._service, status, body, headers, now, draft.output)
            made.retry_after = made.retry_after or error.retry_after
            raise made from None
        except exceptions.ModelAPIError as error:
            cause = error.__cause__
            known = isinstance(cause, Exception) and client_error(
                self._service, cause, self._clock.now(), draft.output
            )
            raise (known or self._service.error(error.message, "connection")) from None
        except exceptions.UnexpectedModelBehavior as error:
            raise ValueError(str(error)) from error


def _messages(request: Request) -> list[ModelMessage]:
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

    made: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(one.text)])
        if one.role == "user"
        else ModelResponse(parts=[TextPart(one.text)])
        for one in request.messages
    ]
    if request.system and isinstance(made[-1], ModelRequest):
        made[-1].instructions = request.system
    return made


def _form(request: Request) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    if request.tool is None:
        return ModelRequestParameters()
    tool = ToolDefinition(
        name=request.tool.name,
        description=request.tool.description,
        parameters_json_schema=dict(request.tool.schema),
        kind="output",
    )
    return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)


def _read(draft: Draft, event: Any) -> str:
    """Take over what an event says; the piece of text in it."""
    if event.event_kind == "part_start":
        if event.part.part_kind == "text":
            return draft.say(event.part.content)
        if event.part.part_kind == "tool-call":
            return draft.call(event.index, _arguments(event.part.args))
    elif event.event_kind == "part_delta":
        if event.delta.part_delta_kind == "text":
            return draft.say(event.delta.content_delta)
        if event.delta.part_delta_kind == "tool_call":
            return draft.call(event.index, _arguments(event.delta.args_delta))
    return ""


def _arguments(args: object) -> str | None:
    return args if args is None or isinstance(args, str) else json.dumps(args)


def _complete(draft: Draft, response: Any) -> None:
    draft.is_whole = response.finish_reason is not None or response.state == "complete"
    draft.named(response.model_name)
    draft.ending = FINISHES.get(response.finish_reason or "stop", "end")
    draft.request_id = response.provider_response_id or ""
    usage = response.usage
    draft.count(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cache_read=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
    )


def _model(model: str | Model) -> Model:
    loaded("pydantic_ai", "pydantic-ai", "pydantic-ai")
    from pydantic_ai import exceptions
    from pydantic_ai.models import infer_model

    try:
        return infer_model(model)
    except (exceptions.UserError, ImportError, ValueError) as error:
        raise UsageError(f"pydantic-ai has no model {str(model)!r}: {error}") from error
