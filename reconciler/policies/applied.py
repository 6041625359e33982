"""Finds the DefensePolicy of a release that begins."""

from collections.abc import Iterable, Mapping

import msgspec

from altershield.api.annotations import MAX_START_TIMEOUT, START_TIMEOUT
from altershield.api.policy import AppliedPolicy, DefensePolicy, DefensePolicySpec, Rules
from altershield.policies.selection import InForce, applying, ranked
from altershield.workloads import BY_KIND
from altershield.workloads.workload import Workload
from kube_base.access.client import Client
from kube_base.access.errors import ConflictError, NotFoundError
from kube_base.meta import ObjectMeta
from reconciler.cluster.caches import Caches
from reconciler.policies.acceptance import UrlRule, any_url, in_force

_DEFAULTS = AppliedPolicy()  # msgspec omits a default only if the value is the same object


class _Labelled(msgspec.Struct):
    metadata: ObjectMeta


class AppliedPolicies:
    """Reads the policies from the caches, and the labels of the workload from the API server."""

    def __init__(self, client: Client, caches: Caches, url_rule: UrlRule = any_url) -> None:
        self._client = client
        self._caches = caches
        self._url_rule = url_rule

    async def of(self, workload: Workload) -> AppliedPolicy:
        """The policy that applies to a release of the workload that begins now. An annotation of the workload replaces
        the start timeout of the policy. ConflictError if the workload does not exist any more."""
        namespace = workload.metadata.namespace
        levels = [self._in_force(self._caches.policies_of(each)) for each in (namespace, self._caches.system_namespace)]
        by_labels = any(_has_requirements(policy) for level in levels for policy in level)
        labels = await self._labels(workload) if by_labels else {}
        policy = applied(applying(levels, labels))
        seconds = start_timeout(workload.start_timeout)
        return policy if seconds is None else msgspec.structs.replace(policy, start_timeout_seconds=seconds)

    def _in_force(self, policies: Iterable[DefensePolicy]) -> tuple[InForce[DefensePolicySpec], ...]:
        found = (in_force(each, self._url_rule) for each in policies)
        return ranked(each for each in found if each is not None)

    async def _labels(self, workload: Workload) -> Mapping[str, str]:
        metadata = workload.metadata
        where = f"{workload.kind} {metadata.namespace}/{metadata.name}"
        try:
            found = await self._client.get(
                BY_KIND[workload.group_kind].resource, metadata.name, metadata.namespace, as_=_Labelled
            )
        except NotFoundError as error:
            raise ConflictError(f"{where} does not exist any more", code=409) from error
        if found.metadata.uid != metadata.uid:
            raise ConflictError(f"{where} was created again since it was read", code=409)
        return found.metadata.labels


def ignored(workload: Workload) -> str:
    """Why an annotation of the workload is ignored; empty if none is."""
    if not workload.start_timeout or start_timeout(workload.start_timeout) is not None:
        return ""
    return (
        f"the annotation {START_TIMEOUT} is ignored: its value is not a number of seconds from 1 to "
        f"{MAX_START_TIMEOUT}, but {workload.start_timeout[:32]!r}"
    )


def start_timeout(annotation: str) -> int | None:
    """The value of the annotation `start-timeout-seconds`; None if it is missing (empty) or invalid."""
    seconds = int(annotation) if annotation.isascii() and annotation.isdigit() and len(annotation) <= 9 else 0
    return seconds if 1 <= seconds <= MAX_START_TIMEOUT else None


def _has_requirements(policy: InForce[DefensePolicySpec]) -> bool:
    selector = policy.spec.selector
    return bool(selector.match_labels or selector.match_expressions)


def applied(policy: InForce[DefensePolicySpec] | None) -> AppliedPolicy:
    """The policy as a release keeps it; None: no policy."""
    if policy is None:
        return AppliedPolicy()
    rules = {field: getattr(policy.spec, field) for field in Rules.__struct_fields__}
    changed = {field: value for field, value in rules.items() if value != getattr(_DEFAULTS, field)}
    return AppliedPolicy(namespace=policy.namespace, name=policy.name, generation=policy.generation, **changed)
