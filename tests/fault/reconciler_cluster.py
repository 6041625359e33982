"""A sandbox API with simulated nodes and reconcilers, for tests in which the API or a reconciler fails.

No gatekeeper runs. The tests set the version labels themselves.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from altershield.api import labels, names
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, OPS_CONFIG_INFOS
from command.install import crds, rbac
from kube_base.access.client import Client, PatchType
from kube_base.access.errors import NotFoundError
from kube_base.resources import CRDS, DEPLOYMENTS, LEASES, NAMESPACES, PODS, STATEFUL_SETS, Resource
from kube_base.times import unix
from kube_sandbox.apiserver.server import ApiServer
from kube_sandbox.apiserver.storage.store import Snapshot, Store
from kube_sandbox.cluster.settings import SimulationSettings
from kube_sandbox.cluster.simulation import simulated
from reconciler.manager import Manager
from reconciler.options import Options
from reconciler.outbound.outbound_client import Outbound, api_servers
from reconciler.outbound.urls import allowed_hosts
from reconciler.receivers.file import Delivery, ReceiversFile
from reconciler.server.server_client import ServerClient
from reconciler.server.server_settings import Settings
from tests.support import workloads
from tests.support.polling import until

Object = dict[str, Any]
T = TypeVar("T")

IDENTITY = web.RequestKey("identity", str)
LEASE_SECONDS = 3.0
_ADMIN = "admin.kubeconfig"
_KUBECTL = {"fieldManager": "kubectl"}
_CONTROLLERS = frozenset({"daemonsets", "deployments", "jobs", "replicasets", "serviceaccounts", "statefulsets"})


GoOn = Callable[[], Awaitable[web.StreamResponse]]
Fault = Callable[[web.Request, GoOn], Awaitable[web.StreamResponse]]


class Faults:
    """Middleware of the API server that passes the reconcilers' requests, and no others, to a fault."""

    def __init__(self) -> None:
        self.identities: dict[str, str] = {}
        self.fault: Fault | None = None

    @property
    def middleware(self) -> Middleware:
        @web.middleware
        async def faults(request: web.Request, handler: Handler) -> web.StreamResponse:
            identity = self.identities.get(request.headers.get("Authorization", ""))
            if identity is None or self.fault is None:
                return await handler(request)
            request[IDENTITY] = identity
            return await self.fault(request, lambda: handler(request))

        return faults


