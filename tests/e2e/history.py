"""The history of releases, read from one watch of the real kubectl.

A watch also shows states that last only for a moment.
"""

import contextlib
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.kubectl import Json
from tests.support.polling import eventually


class ReleaseHistory:
    """The states of one ChangeWorkload, and its last version."""

    def __init__(self) -> None:
        self.obj: Json = {}
        self.states: list[str] = []
        """All states that it was in, in order."""
        self.said: set[str] = set()
        """All messages of its conditions PodsNotUp and Stalled."""
        self.deleted = False

    @property
    def name(self) -> str:
        return str(self.obj["metadata"]["name"])

    @property
    def status(self) -> Json:
        return dict(self.obj.get("status") or {})

    @property
    def state(self) -> str:
        return self.states[-1] if self.states else ""

    @property
    def failed(self) -> list[Json]:
        return list(self.status.get("defenseCheckFailPods") or [])

    def condition(self, type_: str) -> Json:
        """The condition of this type; empty if there is none."""
        return next((each for each in self.status.get("conditions") or [] if each["type"] == type_), {})

    def __repr__(self) -> str:
        return f"{self.name}: {' > '.join(self.states)}: {json.dumps(self.status.get('conditions'))}"

    def see(self, event: Json) -> None:
        self.obj = event["object"]
        self.deleted = event["type"] == "DELETED"
        self.said |= {str(self.condition(type_).get("message", "")) for type_ in ("PodsNotUp", "Stalled")}
        state = self.status.get("status", "")
        if state and state != self.state:
            self.states.append(state)


class History:
    """The releases of all namespaces."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._releases: dict[tuple[str, str], ReleaseHistory] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def release(self, namespace: str, name: str) -> ReleaseHistory | None:
        return self._releases.get((namespace, name))

    def until(
        self, namespace: str, name: str, met: Callable[[ReleaseHistory], object], waiting_for: str
    ) -> ReleaseHistory:
        """Wait until `met` is true for the release, and return the release."""

        def found() -> Any:
            assert self._process.poll() is None, "kubectl ended"
            release = self.release(namespace, name)
            return release if release is not None and met(release) else None

        try:
            result: ReleaseHistory = eventually(found, waiting_for)
        except AssertionError as error:
            raise AssertionError(f"{namespace}: {error}; the release is {self.release(namespace, name)!r}") from None
        return result

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:  # one event each
            event = json.loads(line)
            metadata = event["object"]["metadata"]
            self._releases.setdefault((metadata["namespace"], metadata["name"]), ReleaseHistory()).see(event)


@contextlib.contextmanager
def watching(kubeconfig: Path) -> Iterator[History]:
    arguments = ["get", "changeworkloads", "--all-namespaces", "--watch", "--output-watch-events", "-o", "json"]
    process = subprocess.Popen(
        ["kubectl", "--kubeconfig", str(kubeconfig), *arguments], stdout=subprocess.PIPE, text=True
    )
    try:
        yield History(process)
    finally:
        process.terminate()
        process.wait()
