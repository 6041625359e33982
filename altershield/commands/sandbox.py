"""`altershield sandbox`: a Kubernetes to try things on."""

import contextlib
import tempfile
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from rich.console import Console

from altershield.commands.backend import open_backend
from altershield.process.signals import stop_event


def _seconds(option: str, explanation: str) -> typer.models.OptionInfo:
    """A simulated time."""
    variable = "ALTERSHIELD_" + option.removeprefix("--").replace("-", "_").upper()
    info: typer.models.OptionInfo = typer.Option(
        option, envvar=variable, min=0, max=86_400, help=f"Simulated: {explanation}, seconds."
    )
    return info


def sandbox(
    port: Annotated[
        int,
        typer.Option(
            "--port", envvar="ALTERSHIELD_PORT", min=0, max=65535, help="Port of the API; 0 takes a free one."
        ),
    ] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            envvar="ALTERSHIELD_OUTPUT",
            help="Write the kubeconfig to this file instead of stdout.",
        ),
    ] = None,
    kubeconfig: Annotated[
        str | None,
        typer.Option(
            "--kubeconfig",
            envvar="ALTERSHIELD_KUBECONFIG",
            help="Serve no API: simulate nodes on this one, which has none (and controllers, if they are missing).",
        ),
    ] = None,
    nodes: Annotated[
        int, typer.Option("--nodes", envvar="ALTERSHIELD_NODES", min=0, max=1000, help="How many nodes to simulate.")
    ] = 3,
    image_pull: Annotated[float, _seconds("--image-pull", "a node's first pull of an image")] = 0.02,
    container_start: Annotated[float, _seconds("--container-start", "the start of a container")] = 0.02,
    slow_start: Annotated[float, _seconds("--slow-start", "the start where the image's name says slow")] = 2.0,
    ready: Annotated[float, _seconds("--ready", "from running to ready, with a probe")] = 0.02,
    crash: Annotated[float, _seconds("--crash", "start to exit where the image's name says crash")] = 0.0,
    back_off: Annotated[
        float, _seconds("--back-off", "the first wait before a restart or another pull; it doubles")
    ] = 0.5,
    termination: Annotated[float, _seconds("--termination", "the end of a deleted pod")] = 0.02,
    eviction: Annotated[
        float, _seconds("--eviction", "the longest that pods stay on a node that is not ready")
    ] = 300.0,
    clone_sets: Annotated[
        bool,
        typer.Option(
            "--clonesets",
            envvar="ALTERSHIELD_CLONESETS",
            help="Define CloneSets (OpenKruise) and simulate their controller, whatever controllers there are.",
        ),
    ] = False,
) -> None:
    """Serve a Kubernetes API on loopback, with simulated nodes and controllers, until Ctrl-C.

    Prints a kubeconfig. With KUBEBUILDER_ASSETS naming a folder with etcd and kube-apiserver, the API is the real one.
    """
    settings = {
        "nodes": nodes,
        "image_pull": image_pull,
        "container_start": container_start,
        "slow_start": slow_start,
        "ready": ready,
        "crash": crash,
        "crash_back_off": back_off,
        "pull_back_off": back_off,
        "termination": termination,
        "eviction": eviction,
        "define_clone_sets": clone_sets,
    }

    async def serve() -> None:
        stop = stop_event()
        with tempfile.TemporaryDirectory(prefix="altershield-") as directory:
            async with open_backend(kubeconfig, Path(directory), port=port, simulate=True, **settings) as backend:
                text = backend.kubeconfig.read_text()
                if output is None:
                    print(text, flush=True)
                else:
                    output.touch(mode=0o600)
                    output.chmod(0o600)  # it may have been there before
                    output.write_text(text)
                Console(stderr=True, soft_wrap=True).print(
                    f"Serving {backend.description}. Use it from another terminal:\n"
                    f"  export KUBECONFIG={(output or backend.kubeconfig).absolute()}\nCtrl-C ends it."
                )
                await stop.wait()
        if output is not None:
            with contextlib.suppress(FileNotFoundError):
                output.unlink()

    uvloop.run(serve())