class Cluster:
    """Operations of an administrator in the cluster, in one governed namespace at a time.

    A fault may answer, delay or drop the reconcilers' requests. `request[IDENTITY]` is the reconciler's identity.
    """

    def __init__(
        self,
        api: ApiServer,
        admin: Client,
        directory: Path,
        faults: "Faults",
        simulation: SimulationSettings,
        controllers: contextlib.AsyncExitStack,
    ) -> None:
        self.admin = admin
        self._simulation = simulation
        self._controllers = controllers
        self.namespace = ""
        self._api = api
        self._directory = directory
        self._faults = faults

    def set_fault(self, fault: Fault | None) -> None:
        self._faults.fault = fault

    async def stop_controllers(self) -> None:
        """Stop the simulated nodes and controllers, in the task that started the cluster."""
        await self._controllers.aclose()

    @property
    def store(self) -> Store:
        """The storage of the API server."""
        return self._api.store

    def snapshot(self) -> Snapshot:
        """The storage of the API server as it is now."""
        return self._api.store.snapshot()

    async def restore(self, snapshot: Snapshot) -> None:
        """Restore the storage, and restart the simulated nodes and controllers. No reconciler may run."""
        await self.stop_controllers()
        self._api.store.restore(snapshot)
        simulation = simulated(self._directory / _ADMIN, self._simulation, self._api.send)
        await self._controllers.enter_async_context(simulation)

    async def go_to(self, namespace: str) -> None:
        """Create another governed namespace, and use it from now on."""
        self.namespace = namespace
        await self.admin.create(NAMESPACES, _namespace(namespace, {labels.GOVERNED: labels.GOVERNED_VALUE}))

    @contextlib.asynccontextmanager
    async def reconciler(
        self,
        *,
        start_timeout: float = 3.0,
        observe_seconds: float = 0.2,
        identity: str = "one",
        streaming_lists: bool = True,
        server: Settings | None = None,
        check_timeout: int = 120,
        callback_port: int = 0,
        history_limit: int = 10,
        notifications: Path | None = None,
    ) -> AsyncIterator[Manager]:
        """Run a reconciler until the block ends, with the service account and permissions of production."""
        options = Options(
            system_namespace=names.SYSTEM_NAMESPACE,
            identity=identity,
            start_timeout=start_timeout,
            observe_seconds=observe_seconds,
            batch_wait=1,
            pre_timeout=check_timeout,
            post_timeout=check_timeout,
            history_limit=history_limit,
            callback_port=callback_port,
            callback_host="127.0.0.1",
            lease_duration=LEASE_SECONDS,
            metrics_port=0,
        )
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{names.SYSTEM_NAMESPACE}")
        token = self._api.add_token(names.service_account_user(), groups=groups)
        self._faults.identities[f"Bearer {token}"] = identity
        kubeconfig = self._directory / f"{identity}.kubeconfig"
        kubeconfig.write_text(self._api.kubeconfig(token))
        async with contextlib.AsyncExitStack() as stack:
            client = await stack.enter_async_context(await Client.connect(str(kubeconfig)))
            client.streaming_lists = streaming_lists
            server_client = await stack.enter_async_context(ServerClient(server)) if server is not None else None
            outbound = await stack.enter_async_context(
                Outbound(allowed_hosts(["127.0.0.1"]), api_servers(url=client.server))
            )
            delivery = None
            if notifications is not None:
                sender = await stack.enter_async_context(Outbound(allowed_hosts([])))
                delivery = Delivery(ReceiversFile(notifications), sender)
            manager = Manager(client, options, server=server_client, outbound=outbound, delivery=delivery)
            running = asyncio.create_task(manager.run(asyncio.Event()))
            try:
                yield manager
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    async def release(self, version: str, *, image: str = "busybox", replicas: int = 2, repair: bool = False) -> None:
        """Create the Deployment, or change its template, with `version` in the version labels (empty: without them)."""
        stamp = {labels.VERSION: version} if version else {}
        template = workloads.template("sleep", image, stamp, terminationGracePeriodSeconds=0)
        try:
            await self.admin.get(DEPLOYMENTS, "sleep", self.namespace)
        except NotFoundError:
            obj = workloads.manifest("Deployment", "sleep", image, replicas=replicas, labels=stamp, template=template)
            await self.admin.request("POST", DEPLOYMENTS.path(self.namespace), query=_KUBECTL, body=obj)
            return
        changed: Object = {**stamp, labels.DEFENSE_STATUS: None}
        if repair:
            changed[labels.IGNORED_SUSPEND] = "true"
        await self.admin.request(
            "PATCH",
            DEPLOYMENTS.path(self.namespace, "sleep"),
            query=_KUBECTL,
            body={"metadata": {"labels": changed}, "spec": {"template": template}},
            content_type=PatchType.STRATEGIC,
        )

    async def release_in_order(self, version: str, image: str, *, repair: bool = False) -> None:
        """Create the StatefulSet, or change its template, with `version` in the version labels."""
        stamp = {labels.VERSION: version}
        template = workloads.template("db", image, stamp, terminationGracePeriodSeconds=0)
        try:
            await self.admin.get(STATEFUL_SETS, "db", self.namespace)
        except NotFoundError:
            obj = workloads.manifest("StatefulSet", "db", image, replicas=2, labels=stamp, template=template)
            await self.admin.create(STATEFUL_SETS, obj, self.namespace)
            return
        changed: Object = {**stamp, labels.DEFENSE_STATUS: None, **({labels.IGNORED_SUSPEND: "true"} if repair else {})}
        patch = {"metadata": {"labels": changed}, "spec": {"template": template}}
        await self.admin.patch(STATEFUL_SETS, patch, "db", self.namespace, type_=PatchType.STRATEGIC)

    async def set_image(self, image: str) -> None:
        """Change the image as `kubectl set image` does, without a gatekeeper."""
        template = {"spec": {"containers": [{"name": "main", "image": image}]}}
        await self.admin.patch(
            DEPLOYMENTS, {"spec": {"template": template}}, "sleep", self.namespace, type_=PatchType.STRATEGIC
        )

    async def until_after_the_second_of_creation(self) -> None:
        """Wait until a release in this namespace is certainly newer than the namespace and AlterShield's settings. The
        API's times are whole seconds."""

        async def met() -> bool:
            setting = await self.get(OPS_CONFIG_INFOS, "blocking", names.SYSTEM_NAMESPACE)
            namespace = await self.get(NAMESPACES, self.namespace)
            created = [unix(obj["metadata"]["creationTimestamp"]) for obj in (setting, namespace) if obj]
            return len(created) == 2 and time.time() > max(created) + 1.1

        await self.until(met, "the next second")

    async def judge(self, change_pod: Object, verdict: str) -> None:
        """Write a verdict as a person does with `kubectl patch changepod --subresource=status`."""
        results = [{**pod, "verdict": verdict, "message": "find error"} for pod in change_pod["spec"]["podInfos"]]
        status = {"podResults": results, "message": "PostFinish"}
        await self.admin.patch(
            CHANGE_PODS, {"status": status}, change_pod["metadata"]["name"], self.namespace, subresource="status"
        )

    async def set_status(self, resource: Resource, name: str, status: Object) -> None:
        await self.admin.patch(resource, {"status": status}, name, self.namespace, subresource="status")

    async def setting(self, name: str, spec: Object, namespace: str = names.SYSTEM_NAMESPACE) -> None:
        """Change or create a setting."""
        try:
            await self.admin.patch(OPS_CONFIG_INFOS, {"spec": spec}, name, namespace)
        except NotFoundError:
            obj = {
                "apiVersion": OPS_CONFIG_INFOS.api_version,
                "kind": OPS_CONFIG_INFOS.kind,
                "metadata": {"name": name},
                "spec": spec,
            }
            await self.admin.create(OPS_CONFIG_INFOS, obj, namespace)

    async def until_condition(
        self, resource: Resource, name: str, type_: str, namespace: str = "", **like: str | int
    ) -> Object:
        """Wait until the object has a condition with these fields. Returns the condition."""

        async def met() -> Object | None:
            obj = await self.get(resource, name, namespace) or {}
            for condition in obj.get("status", {}).get("conditions", ()):
                if condition["type"] == type_ and like.items() <= condition.items():
                    return dict(condition)
            return None

        found = await self.until(met, f"{type_} {like} on {resource.kind} {name}")
        assert found is not None
        return found

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        try:
            found: Object = await self.admin.get(resource, name, namespace or self.namespace)
        except NotFoundError:
            return None
        return found

    async def deployment(self) -> Object:
        found: Object = await self.admin.get(DEPLOYMENTS, "sleep", self.namespace)
        return found

    async def states(self) -> dict[str, str]:
        """The state of each version that has a ChangeWorkload."""
        return {
            names.version_in(release["metadata"]["name"]): release.get("status", {}).get("status", "")
            for release in await self.all(CHANGE_WORKLOADS)
        }

    async def all(self, resource: Resource) -> list[Object]:
        return (await self.admin.list(resource, self.namespace, as_=dict)).items

    async def until(self, met: Callable[[], Awaitable[T]], what: str) -> T:
        """What `met` returns once it is true."""
        try:
            return await until(met, what, pause=0.15)
        except AssertionError as error:
            raise AssertionError(f"{error}: {await self.described()}") from None

    async def until_states(self, **expected: str) -> None:
        """Wait until exactly these versions, called v1, v2 …, have ChangeWorkloads in these states."""
        wanted = {version(name): state for name, state in expected.items()}

        async def met() -> bool:
            return await self.states() == wanted

        await self.until(met, f"{expected}")

    async def until_rolled_back(self) -> None:
        """Wait until v2 has been rolled back to v1. The label shows that v1 was verified again: its ChangeWorkload has
        been in Success since the first verification."""

        async def met() -> bool:
            own = (await self.deployment())["metadata"]["labels"]
            return own[labels.VERSION] == version("v1") and labels.DEFENSE_STATUS in own

        await self.until(met, "v1 to be released again")
        await self.until_states(v1="Success", v2="Failed")

    async def until_leader(self, identity: str) -> None:
        """Wait until this reconciler holds the Lease."""

        async def met() -> bool:
            lease = await self.get(LEASES, names.LEASE, names.SYSTEM_NAMESPACE)
            return lease is not None and lease["spec"].get("holderIdentity") == identity

        await self.until(met, f"reconciler {identity} to lead")

    async def described(self) -> str:
        pods = {pod["metadata"]["name"]: pod["status"].get("phase") for pod in await self.all(PODS)}
        own = {each["metadata"]["name"]: each["metadata"]["labels"] for each in await self.all(DEPLOYMENTS)}
        return f"{await self.states()}; Deployments {own}; pods {pods}"


