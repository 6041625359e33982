"""Runs kubectl."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Json = dict[str, Any]
T = TypeVar("T")


class Kubectl:
    """kubectl with one kubeconfig in one namespace."""

    def __init__(self, kubeconfig: Path, namespace: str = "default", *more: str) -> None:
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self._more = more

    def run(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", "--kubeconfig", str(self.kubeconfig), "-n", self.namespace, *self._more, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl and return its stdout. If it fails, the assertion shows its output."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}{done.stdout}"
        return done.stdout

    def json(self, *arguments: str) -> Json:
        result: Json = json.loads(self("get", *arguments, "-o", "json"))
        return result

    def labels(self, *arguments: str) -> dict[str, str]:
        return dict(self.json(*arguments)["metadata"].get("labels") or {})

    def wait(self, resource: str, condition: str, seconds: int = 60) -> None:
        self("wait", f"--for={condition}", resource, f"--timeout={seconds}s")


def eventually(met: Callable[[], T], waiting_for: str, seconds: float = 60.0) -> T:
    """Call `met` until its result is true, and return the result. Fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        result = met()
        if result:
            return result
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {waiting_for}; last result: {result!r}"
        time.sleep(0.1)
