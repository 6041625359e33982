"""Runs kubectl."""

import json
import subprocess
from pathlib import Path
from typing import Any

from support.polling import HANG

Json = dict[str, Any]


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
            timeout=HANG,
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

    def wait(self, resource: str, condition: str) -> None:
        self("wait", f"--for={condition}", resource, f"--timeout={HANG:.0f}s")
