"""Three wire formats of model services, as their documentation shows them: events and documents.

Anthropic's Messages (https://platform.claude.com/docs/en/build-with-claude/streaming), OpenAI's Chat
Completions and Responses (https://platform.openai.com/docs/api-reference). Google's is in
`support.llm_wire_gemini`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Wire: TypeAlias = Literal["messages", "chat", "responses", "gemini"]
"""By the end of its path."""

Event: TypeAlias = tuple["str | None", "Mapping[str, Any] | str"]
"""Name of a server-sent event, where the format names them, and its data."""


@dataclass(frozen=True)
class Said:
    """An answer of a model, whatever the format.

    Attributes:
        text: what it says.
        arguments: of the call of the request's first tool, JSON text or values; None: no call.
        ending: ``end``, ``tool``, ``length`` or ``refused``.
        input, output, cached, written: tokens; those out of the cache and put into it are no part of
            ``input``.
        model: its name; "": as asked for.
        tool: the tool's name; "": the first one of the request.
        piece: characters of a piece of the stream.
        number: of the answer in its conversation: ids of messages and calls end with it.
    """

    text: str = ""
    arguments: str | Mapping[str, Any] | None = None
    ending: str = "end"
    input: int = 10
    output: int = 5
    cached: int = 0
    written: int = 0
    model: str = ""
    tool: str = ""
    piece: int = 12
    number: int = 1

    @property
    def call(self) -> str | None:
        """The arguments as text."""
        if self.arguments is None or isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments)

    def pieces(self, text: str) -> Iterator[str]:
        """A text as it is streamed."""
        return (text[i : i + self.piece] for i in range(0, len(text), self.piece))


def first_tool(body: Mapping[str, Any]) -> str:
    """The name of the first tool that a request knows, or ""."""
    tools = body.get("tools") or [{}]
    return str(tools[0].get("name") or tools[0].get("function", {}).get("name") or "")


def is_piece(event: Event) -> bool:
    """Whether an event of a stream carries a piece of the answer."""
    name, data = event
    if isinstance(data, str):
        return False
    if name is not None:
        return name.endswith(("_delta", ".delta")) and name != "message_delta"
    delta = (data.get("choices") or [{}])[0].get("delta", {})
    calls = delta.get("tool_calls") or [{}]
    return bool(delta.get("content") or calls[0].get("function", {}).get("arguments"))


def named(said: Said, body: Mapping[str, Any]) -> tuple[str, str]:
    """Names of the model and of the tool in an answer."""
    return said.model or str(body.get("model", "")), said.tool or first_tool(body)


# --- Anthropic's Messages ---------------------------------------------------------------------------

_STOP = {"end": "end_turn", "tool": "tool_use", "length": "max_tokens", "refused": "refusal"}


def _messages_usage(said: Said) -> dict[str, int]:
    return {
        "input_tokens": said.input,
        "cache_read_input_tokens": said.cached,
        "cache_creation_input_tokens": said.written,
    }


def messages_events(said: Said, body: Mapping[str, Any]) -> Iterator[Event]:
    """A stream as of ``/v1/messages``."""
    model, tool = named(said, body)
    message: dict[str, Any] = {"id": f"msg_{said.number}", "type": "message", "role": "assistant", "model": model, "content": [],
               "stop_reason": None, "stop_sequence": None,
               "usage": {**_messages_usage(said), "output_tokens": 1}}  # fmt: skip
    yield _typed("message_start", message=message)
    yield _typed("ping")
    blocks: list[tuple[dict[str, Any], str, str, str]] = []
    if said.text:
        blocks.append(({"type": "text", "text": ""}, "text_delta", "text", said.text))
    if said.call is not None:
        start = {"type": "tool_use", "id": f"toolu_{said.number}", "name": tool, "input": {}}
        blocks.append((start, "input_json_delta", "partial_json", said.call))
    for index, (start, kind, field, content) in enumerate(blocks):
        yield _typed("content_block_start", index=index, content_block=start)
        for piece in said.pieces(content):
            yield _typed("content_block_delta", index=index, delta={"type": kind, field: piece})
        yield _typed("content_block_stop", index=index)
    ending = "tool" if said.call is not None and said.ending == "end" else said.ending
    delta = {"stop_reason": _STOP[ending], "stop_sequence": None}
    yield _typed("message_delta", delta=delta, usage={"output_tokens": said.output})
    yield _typed("message_stop")


def messages_document(said: Said, body: Mapping[str, Any]) -> dict[str, Any]:
    """The same in one piece."""
    model, tool = named(said, body)
    content: list[dict[str, Any]] = [{"type": "text", "text": said.text}] if said.text else []
    if said.call is not None:
        values = json.loads(said.call)
        content.append(
            {"type": "tool_use", "id": f"toolu_{said.number}", "name": tool, "input": values}
        )
    ending = "tool" if said.call is not None and said.ending == "end" else said.ending
    return {"id": f"msg_{said.number}", "type": "message", "role": "assistant", "model": model,
            "content": content, "stop_reason": _STOP[ending], "stop_sequence": None,
            "usage": {**_messages_usage(said), "output_tokens": said.output}}  # fmt: skip


def _typed(kind: str, **fields: Any) -> Event:
    return kind, {"type": kind, **fields}


# --- OpenAI's Chat Completions ------------------------------------------------------------------------

_FINISH = {"end": "stop", "tool": "tool_calls", "length": "length", "refused": "content_filter"}


def _chat_usage(said: Said) -> dict[str, Any]:
    prompt = said.input + said.cached + said.written
    details = {"cached_tokens": said.cached, "cache_write_tokens": said.written}
    return {"prompt_tokens": prompt, "completion_tokens": said.output,
            "total_tokens": prompt + said.output, "prompt_tokens_details": details}  # fmt: skip


def chat_events(said: Said, body: Mapping[str, Any]) -> Iterator[Event]:
    """A stream as of ``/v1/chat/completions``; the usage comes where it was asked for."""
    model, tool = named(said, body)
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return None, {**head, "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in said.pieces(said.text):
        yield chunk({"content": piece})
    if said.call is not None:
        function = {"name": tool, "arguments": ""}
        yield chunk({"tool_calls": [{"index": 0, "id": f"call_{said.number}", "type": "function",
                                     "function": function}]})  # fmt: skip
        for piece in said.pieces(said.call):
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    ending = "tool" if said.call is not None and said.ending == "end" else said.ending
    yield chunk({}, _FINISH[ending])
    if (body.get("stream_options") or {}).get("include_usage"):
        yield None, {**head, "choices": [], "usage": _chat_usage(said)}
    yield None, "[DONE]"


def chat_document(said: Said, body: Mapping[str, Any]) -> dict[str, Any]:
    """The same in one piece."""
    model, tool = named(said, body)
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
    if said.call is not None:
        call = {"id": f"call_{said.number}", "type": "function",
                "function": {"name": tool, "arguments": said.call}}  # fmt: skip
        message["tool_calls"] = [call]
    ending = "tool" if said.call is not None and said.ending == "end" else said.ending
    choice = {"index": 0, "message": message, "finish_reason": _FINISH[ending]}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model,
            "choices": [choice], "usage": _chat_usage(said)}  # fmt: skip


# --- OpenAI's Responses -----------------------------------------------------------------------------------


def _responses_usage(said: Said) -> dict[str, Any]:
    prompt = said.input + said.cached + said.written
    details = {"cached_tokens": said.cached, "cache_write_tokens": said.written}
    return {"input_tokens": prompt, "input_tokens_details": details, "output_tokens": said.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt + said.output}  # fmt: skip


def responses_document(said: Said, body: Mapping[str, Any]) -> dict[str, Any]:
    """A whole answer as of ``/v1/responses``."""
    model, tool = named(said, body)
    output: list[dict[str, Any]] = []
    if said.ending == "refused":
        refusal = {"type": "refusal", "refusal": said.text or "I cannot help with that."}
        output.append(_output_message([refusal]))
    elif said.text:
        part = {"type": "output_text", "text": said.text, "annotations": []}
        output.append(_output_message([part]))
    if said.call is not None:
        output.append({"type": "function_call", "id": f"fc_{said.number}", "call_id": f"call_{said.number}", "name": tool,
                       "arguments": said.call, "status": "completed"})  # fmt: skip
    is_cut = said.ending == "length"
    return {"id": f"resp_{said.number}", "object": "response", "created_at": 1, "model": model, "error": None,
            "status": "incomplete" if is_cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "instructions": None, "metadata": {}, "parallel_tool_calls": True, "temperature": 1.0,
            "tool_choice": "auto", "tools": [], "top_p": 1.0, "output": output,
            "usage": _responses_usage(said)}  # fmt: skip


def responses_events(said: Said, body: Mapping[str, Any]) -> Iterator[Event]:
    """The same as a stream."""
    whole = responses_document(said, body)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None,
             "incomplete_details": None}  # fmt: skip
    events = [_typed("response.created", response=begun),
              _typed("response.in_progress", response=begun)]  # fmt: skip
    for index, item in enumerate(whole["output"]):
        events += _item_events(said, index, item)
    end = "response.incomplete" if whole["status"] == "incomplete" else "response.completed"
    for number, (kind, data) in enumerate([*events, _typed(end, response=whole)]):
        assert isinstance(data, dict)
        yield kind, {**data, "sequence_number": number}


def _item_events(said: Said, index: int, item: Mapping[str, Any]) -> Iterator[Event]:
    where: dict[str, Any] = {"output_index": index, "item_id": item["id"]}
    if item["type"] == "function_call":
        begun = {**item, "arguments": "", "status": "in_progress"}
        yield _typed("response.output_item.added", output_index=index, item=begun)
        for piece in said.pieces(item["arguments"]):
            yield _typed("response.function_call_arguments.delta", delta=piece, **where)
        yield _typed("response.function_call_arguments.done", arguments=item["arguments"],
                     name=item["name"], **where)  # fmt: skip
    else:
        begun = {**item, "content": [], "status": "in_progress"}
        yield _typed("response.output_item.added", output_index=index, item=begun)
        part = item["content"][0]
        kind = "refusal" if part["type"] == "refusal" else "output_text"
        text = part.get("text") or part.get("refusal")
        place = {**where, "content_index": 0}
        empty = {**part, "refusal" if kind == "refusal" else "text": ""}
        yield _typed("response.content_part.added", part=empty, **place)
        for piece in said.pieces(text):
            yield _typed(f"response.{kind}.delta", delta=piece, logprobs=[], **place)
        done = {"refusal" if kind == "refusal" else "text": text}
        yield _typed(f"response.{kind}.done", logprobs=[], **done, **place)
        yield _typed("response.content_part.done", part=part, **place)
    yield _typed("response.output_item.done", output_index=index, item=item)


def _output_message(content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": content}  # fmt: skip


EVENTS = {"messages": messages_events, "chat": chat_events, "responses": responses_events}
DOCUMENTS = {
    "messages": messages_document,
    "chat": chat_document,
    "responses": responses_document,
}


def error_body(wire: Wire, type_: str, message: str, code: str | None = None) -> dict[str, Any]:
    """An error as the service of a format tells it.

    Args:
        wire: the format.
        type_: of the error, like ``rate_limit_error``.
        message: in words.
        code: more exactly; at Anthropic's in the error's details.
    """
    if wire == "messages":
        error: dict[str, Any] = {"type": type_, "message": message}
        if code:
            error["details"] = {"error_code": code}
        return {"type": "error", "error": error, "request_id": "req_1"}
    return {"error": {"message": message, "type": type_, "param": None, "code": code}}
