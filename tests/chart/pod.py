"""The processes of the release's pod, started on this machine instead of in containers."""

import contextlib
import functools
import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from altershield.api.names import SYSTEM_NAMESPACE
from kube_base.processes import free_ports
from tests.chart.recorder import Recorder, recording
from tests.chart.rendering import RELEASE, Object, containers, variables
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually
from tests.support.processes import running


class Command(NamedTuple):
    """The arguments of a container's command after the interpreter, and the container's own environment variables."""

    arguments: list[str]
    variables: dict[str, str]


def here(container: Object, ports: dict[str, int], directory: Path) -> Command:
    """The container's command, with ports and directories of this machine. The token of an AlterShield server is read
    from the file `token` of the directory."""
    own = {
        "--port=10250": f"--port={ports['webhook']}",
        "--directory=/certificates": f"--directory={directory}",
        "--tls-cert-file=/certificates/tls.crt": f"--tls-cert-file={directory}/tls.crt",
        "--tls-private-key-file=/certificates/tls.key": f"--tls-private-key-file={directory}/tls.key",
        "--server-token-file=/server/token": f"--server-token-file={directory}/token",
        "--callback-port=8090": f"--callback-port={ports.get('callbacks')}",
        "--callback-tls-cert-file=/certificates/tls.crt": f"--callback-tls-cert-file={directory}/tls.crt",
        "--callback-tls-private-key-file=/certificates/tls.key": f"--callback-tls-private-key-file={directory}/tls.key",
    }
    arguments = [own.get(argument, argument) for argument in container["args"]]
    arguments = [
        f"--metrics-port={ports[container['name']]}" if argument.startswith("--metrics-port=") else argument
        for argument in arguments
        if not argument.startswith("--shutdown-delay=")
    ]
    environment = variables(container)
    if container["name"] == "certgen":
        names = environment.get("ALTERSHIELD_SAN", f"{RELEASE}.{SYSTEM_NAMESPACE}.svc")
        environment["ALTERSHIELD_SAN"] = f"127.0.0.1 {names}"
    if container["name"] == "gatekeeper":
        arguments += ["--host=127.0.0.1", "--shutdown-delay=0"]
    return Command([*container["command"][1:], *arguments], environment)


def process(
    command: Command, kubeconfig: Path, log: Path, python: str = sys.executable
) -> contextlib.AbstractContextManager[object]:
    """Run the container's command until the block ends."""
    environment = {**os.environ, **command.variables, "ALTERSHIELD_KUBECONFIG": str(kubeconfig)}
    return running([python, *command.arguments], log, environment)


class Pod(NamedTuple):
    kubeconfig: Path
    recorder: Recorder
    """Records the requests of the pod's service account."""
    ports: dict[str, int]
    commands: dict[str, Command]
    """By container."""


@contextlib.contextmanager
def pod_of(system: Kubectl, deployment: Object, directory: Path, python: str = sys.executable) -> Iterator[Pod]:
    """Run the processes of a pod of the Deployment under its service account. `directory` gets their certificate and
    their logs, whose ends are printed."""
    name = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    ports = ports_for(deployment)
    commands = {each: here(container, ports, directory) for each, container in containers(deployment).items()}
    with recording(str(system.kubeconfig)) as recorder, contextlib.ExitStack() as processes:
        kubeconfig = account(system, name, recorder.url, directory)
        try:
            for each, command in commands.items():
                processes.enter_context(process(command, kubeconfig, directory / f"{each}.log", python))
            yield Pod(kubeconfig, recorder, ports, commands)
        finally:
            for log in directory.glob("*.log"):
                print(f"--- {log.name}\n{log.read_text()[-4000:]}")


def account(system: Kubectl, name: str, server: str, directory: Path) -> Path:
    """A kubeconfig for a service account of the release."""
    token = system("create", "token", name, "--duration=1h").strip()
    kubeconfig = directory / f"{name}.kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "users": [{"name": "it", "user": {"token": token}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(yaml.safe_dump(content))
    return kubeconfig


def point_webhooks_here(system: Kubectl, port: int) -> None:
    for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
        patch = []
        for number, webhook in enumerate(system.json(kind, RELEASE)["webhooks"]):
            url = f"https://127.0.0.1:{port}{webhook['clientConfig']['service']['path']}"
            place = f"/webhooks/{number}"
            patch += [
                {"op": "add", "path": f"{place}/clientConfig/url", "value": url},
                {"op": "remove", "path": f"{place}/clientConfig/service"},
                {
                    "op": "replace",
                    "path": f"{place}/timeoutSeconds",
                    "value": 30,
                },  # the machine may be busy with other tests
            ]
        system("patch", kind, RELEASE, "--type=json", "-p", json.dumps(patch))


def is_ready(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as connection:
        connection.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
        return b" 200 " in connection.recv(64)
    return False


def wait_until_ready(ports: dict[str, int], *containers: str) -> None:
    for name in containers:
        eventually(functools.partial(is_ready, ports[name]), f"the {name} to be ready")


def ports_for(deployment: Object) -> dict[str, int]:
    """Free ports: for the webhook, for callbacks, and for the metrics and probes of each container."""
    names = ("webhook", "callbacks", *containers(deployment))
    return dict(zip(names, free_ports(len(names)), strict=True))
