"""The webhooks that follow from the registry: one for each phase, resource and subresource."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from altershield.admission.registration import Condition, Feature, Operation, Phase, Registration
from altershield.admission.registry import REGISTRY
from kube_base.resources import Resource


@dataclass(frozen=True)
class Webhook:
    """One webhook: its name, its path, and the requests for which the API server calls it."""

    name: str
    path: str
    phase: Phase
    resource: Resource
    subresource: str
    operations: tuple[Operation, ...]
    condition: Condition | None
    feature: Feature
    does_io: bool

    @property
    def mutating(self) -> bool:
        return self.phase == Phase.MUTATE


def webhook_name(resource: Resource, subresource: str = "", *, mutating: bool) -> str:
    """`mKIND.kb.io` for the mutating webhook of a kind, `vpod-eviction.kb.io` for a validating one of a subresource."""
    return f"{'m' if mutating else 'v'}{_kind(resource, subresource)}.kb.io"


def webhook_path(resource: Resource, subresource: str = "", *, mutating: bool) -> str:
    """`/mutate-GROUP-VERSION-KIND`, or `/validate--v1-pod-eviction` (the core group has no name)."""
    phase = Phase.MUTATE if mutating else Phase.VALIDATE
    return f"/{phase}-{resource.group.replace('.', '-')}-{resource.version}-{_kind(resource, subresource)}"


def webhooks(registry: Iterable[Registration]) -> tuple[Webhook, ...]:
    """The webhooks of a registry: first the mutating ones, each in the order of the registrations."""
    found: dict[tuple[Phase, Resource, str], list[Registration]] = {}
    for phase in Phase:
        for each in registry:
            for resource in each.resources if each.phase == phase else ():
                found.setdefault((phase, resource, each.subresource), []).append(each)
    return tuple(_webhook(*key, registrations) for key, registrations in found.items())


def _webhook(phase: Phase, resource: Resource, subresource: str, registrations: Sequence[Registration]) -> Webhook:
    wanted = {operation for each in registrations for operation in each.operations}
    (feature,) = {each.feature for each in registrations}
    return Webhook(
        webhook_name(resource, subresource, mutating=phase == Phase.MUTATE),
        webhook_path(resource, subresource, mutating=phase == Phase.MUTATE),
        phase,
        resource,
        subresource,
        tuple(operation for operation in Operation if operation in wanted),
        _condition(registrations),
        feature,
        any(each.does_io for each in registrations),
    )


def _condition(registrations: Sequence[Registration]) -> Condition | None:
    """The condition under which at least one handler must be called. None: always."""
    conditions = dict.fromkeys(each.condition for each in registrations)
    if len(conditions) == 1:
        (only,) = conditions
        return only if only.expression else None
    parts = []
    for condition in conditions:
        wanted = dict.fromkeys(op for each in registrations if each.condition == condition for op in each.operations)
        matches = f"request.operation in {list(map(str, wanted))}"
        parts.append(f"({matches} && ({condition.expression}))" if condition.expression else f"({matches})")
    return Condition("-or-".join(condition.name for condition in conditions), " || ".join(parts))


def _kind(resource: Resource, subresource: str) -> str:
    return f"{resource.kind.lower()}{f'-{subresource}' if subresource else ''}"


WEBHOOKS = webhooks(REGISTRY)
MUTATING = tuple(webhook for webhook in WEBHOOKS if webhook.mutating)
VALIDATING = tuple(webhook for webhook in WEBHOOKS if not webhook.mutating)
