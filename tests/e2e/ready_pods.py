"""The ready pods of a namespace, read from one watch of the real kubectl.

A watch also shows states that last only for a moment.
"""

import contextlib
import json
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

from tests.support.kubectl import Kubectl
from tests.support.polling import eventually


def is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return "deletionTimestamp" not in pod["metadata"] and any(
        (condition["type"], condition["status"]) == ("Ready", "True") for condition in conditions
    )


class ReadyPods:
    """The names of the ready pods, and how many there were at least."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.names: set[str] = set()
        self.fewest = 0
        self._process = process
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:  # one event each
            event = json.loads(line)
            names = self.names - {event["object"]["metadata"]["name"]}
            if event["type"] != "DELETED" and is_ready(event["object"]):
                names.add(event["object"]["metadata"]["name"])
            self.names = names
            self.fewest = min(self.fewest, len(names))


@contextlib.contextmanager
def watching(kubectl: Kubectl, number: int, *selector: str) -> Iterator[ReadyPods]:
    """Watch a namespace that has `number` ready pods. `selector`: options of kubectl that select some of its pods."""
    arguments = ["get", "pods", "--watch", "--output-watch-events", "-o", "json", *selector]
    process = subprocess.Popen(
        ["kubectl", "--kubeconfig", str(kubectl.kubeconfig), "-n", kubectl.namespace, *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        ready = ReadyPods(process)
        eventually(lambda: len(ready.names) == number, f"{number} ready pods")
        ready.fewest = number
        yield ready
    finally:
        process.terminate()
        process.wait()
