"""People are told: by a webhook and by a command, and nothing of that stops the work."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from loki.base.error import ConfigError, UsageError
from loki.config import loads
from loki.people.notification import KINDS, Notifier, Webhook
from loki.testing import ManualClock


class _Handler(BaseHTTPRequestHandler):
    """Answers as the test wants; each server has a class of its own."""

    heard: ClassVar[list[tuple[str, dict[str, str], bytes]]]
    status: ClassVar[int]
    location: ClassVar[str]
    hangs: ClassVar[threading.Event | None]

    def do_POST(self) -> None:  # the name that the server looks for
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.heard.append((self.path, dict(self.headers), body))
        if self.hangs is not None:
            self.hangs.wait(30)
        self.send_response(self.status)
        if self.location:
            self.send_header("Location", self.location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.heard.append((f"GET {self.path}", {}, b""))

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


class Server:
    """A real server on loopback."""

    def __init__(self) -> None:
        self.handler: type[_Handler] = type("Handler", (_Handler,), {"heard": [], "status": 204, "location": "",
                                                      "hangs": None})  # fmt: skip
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), self.handler)
        self.thread = threading.Thread(target=self.http.serve_forever, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}/hooks/T0P-S3CR3T"

    @property
    def heard(self) -> list[tuple[str, dict[str, str], bytes]]:
        return self.handler.heard


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.http.shutdown()
    found.http.server_close()
    found.thread.join()


def told(webhook: str, timeout: float = 10) -> Notifier:
    return Notifier([Webhook(webhook, timeout)], KINDS, "/srv/app", ManualClock())


def test_a_webhook_hears_of_it(server: Server) -> None:
    text = "Deploy? api_key=sk-ant-REDACTED"
    told(server.url).notify(
        "human_review", text, task_id="t", id="review-1", answer="loki approve x"
    )
    ((path, headers, body),) = server.heard
    data = json.loads(body)
    assert path == "/hooks/T0P-S3CR3T"
    assert headers["Content-Type"] == "application/json"
    assert (data["kind"], data["task_id"], data["project"]) == ("human_review", "t", "/srv/app")
    assert data["answer"] == "loki approve x"
    assert "aaaaaaaaaaaa" not in body.decode()
    assert data["at"].endswith("Z")


@pytest.mark.parametrize("status", [302, 307, 308, 400, 500])
def test_what_is_not_taken_is_one_warning_without_the_url(
    server: Server, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    server.handler.status = status
    server.handler.location = f"{server.url}/elsewhere"
    notifier_ = told(server.url)
    for _ in range(3):
        notifier_.notify("escalation", "look")
    assert [path for path, _, _ in server.heard] == ["/hooks/T0P-S3CR3T"] * 3
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert f"HTTP status {status}" in caplog.text
    assert "T0P-S3CR3T" not in caplog.text


def test_a_server_that_does_not_answer_is_not_waited_for(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.handler.hangs = threading.Event()
    told(server.url, timeout=0.2).notify("escalation", "look")
    server.handler.hangs.set()
    assert "it took longer than 0.2 s" in caplog.text
    assert "T0P-S3CR3T" not in caplog.text


def test_nobody_there_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told(f"http://127.0.0.1:{port}/T0P-S3CR3T").notify("escalation", "look")
    assert "nobody was told by the webhook at http://127.0.0.1" in caplog.text
    assert "T0P-S3CR3T" not in caplog.text


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/y", "hooks", "http:///x", ""])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="expected https"):
        Webhook(url)
    with pytest.raises(ConfigError):
        loads(f'[notify]\nwebhook = "{url}"\n'.encode(), "config.toml")


def test_a_kind_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match="kinds"):
        loads(b'[notify]\nkinds = ["everything"]\n', "config.toml")
