"""What the kinds of release gates share: which releases an object judges, and what happens to a release while its gate
is closed."""

import enum
from typing import Annotated

import msgspec

from altershield.api.schema import doc, extra
from altershield.api.selectors import Selector

MAX_GATE_REASON = 1024
"""The maximum length of `reason`."""

TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"
"""The pattern of a time, UTC, in the format of Kubernetes."""


class GateMode(enum.StrEnum):
    """`spec.mode` of a gate."""

    ENFORCE = "enforce"
    WARN = "warn"
    """Releases pass. A release that `enforce` would deny or hold gets a warning."""


class WhenClosed(enum.StrEnum):
    """What happens to a release while the gate is closed."""

    DENY = "Deny"
    """It is denied."""
    HOLD = "Hold"
    """It is admitted without a pod, and begins by itself when the gate opens. A release that cannot be held is
    denied."""


class Running(enum.StrEnum):
    """What happens to a release in steps if the gate closes between two of its steps."""

    HOLD = "Hold"
    """It waits until the gate opens."""
    FINISH = "Finish"
    """It goes on."""


class Judged(enum.StrEnum):
    """The changes of a workload that a gate judges."""

    UPDATE = "Update"
    """The pod template changes."""
    CREATE = "Create"
    """The workload is created."""
    RESTART = "Restart"
    """Only the annotation of `kubectl rollout restart` changes."""


class GateScope(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Which releases an object judges, and whether it denies or warns."""

    selector: Annotated[
        Selector,
        doc("The labels of the workloads whose releases are judged. Empty: all workloads."),
        extra(x_kubernetes_map_type="atomic"),
    ] = Selector()
    namespace_selector: Annotated[
        Selector | None,
        doc(
            "Only for objects in AlterShield's namespace: the labels of the namespaces of these workloads. Not set: "
            "all governed namespaces. An object in another namespace judges the releases of its own namespace."
        ),
        extra(x_kubernetes_map_type="atomic"),
    ] = None
    mode: Annotated[GateMode, doc("`enforce`, or `warn`: releases pass with a warning while the gate is closed.")] = (
        GateMode.ENFORCE
    )
    judges: Annotated[
        tuple[Judged, ...],
        msgspec.Meta(
            min_length=1,
            max_length=3,
            description="The changes that are judged: `Update` (the pod template changes), `Create`, and `Restart` "
            "(`kubectl rollout restart`).",
        ),
        extra(x_kubernetes_list_type="set"),
    ] = (Judged.UPDATE,)

    @property
    def holds(self) -> bool:
        """Whether a release that may not begin is held rather than denied, if it can be."""
        return False


class Holding(GateScope, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Which releases an object judges, and what happens to one that may not begin."""

    when_closed: Annotated[
        WhenClosed,
        doc(
            "What happens to a release while the gate is closed: `Deny`, or `Hold`: it is admitted without a pod, and "
            "begins by itself when the gate opens. A release that cannot be held is denied."
        ),
    ] = WhenClosed.DENY

    @property
    def holds(self) -> bool:
        return self.when_closed is WhenClosed.HOLD


class GateRules(Holding, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Which releases an object judges, and what happens to a release while its gate is closed."""

    running: Annotated[
        Running,
        doc(
            "What happens to a release in steps if the gate closes between two of its steps: `Hold`, or `Finish`: it "
            "goes on."
        ),
    ] = Running.HOLD
