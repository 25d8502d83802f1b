"""What is kept of a stream of any length."""

from __future__ import annotations

from collections import deque


class HeadTailBuffer:
    """The first and the last half of a stream, whatever its length.

    Args:
        limit: bytes to keep.

    Example:
        >>> kept = HeadTailBuffer(8)
        >>> kept.add(b"abcd"), kept.add(b"efgh"), kept.add(b"ijkl")
        (None, None, None)
        >>> kept.content()
        b'abcd\\n[... 4 bytes left out ...]\\nijkl'
    """

    def __init__(self, limit: int) -> None:
        self.room = self.tail_limit = max(1, limit // 2)
        self.head: list[bytes] = []
        self.tail: deque[bytes] = deque()
        self.tail_size = 0
        self.left_out = 0
        self.lines_left_out = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        if self.room:
            self.head.append(chunk[: self.room])
            chunk = chunk[self.room :] if len(chunk) > self.room else b""
            self.room -= len(self.head[-1])
        if chunk:
            self.tail.append(chunk)
            self.tail_size += len(chunk)
        # Whole chunks only: the tail is at most one chunk too long, and each byte moves once.
        while self.tail and self.tail_size - len(self.tail[0]) >= self.tail_limit:
            dropped = self.tail.popleft()
            self.tail_size -= len(dropped)
            self._leave_out(dropped)

    def _leave_out(self, dropped: bytes) -> None:
        self.left_out += len(dropped)
        self.lines_left_out += dropped.count(b"\n")

    def content(self) -> bytes:
        """What is kept; where bytes are missing in the middle, a line says how many."""
        tail = b"".join(self.tail)
        excess = max(0, len(tail) - self.tail_limit)
        if excess:
            self._leave_out(tail[:excess])
            self.tail, self.tail_size = deque([tail[excess:]]), len(tail) - excess
        if not self.left_out:
            return b"".join(self.head) + tail
        marker = b"\n[... %d bytes left out ...]\n" % self.left_out
        return b"".join(self.head) + marker + tail[excess:]

    def line(self, number: int) -> int:
        """Line of the stream that a line of `content` is, both from 1."""
        before = sum(chunk.count(b"\n") for chunk in self.head) if self.left_out else number
        # The line that says so has a line feed before and after it.
        return number if number <= before + 1 else number + self.lines_left_out - 2
