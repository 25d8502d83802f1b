"""Tokens: how long a text is for a model, texts cut to a length, and how much a call took."""

from __future__ import annotations

from dataclasses import dataclass

# --- How long a text is, and texts cut to a length --------------------------------------------------

BYTES_PER_TOKEN = 4
"""UTF-8 bytes of a token: a rule of thumb, near for English and code and on the safe side for
scripts that take two or three bytes a letter; no tokenizer is asked."""

_GAP = "…"


def tokens(text: str) -> int:
    """About how many tokens a text has.

    Source:
        `BYTES_PER_TOKEN`, chosen, not measured.

    Example:
        >>> tokens("four"), tokens("five!")
        (1, 2)
    """
    return -(-len(_encoded(text)) // BYTES_PER_TOKEN)


def clip_to_tokens(text: str, limit_tokens: int, *, tail: float = 0.0) -> str:
    """A text cut to a number of tokens, between lines where there is a line end near.

    Args:
        text: any text.
        limit_tokens: most tokens of the result, 1 or more.
        tail: share of it for the text's end, 0 to 1; the rest is for its beginning.

    Example:
        >>> print(clip_to_tokens("first\\nsecond\\nthird\\nlast of all", 6, tail=0.5))
        first
        seco
        …
        st of all
    """
    limit = limit_tokens * BYTES_PER_TOKEN
    data = _encoded(text)
    if len(data) <= limit:
        return text
    room = limit - len(f"\n{_GAP}\n".encode())
    if room <= 0:
        return _GAP
    last = int(room * tail)
    head = _decoded(data[: room - last])
    head = _until_line_end(head)
    if not last:
        return f"{head}\n{_GAP}"
    return f"{head}\n{_GAP}\n{_from_line_start(_decoded(data[-last:]))}"


def clip_around(text: str, line: int, limit_tokens: int) -> str:
    """A text cut to a number of tokens: the lines round one of them, as many before it as after.

    Args:
        text: any text.
        line: index of the line that matters, from 0.
        limit_tokens: most tokens of the result, 1 or more.

    Example:
        >>> print(clip_around("a list\\nof cases\\n> assert x\\nE 1 == 2\\nthe next\\ntest", 3, 9))
        …
        > assert x
        E 1 == 2
        the next
        …
    """
    lines = text.split("\n")
    room = limit_tokens * BYTES_PER_TOKEN
    if len(_encoded(text)) <= room:
        return text
    room -= len(f"{_GAP}\n\n{_GAP}".encode())
    focus = min(max(line, 0), len(lines) - 1)
    first = last = focus
    room -= len(_encoded(lines[focus]))
    if room < 0:
        return clip_to_tokens(lines[focus], limit_tokens)
    grows = True
    while grows:
        grows = False
        for step in (-1, 1):
            index = first - 1 if step < 0 else last + 1
            cost = len(_encoded(lines[index])) + 1 if 0 <= index < len(lines) else room + 1
            if cost <= room:
                first, last, room, grows = min(first, index), max(last, index), room - cost, True
    shown = lines[first : last + 1]
    before, after = [_GAP] * (first > 0), [_GAP] * (last < len(lines) - 1)
    return "\n".join([*before, *shown, *after])


def clip_lines(text: str, most: int) -> str:
    """A text none of whose lines is longer than ``most`` characters: their middle is left out."""
    return "\n".join(clip_line(line, most) for line in text.split("\n"))


def clip_line(line: str, most: int) -> str:
    """A line of at most ``most`` characters, 32 or more: the middle of a longer one is left out.

    Example:
        >>> clip_line("x" * 1000, 40)
        'xxxxxxxxxxxxxxx … 981 characters … xxxx'
    """
    if len(line) <= most:
        return line
    gap = f" … {len(line)} characters … "
    last = (most - len(gap)) // 4
    first = most - len(gap) - last
    gap = f" … {len(line) - first - last} characters … "
    return f"{line[:first]}{gap}{line[len(line) - last :]}"


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decoded(data: bytes) -> str:
    """A part of a text's bytes; a character that was cut in two is left out."""
    return data.decode("utf-8", "ignore")


def _until_line_end(text: str) -> str:
    end = text.rfind("\n")
    return text[:end] if end > len(text) // 2 else text


def _from_line_start(text: str) -> str:
    start = text.find("\n")
    return text[start + 1 :] if 0 <= start < len(text) // 2 else text


# --- How much a call took ---------------------------------------------------------------------------

MOST = 10**15
"""Tokens, or dollars, that nobody can have used: a larger figure is none. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one call or of several, as their provider counts them.

    Attributes:
        input: of the request, those out of the cache and those put into it included.
        output: of the answer, reasoning included.
        cache_read: those of ``input`` that came out of the provider's cache.
        cache_write: those of ``input`` that were put into it.

    Example:
        >>> (TokenUsage(1200, 300, cache_read=1000) + TokenUsage(100, 20)).total
        1620
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.input + self.output

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )


def tokens_said(value: object) -> int | None:
    """A count of tokens as somebody else says it; None: it is none.

    Args:
        value: of any type, out of a service's JSON for instance.

    Example:
        >>> tokens_said(120), tokens_said(-1), tokens_said("many"), tokens_said(True)
        (120, None, None, None)
    """
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return value if is_count and 0 <= value <= MOST else None  # type: ignore[operator,return-value]


def dollars_said(value: object) -> float | None:
    """A sum of US dollars as somebody else says it; None: it is none, so that no budget trusts it.

    Args:
        value: of any type, out of a service's JSON for instance.

    Example:
        >>> dollars_said(0.25), dollars_said(-100), dollars_said(float("nan")), dollars_said("free")
        (0.25, None, None, None)
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # What is not a number is not below anything; an integer may be too large for a float.
    return float(value) if is_number and 0 <= value <= MOST else None  # type: ignore[operator,arg-type]
