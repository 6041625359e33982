"""The deletion of a pod that a request asks for: a DELETE, or an eviction."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from altershield.api.flow_control import PodDeletionFlowControl
from altershield.api.label_selectors import selects
from altershield.api.selectors import Selector


class Operation(StrEnum):
    DELETE = "DELETE"
    EVICT = "EVICT"


@dataclass(frozen=True, slots=True)
class Deletion:
    """A request to delete or evict a pod."""

    uid: str
    """The uid of the pod. `namespace`, `name` and `labels` are those of the pod, too."""
    namespace: str
    name: str
    operation: Operation
    by: str
    """The user."""
    claim: str
    """Identifies the request."""
    labels: Mapping[str, str] = field(default_factory=dict)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    exempt: bool = False
    """The deletion is counted, but never refused."""
    break_glass: bool = False
    """The deletion is exempt, because the user is in the group for emergencies."""
    dry_run: bool = False
    shared: bool = False
    """Several policies count the deletion. If one of them refuses it, the others take their counts back."""

    @property
    def code(self) -> int:
        """The HTTP status of a refusal. `kubectl drain` repeats an eviction after 429 only."""
        return 429 if self.operation == Operation.EVICT else 403


def exempt(*, break_glass: bool, by_taint_manager: bool, ready: bool) -> bool:
    """Whether a deletion is never refused: by break glass, or because the taint manager deletes a pod that does not
    serve (`ready` is false)."""
    return break_glass or (by_taint_manager and not ready)


def covering(policies: Iterable[PodDeletionFlowControl], deletion: Deletion) -> list[PodDeletionFlowControl]:
    """The policies that count the deletion, sorted by name."""
    return sorted((each for each in policies if covers(each, deletion)), key=lambda each: each.metadata.name)


def covers(policy: PodDeletionFlowControl, deletion: Deletion) -> bool:
    """Whether the policy counts the deletion. An empty whitelist selects no pods; other empty selectors select all."""
    spec = policy.spec
    return (
        _selected(spec.namespace_selector, deletion.namespace_labels)
        and _selected(spec.pod_selector, deletion.labels)
        and not (_names_labels(spec.white_list_selector) and _selected(spec.white_list_selector, deletion.labels))
    )


def _selected(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    return selector is None or selects(selector.match_labels, selector.match_expressions, labels)


def _names_labels(selector: Selector | None) -> bool:
    return selector is not None and bool(selector.match_labels or selector.match_expressions)
