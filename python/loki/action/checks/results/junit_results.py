"""JUnit XML, which most test runners can write: https://github.com/testmoapp/junitxml."""

from __future__ import annotations

from xml.etree import ElementTree

from loki.action.checks.results.suite_results import (
    FAILED,
    PASSED,
    SKIPPED,
    Collected,
    Results,
    relative,
)


def read(content: bytes, root: str) -> Results | None:
    """Outcome by test; ids are ``classname.name``.

    Args:
        content: the report; one that was cut short by a crash of the runner holds no results.
        root: the project's folder.

    Example:
        >>> xml = b'<testsuite><testcase classname="a.b" name="c"><skipped/></testcase></testsuite>'
        >>> read(xml, "/").outcomes
        {'a.b.c': 'skipped'}
    """
    collected = Collected()
    try:
        document = ElementTree.fromstring(content)  # noqa: S314 - expat limits expansion
    except ElementTree.ParseError:
        return None
    _read(document, root, "", collected)
    return collected.results()


def _read(element: ElementTree.Element, root: str, file: str, collected: Collected) -> None:
    file = element.get("file") or element.get("filepath") or file
    for child in element:
        if child.tag == "testcase":
            own = child.get("file") or file
            collected.add(_id(child), _outcome(child), relative(own, root))
        elif child.tag in {"testsuite", "testsuites"}:
            _read(child, root, file, collected)


def _id(case: ElementTree.Element) -> str:
    classname, name = case.get("classname") or "", case.get("name") or ""
    return f"{classname}.{name}" if classname else name


def _outcome(case: ElementTree.Element) -> str:
    children = {child.tag for child in case}
    if "skipped" in children:  # also of what failed as it was expected to
        return SKIPPED
    if children & {"failure", "error"}:
        return FAILED
    # googletest says so in an attribute, ctest of what is switched off, too.
    return SKIPPED if case.get("status") in {"notrun", "disabled"} else PASSED
