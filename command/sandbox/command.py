"""`altershield sandbox`: a Kubernetes API with simulated nodes, and an AlterShield server, for tests."""

import contextlib
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop
from rich.console import Console

from altershield.process.parameters import with_options
from altershield.process.signals import stop_event
from command.backend import open_backend
from command.sandbox.server import CALLBACK, private_file, running_server
from command.sandbox.users import TokenUser, token_csv, token_users, with_contexts
from kube_base.errors import UsageError


def _seconds(option: str, explanation: str) -> typer.models.OptionInfo:
    """The option of a simulated time."""
    variable = "ALTERSHIELD_" + option.removeprefix("--").replace("-", "_").upper()
    info: typer.models.OptionInfo = typer.Option(
        option, envvar=variable, min=0, max=86_400, help=f"Simulated: {explanation}, seconds."
    )
    return info


@dataclass(frozen=True, kw_only=True)
class Options:
    port: Annotated[
        int,
        typer.Option("--port", envvar="ALTERSHIELD_PORT", min=0, max=65535, help="Port of the API. 0: any free port."),
    ] = 0
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            envvar="ALTERSHIELD_OUTPUT",
            help="Write the kubeconfig to this file instead of stdout.",
        ),
    ] = None
    kubeconfig: Annotated[
        str | None,
        typer.Option(
            "--kubeconfig",
            envvar="ALTERSHIELD_KUBECONFIG",
            help="Serve no API. Simulate nodes and missing controllers for this cluster, which must have no nodes.",
        ),
    ] = None
    user: Annotated[
        list[str],
        typer.Option(
            "--user",
            envvar="ALTERSHIELD_USER",
            metavar="NAME[=GROUP,…]",
            help="A user with a token, as ann or ann=GROUP,GROUP. The kubeconfig has a context ann. May be repeated.",
        ),
    ] = field(default_factory=list)
    nodes: Annotated[
        int, typer.Option("--nodes", envvar="ALTERSHIELD_NODES", min=0, max=1000, help="Number of simulated nodes.")
    ] = 3
    image_pull: Annotated[float, _seconds("--image-pull", "the first pull of an image on a node")] = 0.02
    container_start: Annotated[float, _seconds("--container-start", "start of a container")] = 0.02
    slow_start: Annotated[float, _seconds("--slow-start", "start of a container whose image contains `slow`")] = 2.0
    ready: Annotated[float, _seconds("--ready", "from running to ready, with a probe")] = 0.02
    crash: Annotated[float, _seconds("--crash", "start to exit of a container whose image contains `crash`")] = 0.0
    back_off: Annotated[
        float, _seconds("--back-off", "first wait before a restart or another pull, which then doubles")
    ] = 0.5
    termination: Annotated[float, _seconds("--termination", "termination of a deleted pod")] = 0.02
    eviction: Annotated[float, _seconds("--eviction", "maximum time of pods on a node that is not ready")] = 300.0
    clone_sets: Annotated[
        bool,
        typer.Option(
            "--clonesets",
            envvar="ALTERSHIELD_CLONESETS",
            help="Define CloneSets (OpenKruise) and always simulate their controller.",
        ),
    ] = False
    altershield_server: Annotated[
        bool,
        typer.Option(
            "--altershield-server",
            envvar="ALTERSHIELD_ALTERSHIELD_SERVER",
            help="Serve an AlterShield server too, with scripted checks. Prints the options for `altershield dev`.",
        ),
    ] = False
    server_callback: Annotated[
        str,
        typer.Option(
            "--server-callback",
            envvar="ALTERSHIELD_SERVER_CALLBACK",
            help="The URL to which the AlterShield server sends verdicts.",
        ),
    ] = CALLBACK

    @property
    def simulation(self) -> dict[str, Any]:
        """Fields of the sandbox's SimulationSettings."""
        return {
            "nodes": self.nodes,
            "image_pull": self.image_pull,
            "container_start": self.container_start,
            "slow_start": self.slow_start,
            "ready": self.ready,
            "crash": self.crash,
            "crash_back_off": self.back_off,
            "pull_back_off": self.back_off,
            "termination": self.termination,
            "eviction": self.eviction,
            "define_clone_sets": self.clone_sets,
        }


@with_options(Options)
def sandbox(chosen: Options) -> None:
    """Serve a Kubernetes API on loopback, with simulated nodes and controllers, until Ctrl-C.

    Prints a kubeconfig. If KUBEBUILDER_ASSETS is a directory with etcd and kube-apiserver, the API is kube-apiserver's.
    """
    uvloop.run(_serve(chosen))


async def _serve(chosen: Options) -> None:
    console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    stop = stop_event()
    output, users = chosen.output, _users(chosen)
    async with contextlib.AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="altershield-")))
        if chosen.altershield_server:
            beside = output or directory / "kubeconfig"
            token_file = beside.with_name(f"{beside.name}.server-token")
            console.print(await stack.enter_async_context(running_server(token_file, chosen.server_callback)))
        tokens = directory / "tokens.csv" if users else None
        if tokens is not None:
            stack.enter_context(private_file(tokens, token_csv(users)))
        opened = open_backend(
            chosen.kubeconfig,
            directory,
            port=chosen.port,
            simulate=True,
            token_auth_file=tokens,
            **chosen.simulation,
        )
        backend = await stack.enter_async_context(opened)
        text = backend.kubeconfig.read_text()
        if users:
            text = with_contexts(text, users)
            backend.kubeconfig.write_text(text)
        if output is None:
            print(text, flush=True)
        else:
            stack.enter_context(private_file(output, text))
        console.print(
            f"Serving {backend.description}. Use it from another terminal:\n"
            f"  export KUBECONFIG={(output or backend.kubeconfig).absolute()}\nCtrl-C stops it."
        )
        await stop.wait()


def _users(chosen: Options) -> list[TokenUser]:
    if chosen.user and chosen.kubeconfig:
        raise UsageError(
            "--user needs an API server that this command starts; in the cluster of --kubeconfig, "
            "use a ServiceAccount and `kubectl create token`"
        )
    return token_users(chosen.user)
