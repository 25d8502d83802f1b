"""What JUnit's XML says of failures: properties of each, with labels, which are known only at the end.

pytest writes a test's properties when it is torn down. What is not torn down (a file that could not be
collected, a test whose worker died) has none, and no test has its label by then. So the elements are
held, and completed before pytest writes the file: properties of each test, as pytest's own
``record_property`` makes them in every family. pytest has no public name for any of it: where it is made
otherwise, the file is as pytest makes it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

if TYPE_CHECKING:
    from loki.decision.suites.suite_summary import SuiteSummary
    from loki.memory.suites.suite_run import SuiteFailure


class Junit:
    """Holds the elements of what fails; pytest calls its hooks.

    Args:
        xml: pytest's ``LogXML``, which collects the elements.
    """

    def __init__(self, xml: Any) -> None:
        self._xml = xml
        self._failing: SuiteFailure | None = None
        self._held: list[tuple[SuiteFailure, Any]] = []

    def failed(self, failing: SuiteFailure) -> None:
        """The report that is being told of is of this failure."""
        self._failing = failing

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, Any, Any]:
        """A phase of a test ended: which element is it in?"""
        return (yield from self._watch(report))

    @pytest.hookimpl(wrapper=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> Generator[None, Any, Any]:
        """A file was collected, or could not be."""
        return (yield from self._watch(report))

    def complete(self, summary: SuiteSummary) -> None:
        """Add what is known of each failure to its element.

        Args:
            summary: of the run.
        """
        from loki.pytest_plugin.failure_recognition import properties_of

        known = {
            id(member.failing): [("loki.label", member.label.name), ("loki.cause", str(number))]
            for number, cause in enumerate(summary.causes, 1)
            for member in cause.members
        }
        for failing, element in reversed(self._held):  # of several the last: so does pytest
            said = [*properties_of(failing), *known.get(id(failing), ())]
            with suppress(Exception):
                _add(element, said)

    def _forget(self) -> None:
        self._failing = None

    def _watch(self, report: pytest.TestReport | pytest.CollectReport) -> Generator[None, Any, Any]:
        self._forget()
        element: Any = None
        ordered: list[Any] = []
        if report.failed:
            with suppress(Exception):
                element = self._xml.node_reporter(report)
                ordered = self._xml.node_reporters_ordered
        before = len(ordered)
        result = yield
        if self._failing is not None and element is not None:
            # A test that failed is given a second element where tearing it down fails, too.
            own = ordered[-1] if len(ordered) > before else element
            self._held.append((self._failing, own))
        return result


def junit_of(config: pytest.Config) -> Junit | None:
    """What completes the run's XML, once the session has started; None where it writes none.

    Args:
        config: pytest's.
    """
    if not config.getoption("xmlpath", None):
        return None
    plugins = config.pluginmanager.get_plugins()
    return next((Junit(one) for one in plugins if type(one).__name__ == "LogXML"), None)


def _add(element: Any, properties: Iterable[tuple[str, object]]) -> None:
    if hasattr(element, "properties"):  # it makes its XML when the file is written
        said = {name for name, _ in element.properties}
        for name, value in properties:
            if name not in said:
                element.add_property(name, value)
        return
    made: ElementTree.Element = element.to_xml()
    node = made.find("properties")
    if node is None:
        node = ElementTree.Element("properties")
        made.insert(0, node)
    said = {str(one.get("name")) for one in node}
    for name, value in properties:
        if name not in said:
            ElementTree.SubElement(node, "property", name=name, value=str(value))
