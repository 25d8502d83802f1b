"""One connection for many calls, in each event loop; and what goes with each request: with processes."""

from __future__ import annotations

import pytest

from support.forked import exit_code, fork
from support.kept_client import MAKERS, Counted, Maker, asked


@pytest.fixture(params=sorted(MAKERS))
def make(request: pytest.FixtureRequest) -> Maker:
    return MAKERS[request.param]


def test_a_forked_process_has_connections_of_its_own(make: Maker) -> None:
    with Counted() as service:
        llm = make(service.url)
        llm.complete(asked())
        assert exit_code(fork(lambda: llm.complete(asked()))) == 0
        assert llm.complete(asked()).text == "Hi"
        assert service.connections == 2
