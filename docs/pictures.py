"""`python -m docs.pictures`: make the pictures of the terminal anew, from the output of the commands.

It needs kubectl and the sandbox. The versions, names of pods and times differ in each run.
"""

import asyncio
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from command.backend import open_backend
from command.installation import running_installation
from reconciler.thresholds import Thresholds

DIRECTORY = Path(__file__).parent / "pictures"
_COMMAND = Path(sys.executable).with_name("altershield")
_THRESHOLDS = Thresholds(
    start_timeout=8, observe_seconds=1, batch_wait=60, pre_timeout=120, post_timeout=120, lease_duration=15
)
_DEMO_COLUMNS, _TABLE_COLUMNS, _HELP_COLUMNS = 120, 150, 80
_DRAWN = 5.0  # seconds after which a drawing is taken
_LONGEST = 60.0  # seconds until a workload has the state that the picture shows
_MOVES = re.compile(r"(?:\r|\x1b\[(?:2K|1A|\?25[lh]))+(?=.)", re.DOTALL)  # before each frame
_FONT_FACES = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)

_POLICY = """
apiVersion: app.ops.cloud.alipay.com/v1alpha1
kind: DefensePolicy
metadata: {name: steps}
spec:
  selector: {matchLabels: {app: web}}
  rollout: {steps: [{pods: 1, soakSeconds: 1}, {pods: 2, soakSeconds: 1, approval: true}, {pods: 100%, soakSeconds: 1}]}
"""

_SLOW = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: registry.example/shop/slow-postgres:17.2}]}
"""
"""The sandbox takes two seconds to start each of its pods."""

_VERDICT = '{"status":{"podResults":[{"pod":"%s","verdict":"unpass","message":"error rate 12 %%"}]}}'


def svg(name: str, title: str, output: str, columns: int) -> str:
    """The picture of a terminal that shows `output` (with ANSI colours), wrapped at `columns`."""
    console = Console(record=True, file=io.StringIO(), width=columns, force_terminal=True, highlight=False)
    console.print(Text.from_ansi(output.rstrip()))
    picture = console.export_svg(title=title, theme=MONOKAI, unique_id=name)
    # no fonts from other servers: pages that show pictures do not load them
    return _FONT_FACES.sub("", picture).replace("Fira Code,", "'DejaVu Sans Mono',") + "\n"


def demo() -> str:
    return _run(str(_COMMAND), "demo", "--fast", columns=_DEMO_COLUMNS)


async def tables() -> dict[str, str]:
    """The output of commands about releases of several workloads, each in another state, by the command."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        async with open_backend(None, directory) as backend:
            kubeconfig = str(backend.kubeconfig)
            async with running_installation(kubeconfig, directory, _THRESHOLDS, log=directory / "altershield.log"):
                return await asyncio.to_thread(_tables, kubeconfig)


def _tables(kubeconfig: str) -> dict[str, str]:
    def kubectl(*arguments: str, stdin: str = "") -> str:
        return _run("kubectl", "--kubeconfig", kubeconfig, "-n", "shop", *arguments, stdin=stdin)

    def altershield(*arguments: str) -> str:
        where = ("-n", "shop", "--kubeconfig", kubeconfig)
        return _run(str(_COMMAND), *arguments, *where, columns=_TABLE_COLUMNS, code=None)

    def shown_once(*states: str) -> None:
        """Return once the table has a match for each of `states`."""
        deadline = time.monotonic() + _LONGEST
        while time.monotonic() < deadline:
            table = altershield("status", "--all", "-o", "wide")
            if all(re.search(state, table) for state in states):
                return
        raise TimeoutError(f"no {states} within {_LONGEST} s:\n{table}")

    def release(workload: str, image: str) -> None:
        kubectl("set", "image", f"deployment/{workload}", f"{workload}=registry.example/shop/{image}")

    kubectl("create", "namespace", "shop")
    kubectl("label", "namespace", "shop", "admission-webhook-altershield=enabled")
    attempt = ("create", "deployment", "attempt", "--image=nginx", "--dry-run=server", "-o", "yaml")
    while "altershield" not in kubectl(*attempt):  # the API server takes a moment to read the label
        time.sleep(0.1)
    kubectl("apply", "-f", "-", stdin=_POLICY)
    for workload in ("web", "api", "worker", "cart", "mail"):
        image = f"registry.example/shop/{workload}:2.2"
        kubectl("create", "deployment", workload, f"--image={image}", f"--replicas={4 if workload == 'web' else 3}")
    shown_once(*(f"/{workload} .* Success" for workload in ("web", "api", "worker", "cart", "mail")))
    release("mail", "mail:2.3-unready")
    release("web", "web:2.3")
    release("api", "api:2.3")
    shown_once("/api .*api:2.3 .* Success", "/web .* promote")
    columns = "custom-columns=:metadata.name,:spec.podInfos[0].pod"
    api = ("get", "changepods", "-l", "app.kubernetes.io/deployment-name=api", "--no-headers", "-o", columns)
    name, pod = kubectl(*api).splitlines()[0].split()
    kubectl("patch", "changepod", name, "--subresource=status", "--type=merge", "-p", _VERDICT % pod)
    shown_once("/api .* Suspend", "/mail .* Failed")
    kubectl("apply", "-f", "-", stdin=_SLOW)
    shown_once("/db .* Running")
    return {
        "altershield status -n shop": altershield("status"),
        "altershield status deploy/web -n shop --watch": _last_frame(
            str(_COMMAND), "status", "deploy/web", "--watch", "-n", "shop", "--kubeconfig", kubeconfig
        ),
        "altershield why deploy/api -n shop": altershield("why", "deploy/api"),
        "altershield history deploy/mail -n shop": altershield("history", "deploy/mail"),
    }


def _last_frame(*command: str) -> str:
    """What the command that draws again and again shows when it is interrupted."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment(_TABLE_COLUMNS)) as process:  # noqa: S603  (ours)
        time.sleep(_DRAWN)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
    return _MOVES.split(output)[-1]


def _run(*command: str, stdin: str = "", columns: int = 0, code: int | None = 0) -> str:
    """The output of the command, as on a terminal of so many columns. `code`: the expected exit code, None for any.
    RuntimeError: another exit code."""
    environment = _environment(columns)
    done = subprocess.run(  # noqa: S603  (our own commands)
        command, input=stdin, capture_output=True, text=True, env=environment, check=False
    )
    if code is not None and done.returncode != code:
        raise RuntimeError(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout + (done.stderr if columns else "")


def _environment(columns: int) -> dict[str, str]:
    """The variables of a command. `columns`: those of its terminal; 0: it has none."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ALTERSHIELD_")}
    if columns:  # colours, but no spinner
        environment |= {"FORCE_COLOR": "1", "TTY_INTERACTIVE": "0", "COLUMNS": str(columns), "TERM": "xterm-256color"}
    return environment


def main() -> None:
    DIRECTORY.mkdir(exist_ok=True)
    (DIRECTORY / "demo.svg").write_text(svg("demo", "make demo", demo(), _DEMO_COLUMNS))
    help_ = "altershield --help"
    shown = {help_: _run(str(_COMMAND), "--help", columns=_HELP_COLUMNS), **asyncio.run(tables())}
    for name, (command, output) in zip(("help", "status", "tree", "why", "history"), shown.items(), strict=True):
        columns = _HELP_COLUMNS if command == help_ else _TABLE_COLUMNS
        (DIRECTORY / f"{name}.svg").write_text(svg(name, command, f"$ {command}\n{output}", columns))


if __name__ == "__main__":
    main()
