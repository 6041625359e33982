"""The orders of releases on an AlterShield server: one for each release of a version."""

from altershield.api.change_workload import ChangeWorkload
from altershield.api.condition_types import ConditionType
from altershield.api.meta import has_reason
from altershield.releases.release import version_of
from reconciler.server import texts
from reconciler.server.messages import EXECUTOR, Order, Workload


def order_id(release: ChangeWorkload) -> str:
    """The id of a release's order, at most 128 bytes. Each release of a version has another one.

    The uid and the generation of the release identify it. The names are for people, and may be cut.
    """
    metadata, spec = release.metadata, release.spec
    text = f"{metadata.uid}/{spec.workload_generation}/{metadata.namespace}/{spec.service_name}"
    return texts.order_id(text)


def release_uid(order: str) -> str:
    """The uid of the release that an order with this id is about. See `order_id`."""
    return order.partition("/")[0]


CLOSED = "OrderClosed"
"""The reason of the condition Reported of a release whose order is closed."""


def is_closed(release: ChangeWorkload) -> bool:
    """Whether the order of the release is closed."""
    return has_reason(release.status.conditions, ConditionType.REPORTED, CLOSED)


def workload_of(release: ChangeWorkload) -> Workload:
    """The workload of a release, as the server knows it."""
    spec = release.spec
    return Workload(namespace=release.metadata.namespace, kind=spec.workload_ref.kind, name=spec.service_name)


def order_of(release: ChangeWorkload) -> Order:
    """The order of a release."""
    workload = workload_of(release)
    return Order(
        id=order_id(release),
        title=f"{workload.kind} {workload.namespace}/{workload.name}: version {version_of(release)}",
        creator=EXECUTOR,
        workload=workload,
        params={"changeKind": "release", "version": version_of(release)},
    )
