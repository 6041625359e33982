"""The users of Kubernetes as which the simulated components write.

The administrator of the simulation impersonates them. Reads, watches and the Events of kubelets are requests
of the administrator.
"""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import NamedTuple

from kube_base.access.client import Client
from kube_base.access.errors import AlreadyExistsError
from kube_base.resources import CLUSTER_ROLE_BINDINGS
from kube_sandbox.cluster.kinds import Object
from kube_sandbox.cluster.settings import SimulationSettings


class Impersonated(NamedTuple):
    """A user that the user of the kubeconfig impersonates for writes. Without `groups`, the API server sets the default
    groups."""

    name: str
    groups: tuple[str, ...] = ()


IMPERSONATED: contextvars.ContextVar[Impersonated | None] = contextvars.ContextVar("impersonated", default=None)
"""The user of the writes of this task; None is the user of the kubeconfig. Reads always use the latter."""

CONTROLLERS = {
    "clonesets": "kruise-manager",
    "daemonsets": "daemon-set-controller",
    "deployments": "deployment-controller",
    "disruptions": "disruption-controller",
    "endpointslices": "endpointslice-controller",
    "garbage": "generic-garbage-collector",
    "jobs": "job-controller",
    "namespaces": "namespace-controller",
    "nodelifecycle": "node-controller",
    "replicasets": "replicaset-controller",
    "serviceaccounts": "service-account-controller",
    "statefulsets": "statefulset-controller",
}
"""The ServiceAccounts of the controllers in `settings.ALL_CONTROLLERS`."""
POD_GARBAGE_COLLECTOR = "pod-garbage-collector"
TTL_AFTER_FINISHED = "ttl-after-finished-controller"
SCHEDULER = Impersonated("system:kube-scheduler")
ONE_USER = "system:kube-controller-manager"
"""The user of all controllers with `SimulationSettings.one_user`."""
_KRUISE = "kruise-manager"
_BINDING = "kube-sandbox:controllers"


def controller(account: str, settings: SimulationSettings) -> Impersonated:
    """The user of a controller with this ServiceAccount."""
    if account == _KRUISE:
        return Impersonated(f"system:serviceaccount:kruise-system:{account}")
    return Impersonated(ONE_USER if settings.one_user else f"system:serviceaccount:kube-system:{account}")


def kubelet(node: str) -> Impersonated:
    return Impersonated(f"system:node:{node}", ("system:nodes",))


def headers(method: str) -> list[tuple[str, str]]:
    """The headers for a request of the present task."""
    user = IMPERSONATED.get()
    if user is None or method == "GET":
        return []
    return [("Impersonate-User", user.name), *(("Impersonate-Group", group) for group in user.groups)]


def become(user: Impersonated) -> None:
    """Send the following writes of this task, and of tasks that it starts, as `user`."""
    IMPERSONATED.set(user)


@contextlib.contextmanager
def acting_as(user: Impersonated) -> Iterator[None]:
    """Send the writes in the block as `user`."""
    token = IMPERSONATED.set(user)
    try:
        yield
    finally:
        IMPERSONATED.reset(token)


def context(user: Impersonated | None) -> contextvars.Context:
    """A context for tasks that write as `user`; None is the administrator."""
    made = contextvars.copy_context()
    made.run(IMPERSONATED.set, user)
    return made


async def allow(client: Client, settings: SimulationSettings) -> None:
    """Give the simulated controllers the rights of an administrator. Kubelets and the scheduler have the rights
    that Kubernetes gives them by default."""
    accounts = [CONTROLLERS[name] for name in settings.controllers]
    if "nodelifecycle" in settings.controllers:
        accounts.append(POD_GARBAGE_COLLECTOR)
    if "jobs" in settings.controllers:
        accounts.append(TTL_AFTER_FINISHED)
    names = {controller(account, settings).name for account in accounts}
    if settings.one_user:
        names.add(ONE_USER)
    if not names:
        return
    group = CLUSTER_ROLE_BINDINGS.group
    subjects: list[Object] = [{"apiGroup": group, "kind": "User", "name": name} for name in sorted(names)]
    role = {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"}
    body = {"metadata": {"name": _BINDING}, "roleRef": role, "subjects": subjects}
    try:
        await client.create(CLUSTER_ROLE_BINDINGS, body)
    except AlreadyExistsError:
        await client.patch(CLUSTER_ROLE_BINDINGS, {"subjects": subjects}, _BINDING)
