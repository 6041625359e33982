"""Requests to the API server of a kubeconfig through one `kubectl proxy`."""

import atexit
import contextlib
import functools
import http.client
import json
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.polling import HANG

Json = dict[str, Any]
Headers = Mapping[str, str]


class Proxy:
    """`kubectl proxy`, with one connection per thread for reads. `headers` may name a user to impersonate."""

    def __init__(self, kubeconfig: Path) -> None:
        self._process = subprocess.Popen(
            ["kubectl", "--kubeconfig", str(kubeconfig), "proxy", "--port=0"], stdout=subprocess.PIPE, text=True
        )
        atexit.register(self._process.kill)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()  # Starting to serve on 127.0.0.1:40001
        address = urlsplit(f"//{line.split()[-1]}")
        assert address.hostname is not None
        self._host_and_port = address.hostname, address.port
        self._connections = threading.local()

    def get(self, path: str, headers: Headers | None = None) -> tuple[int, Json]:
        """The status and the answer."""
        for attempt in range(2):
            connection = self._connection()
            try:
                connection.request("GET", path, headers=headers or {})
                answer = connection.getresponse()
                return answer.status, json.loads(answer.read())
            except (http.client.HTTPException, OSError):  # the proxy closed the connection while it was idle
                connection.close()
                if attempt:
                    raise
        raise AssertionError

    def request(
        self,
        method: str,
        path: str,
        body: str | None = None,
        content_type: str = "application/yaml",
        headers: Headers | None = None,
    ) -> tuple[int, Json]:
        """Send a request that changes something. It has a connection of its own, so that it is never repeated. The
        warnings of the API server are in the answer, as `warnings`."""
        with contextlib.closing(self._connect()) as connection:
            connection.request(method, path, body=body, headers={"Content-Type": content_type, **(headers or {})})
            answer = connection.getresponse()
            found = json.loads(answer.read())
            return answer.status, {**found, "warnings": warnings} if (warnings := _warnings(answer)) else found

    def watch(self, path: str, headers: Headers | None = None) -> Iterator[Json]:
        """The events of a watch that ends after `HANG`. `path` has a query."""
        with contextlib.closing(self._connect(2 * HANG)) as connection:
            connection.request("GET", f"{path}&watch=true&timeoutSeconds={HANG:.0f}", headers=headers or {})
            answer = connection.getresponse()
            assert answer.status == 200, f"{path}: {answer.read()!r}"
            yield from map(json.loads, answer)

    def _connection(self) -> http.client.HTTPConnection:
        if not hasattr(self._connections, "connection"):
            self._connections.connection = self._connect()
        connection: http.client.HTTPConnection = self._connections.connection
        return connection

    def _connect(self, seconds: float = HANG) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(*self._host_and_port, timeout=seconds)


@functools.cache
def proxy(kubeconfig: Path) -> Proxy:
    return Proxy(kubeconfig)


def _warnings(answer: http.client.HTTPResponse) -> list[str]:
    """The texts of the headers `Warning: 299 - "TEXT"`."""
    return [json.loads(value.split(" ", 2)[2]) for value in answer.headers.get_all("Warning") or ()]
