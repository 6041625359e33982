"""`python -m tests.docs.denial`: make the picture of a denial anew, as the author of the release meets it.

It needs kubectl and the sandbox. The versions, names of pods and times differ in each run.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from command.backend import open_backend
from command.installation import running_installation
from docs.pictures import DIRECTORY, svg
from reconciler.thresholds import Thresholds

_COLUMNS = 120
_LONGEST = 60.0  # seconds until the release is denied
_THRESHOLDS = Thresholds(
    start_timeout=8, observe_seconds=1, batch_wait=60, pre_timeout=120, post_timeout=120, lease_duration=15
)
_RELEASE, _WHY = "kubectl -n shop set image deployment web nginx=nginx:1.29", "altershield why deploy/web -n shop"
_SUSPENDED = """
kubectl create namespace shop
kubectl label namespace shop admission-webhook-altershield=enabled
attempt="kubectl -n shop create deployment attempt --image=nginx --dry-run=server -o yaml"
until $attempt | grep altershield; do sleep 0.1; done
kubectl -n shop create deployment web --image=nginx:1.27 --replicas=3
altershield wait deploy/web -n shop
kubectl -n shop set image deployment web nginx=nginx:1.28
altershield wait deploy/web -n shop
pod=$(kubectl -n shop get pods -o jsonpath={.items[0].metadata.name})
altershield verdict $pod fail -n shop -m "error rate 12 %"
"""


async def denial() -> str:
    """A release that is denied, and the reason, as a terminal shows both."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        async with open_backend(None, directory) as backend:
            kubeconfig = str(backend.kubeconfig)
            async with running_installation(kubeconfig, directory, _THRESHOLDS, log=directory / "altershield.log"):
                return await asyncio.to_thread(_denial, kubeconfig)


def _denial(kubeconfig: str) -> str:
    _run(_SUSPENDED, kubeconfig, check=True)
    deadline = time.monotonic() + _LONGEST
    while "is suspended" not in (answer := _run(f"{_RELEASE} --dry-run=server", kubeconfig)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the release is not denied:\n{answer}")
        time.sleep(0.1)
    return "\n".join(f"$ {command}\n{_run(command, kubeconfig)}" for command in (_RELEASE, _WHY))


def _run(script: str, kubeconfig: str, *, check: bool = False) -> str:
    """What the commands print, on a terminal with colours. CalledProcessError: with `check`, one of them failed."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ALTERSHIELD_")} | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "KUBECONFIG": kubeconfig,
        "FORCE_COLOR": "1",
        "TTY_INTERACTIVE": "0",
        "COLUMNS": str(_COLUMNS),
        "TERM": "xterm-256color",
    }
    command = ["bash", "-ec", f"exec 2>&1\n{script}"]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=check).stdout


if __name__ == "__main__":
    (DIRECTORY / "denial.svg").write_text(svg("denial", "A denial", asyncio.run(denial()), _COLUMNS))
