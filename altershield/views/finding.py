"""Finds the ChangeWorkload of the current version of a workload, and the ChangePod of a pod.

Only ChangeWorkloads and ChangePods are read: whoever may give verdicts need not have the permission to read workloads.
"""

from collections.abc import Sequence

import msgspec

from altershield.api import labels, names
from altershield.api.change_pod import ChangePod
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS
from altershield.views import permission
from altershield.views.asking import RequestError
from altershield.views.releases.model import StoredRelease, stored
from altershield.views.selection import Selection
from altershield.workloads import named_kind
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError, NotFoundError
from kube_base.errors import UsageError
from kube_base.resources import GroupKind


async def current(client: Client, namespace: str, selection: Selection) -> StoredRelease:
    """The ChangeWorkload of the workload's newest release. RequestError: it has none. UsageError: several workloads
    have the name."""
    selector = f"{labels.WORKLOAD_NAME}={names.label_value(selection.name)}"
    try:
        listed = await client.list(CHANGE_WORKLOADS, namespace, as_=msgspec.Raw, label_selector=selector)
    except NotFoundError:
        raise RequestError(f"AlterShield is not installed in the cluster at {client.server}") from None
    except ForbiddenError as error:
        raise _forbidden(namespace, error) from error
    kinds = {adapter.resource.group_kind for adapter in selection.adapters}
    found = [each for each in map(stored, listed.items) if _is_of(each, selection.name, kinds)]
    if not found:
        raise RequestError(
            f'{selection.described} has no release in namespace "{namespace}"; set another namespace with -n, or run '
            f"`altershield status -n {namespace} {selection.argument}`, which says what to do"
        )
    types = sorted(
        {named_kind(each.release.spec.workload_ref) for each in found}, key=lambda kind: (kind.kind, kind.group)
    )
    if len(types) > 1:
        choice = " or ".join(f"{kind.kind.lower()}/{selection.name}" for kind in types)
        raise UsageError(f'several workloads in namespace "{namespace}" have the name {selection.name}: name {choice}')
    return max(found, key=_age)


async def batch_of(client: Client, namespace: str, pod: str) -> ChangePod:
    """The newest ChangePod with a pod of this name. RequestError: there is none."""
    try:
        listed = await client.list(CHANGE_PODS, namespace, as_=ChangePod)
    except NotFoundError:
        raise RequestError(f"AlterShield is not installed in the cluster at {client.server}") from None
    except ForbiddenError as error:
        raise _forbidden(namespace, error) from error
    found = [each for each in listed.items if any(info.pod == pod for info in each.spec.pod_infos)]
    if not found:
        raise RequestError(
            f'pod "{pod}" in namespace "{namespace}" is in no ChangePod: a verdict is possible after the pod came up; '
            f"to list the pods: kubectl get changepods -n {namespace} -o wide"
        )
    return max(found, key=lambda each: (each.spec.create_time_unix, names.change_pod_number(each.metadata.name)))


def _is_of(release: StoredRelease, name: str, kinds: set[GroupKind]) -> bool:
    ref = release.release.spec.workload_ref
    return ref.name == name and named_kind(ref) in kinds


def _age(release: StoredRelease) -> tuple[int, int]:
    spec = release.release.spec
    return spec.create_time_unix, spec.workload_generation


def _forbidden(namespace: str, error: ForbiddenError) -> RequestError:
    attempt = f"list the releases {permission.place(namespace)}"
    return RequestError(permission.refused(attempt, error, permission.role("altershield-verdicts", namespace)))


def only(selections: Sequence[Selection]) -> Selection:
    """The workload, if exactly one is named. UsageError otherwise."""
    if len(selections) != 1 or not selections[0].name:
        raise UsageError("name one workload, as deploy/web or deploy web")
    return selections[0]
