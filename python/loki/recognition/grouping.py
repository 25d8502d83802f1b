"""Which of many messages are alike: templates of lines, groups of failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki import _core

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loki.recognition.text import Text


def group(texts: Iterable[Text], *, threads: int = 0) -> list[int]:
    """Finds the message templates in many lines.

    Arguments of a message are found by their shape (numbers, paths, quoted names, values after
    ``=``) and by what varies between messages that are otherwise equal. The groups depend on the
    set of messages only, not on their order or the number of threads; the interpreter lock is
    released.

    Args:
        texts: messages, of any number of words; str or bytes.
        threads: how many to use; 0 for as many as the machine has.

    Returns:
        One number for each text; equal numbers are one template. They count from 0 by first
        appearance.

    Raises:
        TypeError: one of the texts is neither str nor bytes.

    Example:
        >>> group(["retry 1 of 5", "disk full on /dev/sda1", "retry 2 of 5"])
        [0, 1, 0]
    """
    return _core.group(list(texts), threads)
