"""Opens one of three Kubernetes clusters, for demos and tests.

- If a kubeconfig is passed: the cluster of that kubeconfig, unchanged.
- Else, if KUBEBUILDER_ASSETS is set: etcd and kube-apiserver from that folder, with simulated nodes. Without
  kube-controller-manager in the folder, the controllers are simulated too.
- Else: the sandbox's own API server with simulated nodes and controllers.
"""

import contextlib
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kube_base.access.client import Client
from kube_base.errors import UsageError
from kube_base.resources import CLUSTER_ROLES
from kube_sandbox.apiserver.server import ApiServer
from kube_sandbox.cluster.settings import SimulationSettings
from kube_sandbox.cluster.simulation import simulated
from kube_sandbox.control_plane import ControlPlane

ASSETS = "KUBEBUILDER_ASSETS"


@dataclass(frozen=True)
class Backend:
    """A running cluster: the path of an administrator's kubeconfig, and a short description for people."""

    kubeconfig: Path
    description: str


@contextlib.asynccontextmanager
async def open_backend(
    kubeconfig: str | None,
    directory: Path,
    settings: SimulationSettings | None = None,
    *,
    port: int = 0,
    simulate: bool = False,
    admission_config: Path | None = None,
    token_auth_file: Path | None = None,
) -> AsyncIterator[Backend]:
    """Open the cluster for the duration of the `async with` block; see the module for which one.

    The cluster's files are written to `directory`, which other users must not be able to read. `port` is the port of
    the sandbox's API server; 0 chooses a free one. `simulate` adds nodes to the cluster of `kubeconfig`, and
    controllers if that cluster has none. `admission_config` is the file with the AdmissionConfiguration of an API
    server that this function starts, `token_auth_file` the file with the tokens of its users. An error of the
    simulation is raised at the end of the block. Raises UsageError for a kubeconfig, a KUBEBUILDER_ASSETS or another
    file that cannot be used, and ControlPlaneError.
    """
    settings = settings or SimulationSettings()
    assets = os.environ.get(ASSETS)
    if kubeconfig:
        backend = Backend(Path(kubeconfig), f"the cluster of {kubeconfig}")
        if simulate and await _has_controllers(backend.kubeconfig):
            settings = settings.only_nodes()
        async with simulated(backend.kubeconfig, settings) if simulate else contextlib.nullcontext():
            yield backend
    elif assets:
        if not (Path(assets) / "kube-apiserver").exists():
            raise UsageError(f"{ASSETS} is {assets}, but this folder has no kube-apiserver; correct or unset it")
        plane = ControlPlane(
            Path(assets),
            directory,
            admission_config=admission_config,
            token_auth_file=token_auth_file,
            one_user=settings.one_user,
        )
        async with plane:
            with_controllers = not plane.has_controller_manager
            async with simulated(plane.kubeconfig, settings.only_nodes() if not with_controllers else settings):
                yield Backend(plane.kubeconfig, f"kube-apiserver of {assets}")
    else:
        async with ApiServer(port=port, admission_config=admission_config, token_auth_file=token_auth_file) as api:
            path = directory / "admin.kubeconfig"
            path.touch(mode=0o600)
            path.write_text(api.kubeconfig())
            async with simulated(path, settings, api.send):
                yield Backend(path, f"the sandbox's API at {api.url}")


async def _has_controllers(kubeconfig: Path) -> bool:
    """Whether a kube-controller-manager runs or ran: it fills in the rules of aggregated ClusterRoles, which the API
    server creates without rules. Its Lease is not a sign, because leader election can be off."""
    async with await Client.connect(str(kubeconfig)) as client:
        view: dict[str, Any] = await client.get(CLUSTER_ROLES, "view")
    return bool(view.get("rules"))
