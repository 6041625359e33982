"""An installation on a sandbox of its own, for tests of checks, and a server on loopback that the checks call."""

import contextlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.e2e.conftest import OBSERVE, START_TIMEOUT, raise_webhook_timeouts
from tests.support.processes import command, wait_for_line

Answer = tuple[int, dict[str, str], Any]
"""The status, further headers, and the content, which is sent as JSON."""


@contextlib.contextmanager
def installation(directory: Path, *arguments: str) -> Iterator[Path]:
    """A cluster on which `altershield dev` runs with these arguments. Yields the kubeconfig."""
    kubeconfig, log = directory / "kubeconfig", directory / "sandbox.log"
    with command("sandbox", "--output", str(kubeconfig), log=log) as sandbox:
        wait_for_line(sandbox, log, "Serving ")
        log = directory / "altershield.log"
        times = ["--start-timeout", str(START_TIMEOUT), "--observe-seconds", str(OBSERVE), "--batch-wait", "2"]
        with command("dev", "--yes", "--kubeconfig", str(kubeconfig), *times, *arguments, log=log) as dev:
            wait_for_line(dev, log, "The gatekeeper is ready")
            raise_webhook_timeouts(kubeconfig)
            yield kubeconfig


@contextlib.contextmanager
def serving(answer: Callable[[dict[str, str], bytes], Answer]) -> Iterator[str]:
    """A server that answers POST requests, by their headers and body. Yields its URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, headers, content = answer(dict(self.headers.items()), body)
            data = json.dumps(content).encode()
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(data)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
