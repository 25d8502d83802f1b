"""A terminal that keeps what it shows, the slow and obvious way: cells and a cursor on each line."""

import re

TOKEN = re.compile(
    r"\x1b\[(?P<parameter>[ -?]*)(?P<final>[@-~]?)"
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # a string for the terminal; its end is BEL or ST
    r"|\x1b[\]PX^_]"  # one that never ends: what follows is shown
    r"|\x1b[ -/]*[0-~]?"
    r"|(?P<shown>[^\x1b])",
    re.DOTALL,
)


class Line:
    """What one line shows."""

    def __init__(self) -> None:
        self.cells: list[str] = []
        self.cursor = 0

    def write(self, character: str) -> None:
        """A character, a backspace or a carriage return."""
        if character == "\r":
            self.cursor = 0
        elif character == "\b":
            self.cursor = max(0, self.cursor - 1)
        else:
            is_surrogate = "\ud800" <= character <= "\udfff"
            self.cells[self.cursor : self.cursor + 1] = ["\ufffd" if is_surrogate else character]
            self.cursor += 1

    def control(self, final: str, parameter: str) -> None:
        """A control sequence: erase in the line, cursor back, cursor to the first column."""
        if final == "K" and parameter != "1":
            del self.cells[self.cursor :]
        if final == "K" and parameter in ("1", "2"):
            del self.cells[: self.cursor]
            self.cursor = 0
        if final == "D" and re.fullmatch("[0-9]*", parameter):
            self.cursor = max(0, self.cursor - max(1, int(parameter or 1)))
        if final == "G" and parameter in ("", "1"):
            self.cursor = 0


def shown(text: str) -> str:
    """What a terminal shows of a text; its lines end in newlines, or else in carriage returns."""
    lines = text.split("\n" if "\n" in text else "\r")
    return "\n".join(shown_of_line(line.rstrip("\r")) for line in lines)


def shown_of_line(text: str) -> str:
    """The same for one line."""
    line = Line()
    for token in TOKEN.finditer(text):
        if token["shown"]:
            line.write(token["shown"])
        elif token["final"]:
            line.control(token["final"], token["parameter"])
    return "".join(line.cells)