def is_write(request: web.Request) -> bool:
    """Whether the request writes an object other than a Lease or an Event."""
    return request.method not in ("GET", "HEAD") and not {"leases", "events"} & set(request.path.split("/"))


def version(name: str) -> str:
    """The version label for v1, v2 …: for v1, 32 times the digit 1."""
    return name[1:] * 32


@contextlib.asynccontextmanager
async def running_cluster(directory: Path, *, garbage: bool = False) -> AsyncIterator[Cluster]:
    """A cluster with AlterShield's CRDs and roles, without a reconciler. Only tests that need a garbage collector have
    one: it follows all resources of the API."""
    faults = Faults()
    simulation = SimulationSettings(controllers=_CONTROLLERS | ({"garbage"} if garbage else set()))
    async with ApiServer(middlewares=[faults.middleware], tls=False) as api:  # each reconciler opens forty connections
        kubeconfig = directory / _ADMIN
        kubeconfig.write_text(api.kubeconfig())
        async with await Client.connect(str(kubeconfig)) as admin:
            await _install(admin)
            async with contextlib.AsyncExitStack() as controllers:
                await controllers.enter_async_context(simulated(kubeconfig, simulation, api.send))
                yield Cluster(api, admin, directory, faults, simulation, controllers)


async def _install(admin: Client) -> None:
    await admin.create(NAMESPACES, _namespace(names.SYSTEM_NAMESPACE, {}))
    for crd in crds.crds():
        await admin.create(CRDS, crd)
    for obj in rbac.objects(names.SYSTEM_NAMESPACE, server=True, callbacks=True, jobs=True, logs=True):
        await admin.create(rbac.RESOURCES[obj["kind"]], obj, obj["metadata"].get("namespace", ""))


def _namespace(name: str, own: dict[str, str]) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": own}}
