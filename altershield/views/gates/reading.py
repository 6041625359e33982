"""Reads the gates, and asks the API server whether a workload may be released now."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from altershield.api.annotations import PROBE
from altershield.api.gates.field_guards import FieldGuard
from altershield.api.gates.freezes import ReleaseFreeze
from altershield.api.gates.limits import ReleaseLimit
from altershield.api.gates.windows import ReleaseWindow
from altershield.api.resources import FIELD_GUARDS, RELEASE_FREEZES, RELEASE_LIMITS, RELEASE_WINDOWS
from altershield.views import permission
from altershield.views.gates import applying
from altershield.views.gates.model import Gate, gates
from altershield.views.names import WorkloadName, workload_of
from altershield.workloads.adapter import Adapter
from kube_base.access.client import Client, PatchType
from kube_base.access.errors import ApiError, ForbiddenError, NotFoundError, TooManyRequestsError
from kube_base.errors import ReportedError
from kube_base.times import rfc3339

Object = dict[str, Any]


class GateError(ReportedError):
    """The gates cannot be read or changed."""


class Verdict(NamedTuple):
    """What the API server says about a release that is not made."""

    allowed: bool
    message: str = ""
    opens_at: str = ""
    """When the release may begin, in the format of Kubernetes; empty: it is not known."""
    causes: tuple[Object, ...] = ()
    """The closed gates: `reason` is the kind, `field` is NAMESPACE/NAME."""


class Asked(NamedTuple):
    """A workload, and what the API server says about its release."""

    workload: WorkloadName
    verdict: Verdict


class Found(NamedTuple):
    gates: list[Gate]
    unread: tuple[str, ...]
    """The namespaces whose gates this user may not read."""


async def read(client: Client, namespaces: Sequence[str], now: float) -> Found:
    """The gates of these namespaces; an empty name means all. GateError: AlterShield is not installed, or this user may
    read none of them."""
    windows: list[ReleaseWindow] = []
    freezes: list[ReleaseFreeze] = []
    limits: list[ReleaseLimit] = []
    guards: list[FieldGuard] = []
    unread: list[str] = []
    refusal: ForbiddenError | None = None
    for namespace in dict.fromkeys(namespaces):
        try:
            windows += (await client.list(RELEASE_WINDOWS, namespace, as_=ReleaseWindow)).items
            freezes += (await client.list(RELEASE_FREEZES, namespace, as_=ReleaseFreeze)).items
            limits += (await client.list(RELEASE_LIMITS, namespace, as_=ReleaseLimit)).items
            guards += (await client.list(FIELD_GUARDS, namespace, as_=FieldGuard)).items
        except NotFoundError:
            raise GateError(
                f"the cluster at {client.server} has no release gates: install this version of AlterShield"
            ) from None
        except ForbiddenError as error:
            refusal = error
            unread.append(namespace)
    if refusal is not None and len(unread) == len(dict.fromkeys(namespaces)):
        asked = permission.role("view", unread[0])
        raise GateError(permission.refused(f"list gates {permission.place(unread[0])}", refusal, asked)) from refusal
    return Found(gates(windows, freezes, limits, guards, now), tuple(unread))


async def ask(client: Client, adapter: Adapter, name: str, namespace: str, now: float) -> Asked:
    """Whether another template of the workload would be admitted now. The request changes nothing: it is a dry run.

    NotFoundError: there is no such workload. ForbiddenError: this user may not release it.
    """
    change = {"spec": {"template": {"metadata": {"annotations": {PROBE: rfc3339(now)}}}}}
    try:
        await client.patch(adapter.resource, change, name, namespace, dry_run=True)
        verdict = Verdict(allowed=True)
    except (ForbiddenError, TooManyRequestsError) as error:
        verdict = _verdict(error)
    return Asked(workload_of(adapter.resource, namespace, name), verdict)


async def ask_about(client: Client, adapter: Adapter, manifest: Object, namespace: str) -> Asked:
    """Whether `kubectl apply` of this manifest would be admitted now. A conflict of field managers does not count."""
    try:
        await dry_apply(client, adapter, manifest, namespace)
        verdict = Verdict(allowed=True)
    except (ForbiddenError, TooManyRequestsError) as error:
        verdict = _verdict(error)
    return Asked(workload_of(adapter.resource, namespace, manifest["metadata"]["name"]), verdict)


async def dry_apply(client: Client, adapter: Adapter, manifest: Object, namespace: str) -> Object:
    """What `kubectl apply` would make of the object, as a dry run: with `--server-side`, if it was applied last so."""
    name, resource = manifest["metadata"]["name"], adapter.resource
    try:
        live: Object | None = await client.get(resource, name, namespace)
    except NotFoundError:
        live = None
    if live is None or applying.is_server_side(live):
        return await client.patch(
            resource,
            manifest,
            name,
            namespace,
            type_=PatchType.APPLY,
            field_manager=applying.SERVER_SIDE,
            force=True,
            dry_run=True,
        )
    strategic = not adapter.crd
    return await client.patch(
        resource,
        applying.client_side(manifest, live, strategic=strategic),
        name,
        namespace,
        type_=PatchType.STRATEGIC if strategic else PatchType.MERGE,
        field_manager=applying.CLIENT_SIDE,
        dry_run=True,
    )


def _verdict(error: ApiError) -> Verdict:
    """A denial as a verdict. A missing permission is an error: nobody was asked."""
    if permission.is_missing(error):
        raise error
    causes = [each for each in error.details.get("causes") or () if isinstance(each, dict)]
    opens_at = next((str(each.get("message", "")) for each in causes if each.get("reason") == "OpensAt"), "")
    closed = tuple(each for each in causes if each.get("field"))
    return Verdict(False, str(error), opens_at, closed)
