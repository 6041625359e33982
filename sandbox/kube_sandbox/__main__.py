"""`python -m kube_sandbox`: serve a Kubernetes API with simulated nodes until Ctrl-C."""

import argparse
import asyncio
import signal
import sys
import tempfile
from pathlib import Path

from kube_base.errors import ReportedError
from kube_sandbox.backends import open_backend
from kube_sandbox.cluster.settings import SimulationSettings
from kube_sandbox.errors import SandboxError
from kube_sandbox.garbage import collect_less_often


def main() -> int:
    parser = argparse.ArgumentParser("python -m kube_sandbox", description=__doc__)
    parser.add_argument(
        "--output", type=Path, required=True, help="write the kubeconfig of the administrator to this file"
    )
    parser.add_argument("--port", type=int, default=0, help="the port of the API server; 0 chooses a free one")
    parser.add_argument("--kubeconfig", help="serve no API; simulate nodes in the cluster of this kubeconfig")
    parser.add_argument("--nodes", type=int, default=3, help="the number of simulated nodes")
    parser.add_argument(
        "--clonesets", action="store_true", help="create the CloneSet CRD (OpenKruise) and simulate CloneSets"
    )
    parser.add_argument(
        "--one-user",
        action="store_true",
        help="all controllers are system:kube-controller-manager, as without --use-service-account-credentials",
    )
    parser.add_argument(
        "--admission-control-config-file",
        type=Path,
        help="as for kube-apiserver: the file with the client certificates for webhooks",
    )
    parser.add_argument("--token-auth-file", type=Path, help="as for kube-apiserver: the file with the tokens of users")
    collect_less_often()
    try:
        asyncio.run(_serve(parser.parse_args()))
    except ReportedError as error:
        print(f"kube_sandbox: {error}", file=sys.stderr)
        return 1
    return 0


async def _serve(options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    settings = SimulationSettings(nodes=options.nodes, define_clone_sets=options.clonesets, one_user=options.one_user)
    with tempfile.TemporaryDirectory(prefix="kube-sandbox-") as directory:
        opened = open_backend(
            options.kubeconfig,
            Path(directory),
            settings,
            port=options.port,
            simulate=True,
            admission_config=options.admission_control_config_file,
            token_auth_file=options.token_auth_file,
        )
        async with opened as backend:
            try:
                options.output.touch(mode=0o600)
                options.output.write_text(backend.kubeconfig.read_text())
            except OSError as error:
                raise SandboxError(f"cannot write {options.output}: {error.strerror}") from error
            print(f"Serving {backend.description}: export KUBECONFIG={options.output.absolute()}", flush=True)
            await stop.wait()


if __name__ == "__main__":
    sys.exit(main())
