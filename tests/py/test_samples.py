"""The recipes that samples are made by: each makes a sample that is there, with that command."""

import yaml

from samples import recipe, shelf
from support.tool_files import tool_files


def test_every_recipe_makes_a_sample_of_its_tool() -> None:
    for one in recipe.read(recipe.tools()):
        content = tool_files()[one.tool]
        there = {sample["name"]: sample.get("command", "") for sample in content["samples"]}
        assert len(there) == len(content["samples"]), f"{one.tool}: a name twice"
        for sample in one.samples:
            assert there.get(sample.name) == (sample.shown or sample.command), one.tool


def test_a_sample_is_put_where_it_was_and_nothing_else_changes() -> None:
    text = "one\n\n  two\t\n"
    content = f"samples:\n- name: a\n  text: {shelf.literal('x', 4)}  expect: {{}} # why\n"
    start, end = shelf.span_of_text(content, "a") or (0, 0)
    changed = content[:start] + shelf.literal(text, 4) + content[end:]
    assert yaml.safe_load(changed)["samples"][0] == {"name": "a", "text": text, "expect": {}}
    assert changed.endswith("# why\n")


def test_any_text_can_be_said() -> None:
    for text in [
        "",
        "\n",
        " lead",
        "\tlead\n",
        "a\n\n\n",
        "\n\na",
        "\x1b[1mred\r\n",
        "# no\n",
        "a \n",
    ]:
        assert yaml.safe_load(f"text: {shelf.literal(text, 2)}")["text"] == text
