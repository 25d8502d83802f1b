"""Cases about text: normalize, clean, recognize."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.corpus import Mix
from benchmarks.job import Data, Family, Job

if TYPE_CHECKING:
    from collections.abc import Callable

Parameters = dict[str, Any]

_PIECE = 1000  # characters


def chosen(parameters: Parameters, data: Data) -> list[str]:
    """The texts that a case names: "logs", "texts", or a number of characters of logs."""
    name = parameters["data"]
    if name == "logs":
        return data.logs
    if name == "texts":
        return data.texts
    return [sized(data.logs, int(name))]


def sized(logs: list[str], size: int) -> str:
    """One text of exactly so many characters: pieces of all logs, so that each size has the mix."""
    whole = "\n".join(logs)
    pieces = max(1, len(whole) // _PIECE)
    mix, parts, left = Mix(size), [], size
    while left > 0:
        at = mix.below(pieces) * _PIECE
        parts.append(whole[at : at + min(_PIECE, left)])
        left -= len(parts[-1])
    return "".join(parts)


def size_of(texts: list[Any]) -> int:
    """Bytes; of a str as UTF-8."""
    return sum(
        len(text.encode("utf-8", "replace")) if isinstance(text, str) else len(text)
        for text in texts
    )


def _normalize_loki(parameters: Parameters, data: Data) -> Job:
    import loki
    from loki import _core

    texts = chosen(parameters, data)

    def run() -> list[tuple[str, str]]:
        found = []
        for text in texts:
            normalized = loki.normalize(text)
            found.append((normalized, _core.fingerprint("", "", normalized, [], [])))
        return found

    return Job(run, size_of(texts), _normalized, len(texts))


def _normalize_re(form: str) -> Callable[[Parameters, Data], Job]:
    def ready(parameters: Parameters, data: Data) -> Job:
        from benchmarks import masker

        normalize = getattr(masker, form)
        texts = chosen(parameters, data)

        def run() -> list[tuple[str, str]]:
            found = []
            for text in texts:
                normalized = normalize(text)
                found.append((normalized, masker.fingerprint(normalized)))
            return found

        return Job(run, size_of(texts), _normalized, len(texts))

    return ready


def _normalized(returned: list[tuple[str, str]]) -> list[list[str]]:
    return [normalized.split("\n") for normalized, _ in returned]


def _lines_agree(mine: list[list[str]], other: list[list[str]]) -> float:
    """Of the lines that hold a placeholder in either answer: the share that is equal."""
    equal = total = 0
    for a, b in zip(mine, other, strict=True):
        for left, right in zip(a, b, strict=True):
            if "<" in left or "<" in right:
                total += 1
                equal += left == right
    return equal / total if total else 1.0


def _recognize_loki(parameters: Parameters, data: Data) -> Job:
    import loki

    texts = _given(parameters, data)
    return Job(
        lambda: [loki.recognize(text) for text in texts], size_of(texts), _recognized, len(texts)
    )


def _recognize_many(parameters: Parameters, data: Data) -> Job:
    import loki

    texts = _given(parameters, data)
    return Job(lambda: loki.recognize_many(texts), size_of(texts), _recognized, len(texts))


def _recognized(returned: list[Any]) -> list[list[Any]]:
    return [[f.fingerprint, f.signature, f.output_line, len(f.matches)] for f in returned]


def _given(parameters: Parameters, data: Data) -> list[Any]:
    """Bytes, as pipes give them, or str."""
    texts = chosen(parameters, data)
    if parameters.get("as") == "str":
        return texts
    return [text.encode("utf-8", "replace") for text in texts]


def _copy(parameters: Parameters, data: Data) -> Job:
    """`memcpy` into memory that is there already: no page is touched for the first time."""
    raw = [text.encode("utf-8", "replace") for text in chosen(parameters, data)]
    size = sum(map(len, raw))
    room = memoryview(bytearray(b"x" * size))

    def run() -> None:
        at = 0
        for text in raw:
            room[at : at + len(text)] = text
            at += len(text)

    return Job(run, size)


NORMALIZE = Family(
    "bytes",
    {
        "loki": _normalize_loki,
        "re": _normalize_re("normalize"),
        "re, by first character": _normalize_re("normalize_quickly"),
    },
    _lines_agree,
)
RECOGNIZE = Family(
    "bytes",
    {"loki": _recognize_loki, "memcpy": _copy, "loki, recognize_many, all cores": _recognize_many},
    lambda mine, other: sum(map(list.__eq__, mine, other)) / len(mine),
)
