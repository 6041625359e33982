"""`altershield sandbox`: a Kubernetes to try things on."""

import asyncio
import contextlib
import signal
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from altershield.errors import UsageError


def sandbox(
    port: Annotated[
        int, typer.Option("--port", envvar="ALTERSHIELD_PORT", help="Port of the API; 0 takes a free one.")
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
            help="Serve no API: simulate nodes (and the controllers that are missing) on this one, which has none.",
        ),
    ] = None,
) -> None:
    """Serve a Kubernetes API on loopback, with simulated nodes and controllers, until Ctrl-C.

    Prints a kubeconfig. With KUBEBUILDER_ASSETS naming a folder with etcd and kube-apiserver, the API is the real one.
    """
    try:
        from altershield.sandbox.backends import open_backend
    except ImportError as error:
        raise UsageError(f"the sandbox needs more packages ({error}): pip install 'altershield[sandbox]'") from error

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        with tempfile.TemporaryDirectory(prefix="altershield-") as directory:
            async with open_backend(kubeconfig, Path(directory), port=port, simulate=True) as backend:
                text = backend.kubeconfig.read_text()
                if output is None:
                    print(text, flush=True)
                else:
                    output.touch(mode=0o600)
                    output.write_text(text)
                Console(stderr=True, soft_wrap=True).print(
                    f"Serving {backend.description}. Use it from another terminal:\n"
                    f"  export KUBECONFIG={(output or backend.kubeconfig).absolute()}\nCtrl-C ends it."
                )
                await stop.wait()
        if output is not None:
            with contextlib.suppress(FileNotFoundError):
                output.unlink()

    asyncio.run(serve())
