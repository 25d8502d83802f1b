"""One call is cancelled, or the whole run."""

from __future__ import annotations

import threading

from loki.base.threads import LinkedEvent


def test_who_waits_hears_of_both() -> None:
    for which in ("own", "parent"):
        parent = threading.Event()
        event = LinkedEvent(parent)
        heard = threading.Event()
        thread = threading.Thread(
            target=lambda event=event, heard=heard: event.wait() and heard.set()
        )
        thread.start()
        (event if which == "own" else parent).set()
        assert heard.wait(60)
        thread.join()
        assert parent.is_set() is (which == "parent")


def test_a_wait_can_end_by_itself() -> None:
    event = LinkedEvent(threading.Event())
    assert event.wait(0) is False
    assert event.wait(0.001) is False
    event.set()
    assert event.wait() is True
