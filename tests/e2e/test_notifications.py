"""Notifications of `altershield dev`, and a file of receivers that changes while it runs."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.sleep import release, suspend
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually


class Receiver:
    """An HTTP server that keeps the bodies of the requests."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_suspension_is_told_to_receivers_that_were_added_while_the_reconciler_runs(
    kubectl: Kubectl, receiver: Receiver, receivers: Path
) -> None:
    own = {"url": receiver.url, "namespaces": [kubectl.namespace]}
    types = ("slack", "cloudevents", "alertmanager")
    receivers.write_text(json.dumps({"receivers": [{"name": each, "type": each, **own} for each in types]}))
    try:
        version = release(kubectl)
        suspend(kubectl, version)
        name = f"changeworkload/sleep--x--{version}"

        def notified() -> list[str]:
            found: list[str] = kubectl.json(*name.split("/"))["status"].get("notified", [])
            return found if len(found) == len(types) else []

        eventually(notified, "the notifications to be stored")
    finally:
        receivers.write_text("receivers: []")
    texts = [json.dumps(body) for body in receiver.bodies]
    assert len(texts) == len(types)
    assert all(kubectl.namespace in text and "find error" in text for text in texts)
