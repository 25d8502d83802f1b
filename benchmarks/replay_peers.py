"""What others would have said to a recorded run: their rules for agents that go round in circles.

Written anew from what their sources say, with their constants. None of them is here whole: each class says
what it leaves out. Thoughts are in no record, so that two calls are the same here which differ in what the
agent thought; and a turn's end makes all of them begin anew, as a person speaks then. Rules that ask a model
are left out, as they cost a request; so are rules about text that a model repeats while it writes.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from loki.adapters.monitor.recorded_run import Ends, Made, RecordedRun, Remark
from loki.base.secret import mask_secrets
from loki.memory.quote import one_line

ABOUT = 2_000
"""Characters of a call that are looked at for a line on it. Chosen, not measured."""


class Peer(Protocol):
    """A watcher of one turn."""

    def heard(self, made: Made) -> tuple[str, str]:
        """What it says of a call: ``nudge`` or ``stop`` and the rule, or "" twice."""
        ...


NOTHING = "", ""


class OpenHandsSdk:
    """openhands/sdk/conversation/stuck_detector.py, openhands-sdk 1.58.2; where it is asked:
    impl/local_conversation.py, before each step.

    An error is a call that was not run (`AgentErrorEvent`), not a command that failed: here, one that failed
    without an exit code. Left out: thoughts, monologues, calls that are made at once (there one step).
    """

    def __init__(self) -> None:
        self._last: deque[tuple[str, str, bool]] = deque(maxlen=10)  # 20 events

    def heard(self, made: Made) -> tuple[str, str]:
        """As `Peer.heard`."""
        failed = made.ok is False and made.exit_code is None
        self._last.append((key(made), f"{made.exit_code}\n{made.result}", failed))
        last = list(self._last)[::-1]
        errors = 0
        while errors < len(last) and last[errors][2] and last[errors][0] == last[0][0]:
            errors += 1
        if errors == 3:
            return "nudge", "action-error"
        if errors > 3:
            return "stop", "action-error"
        if len(last) >= 4 and len(set(last[:4])) == 1:
            return "stop", "action-observation"
        if len(last) >= 6 and all(last[at] == last[at + 2] for at in range(4)):
            return "stop", "alternating"
        return NOTHING


class OpenHandsV0:
    """openhands/controller/stuck.py, openhands-ai 0.62.0, the last of its kind; not headless.

    Other than the SDK's: of a command that was run, the exit code is compared, not what it printed; the third
    error stops. Left out: thoughts, monologues, repeated condensations, syntax errors in Jupyter cells, and
    cells that are the same by their first three lines.
    """

    def __init__(self) -> None:
        self._last: deque[tuple[str, str, bool]] = deque(maxlen=6)

    def heard(self, made: Made) -> tuple[str, str]:
        """As `Peer.heard`."""
        is_command = bool(made.call.line) and made.exit_code is not None
        seen = str(made.exit_code) if is_command else f"{made.exit_code}\n{made.result}"
        failed = made.ok is False and made.exit_code is None
        self._last.append((key(made), seen, failed))
        last = list(self._last)[::-1]
        if len(last) >= 4 and len(set(last[:4])) == 1:
            return "stop", "action-observation"
        calls = {call for call, _, _ in last[:3]}
        if len(last) >= 3 and len(calls) == 1 and all(error for _, _, error in last[:3]):
            return "stop", "action-error"
        if len(last) == 6 and all(last[at] == last[at + 2] for at in range(4)):
            return "stop", "alternating"
        return NOTHING


class Repeated:
    """How often the same call was made without another one between."""

    def __init__(self) -> None:
        self._last, self.count = "", 0

    def add(self, call: str) -> int:
        """Count a call; how often it was made by now."""
        self.count = self.count + 1 if call == self._last else 1
        self._last = call
        return self.count


class GeminiCli:
    """packages/core/src/services/loopDetectionService.ts, google-gemini/gemini-cli at 022f913d; what becomes
    of it: core/client.ts (the first time a model is told, the second time it ends).

    The fifth identical call, arguments in the order in which they were given. Left out: text that repeats
    itself within an answer, and a model's verdict from the 30th turn on.
    """

    def __init__(self) -> None:
        self._repeated, self._detected = Repeated(), 0

    def heard(self, made: Made) -> tuple[str, str]:
        """As `Peer.heard`."""
        if self._repeated.add(key(made, is_sorted=False)) < 5:
            return NOTHING
        self._detected += 1
        return "nudge" if self._detected == 1 else "stop", "identical-calls"


class Cline:
    """src/core/task/loop-detection.ts, cline/cline at 60c5f9f2 (since 3.76).

    A warning at the third identical call, at the fifth a person is asked. ``task_progress`` does not count.
    Left out: other mistakes (arguments that are missing, edits that do not fit), of which it counts three.
    """

    def __init__(self) -> None:
        self._repeated = Repeated()

    def heard(self, made: Made) -> tuple[str, str]:
        """As `Peer.heard`."""
        count = self._repeated.add(key(made, without=("task_progress",)))
        said = {3: "nudge", 5: "stop"}.get(count, "")
        return said, said and "identical-calls"


class RooCode:
    """src/core/tools/ToolRepetitionDetector.ts, RooCodeInc/Roo-Code at 37479466; its limit is
    `consecutiveMistakeLimit`, 3.

    The fourth identical call is not run, and a person is asked. Scrolling in a browser does not count.
    Left out: other mistakes.
    """

    def __init__(self) -> None:
        self._repeated = Repeated()

    def heard(self, made: Made) -> tuple[str, str]:
        """As `Peer.heard`."""
        scrolls = made.call.arguments.get("action") in {"scroll_down", "scroll_up"}
        if made.call.name == "browser_action" and scrolls:
            return NOTHING
        if self._repeated.add(key(made)) < 4:
            return NOTHING
        self._repeated = Repeated()
        return "stop", "identical-calls"


PEERS: Mapping[str, Callable[[], Peer]] = {
    "OpenHands SDK": OpenHandsSdk,
    "OpenHands V0": OpenHandsV0,
    "gemini-cli": GeminiCli,
    "Cline": Cline,
    "Roo Code": RooCode,
}


def remarks(run: RecordedRun, peer: Callable[[], Peer]) -> Iterator[Remark]:
    """What a peer would have said to a run, as `loki.adapters.monitor.recorded_run.remarks` says it
    of loki: nothing
    more in a turn once it has stopped it."""
    watcher, stopped = peer(), None
    for one in run.events:
        if isinstance(one, Ends):
            if stopped is not None:
                yield stopped
            watcher, stopped = peer(), None
        elif stopped is not None:
            stopped = replace(stopped, left=stopped.left + 1)
        else:
            kind, rule = watcher.heard(one)
            if kind == "stop":
                stopped = Remark(one.place, kind, rule, about(one), "")
            elif kind:
                yield Remark(one.place, kind, rule, about(one), "")
    if stopped is not None:
        yield stopped


def key(made: Made, *, is_sorted: bool = True, without: tuple[str, ...] = ()) -> str:
    """What is the same for the same call."""
    given: Mapping[str, Any] = made.call.arguments
    counted = {name: value for name, value in given.items() if name not in without}
    return f"{made.call.name}\n{json.dumps(counted, sort_keys=is_sorted, default=str)}"


def about(made: Made) -> str:
    """A call in one line, for people."""
    said = made.call.line or f"{made.call.name} {dict(made.call.arguments)}"
    return one_line(mask_secrets(said[:ABOUT]), 160)
