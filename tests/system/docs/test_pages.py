"""The pages for each audience: a reader who does what they say sees what they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.page import Reader
from support.paths import ROOT

PAGES = [
    ROOT / "docs" / f"{name}.md"
    for name in ("pytest", "jupyter", "frameworks", "hooks", "mcp")
    if (ROOT / "docs" / f"{name}.md").exists()
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    Reader(page, tmp_path).follow()


FINE = """
```python title=calc.py
def add(a, b):
    return a - b
```

1. Look:

   ```console
   $ python -c "import calc; print(calc.add(2, 3)); print('more', 'and more')"
   -1
   more…more
   $ printf 'a\\nb\\nc\\n'
   a
   …
   ```

```python cell
import calc
```
```python cell
assert calc.add(2, 3) == -1
```
```sh
test -f calc.py
```
```sh norun
pip install loki-core
```
"""


def test_a_reader_follows_every_kind_of_block(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(FINE, "utf-8")
    Reader(page, tmp_path).follow()


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ("```python\nassert False\n```\n", 2),
        ("```console\n$ echo a\nb\n```\n", 2),
        ("```console\n$ echo a\n```\n", 2),
        ("\n```sh\nfalse\n```\n", 3),
        ("```sh norun\nrm -rf x\n```\n", 2),
        ("```json\n{}\n```\n", 2),
    ],
)
def test_a_page_that_is_wrong_is_told_by_its_line(tmp_path: Path, wrong: str, line: int) -> None:
    page = tmp_path / "page.md"
    page.write_text(wrong, "utf-8")
    with pytest.raises(AssertionError, match=rf"^page.md:{line}: "):
        Reader(page, tmp_path).follow()
