"""What tests of base/test_html of both tiers share."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>\" style=\"\x00\x1b[31m\u202e"
SECRET = "token=abcd1234efgh"


class Tags(HTMLParser):
    """Tags, attributes and the text of a piece of HTML; whether every tag is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.text = ""
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(thing: Any) -> Tags:
    found = Tags(thing._repr_html_())
    assert found.tags <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "pre"}
    assert set(found.attributes) <= {"style", "scope"}
    for style in found.attributes["style"]:
        assert "url" not in style
        assert "#" not in style  # no color of its own: the page may be dark
    assert len(thing._repr_html_()) < 20_000
    assert "abcd1234" not in found.text
    return found
