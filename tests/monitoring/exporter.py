"""A target that Prometheus scrapes."""

import contextlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.monitoring.backfilled import serving


class Exporter:
    """A target with the gauge `failures`. It answers with HTTP 500 while `up` is False."""

    def __init__(self) -> None:
        self.up = True
        self.value = "0"
        exporter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200 if exporter.up else 500)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(f"failures {exporter.value}\n".encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextlib.contextmanager
def scraped(exporter: Exporter, directory: Path, prometheus: str) -> Iterator[str]:
    """The URL of a Prometheus that scrapes the exporter every second. `prometheus` is the path of the program."""
    every = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    scrape = {"job_name": "exporter", "static_configs": [{"targets": [exporter.address]}]}
    configuration: dict[str, object] = {"global": every, "scrape_configs": [scrape]}
    with serving(directory, prometheus, configuration, f"--storage.tsdb.path={directory / 'data'}") as url:
        yield url
