"""A Pod as the API server sends it: the fields from which its projection follows."""

import msgspec

from altershield.workloads.meta import WireMeta


class WireWaiting(msgspec.Struct, frozen=True, gc=False):
    reason: str = ""
    message: str = ""


class WireRunning(msgspec.Struct, frozen=True, rename="camel", gc=False):
    started_at: str | None = None


class WireTerminated(msgspec.Struct, frozen=True, rename="camel", gc=False):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    finished_at: str | None = None


class WireState(msgspec.Struct, frozen=True, gc=False):
    waiting: WireWaiting | None = None
    running: WireRunning | None = None
    terminated: WireTerminated | None = None


class WireContainerStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: WireState = WireState()
    last_state: WireState = WireState()


class WireCondition(msgspec.Struct, frozen=True, rename="camel", gc=False):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class WireStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    start_time: str | None = None
    conditions: tuple[WireCondition, ...] = ()
    container_statuses: tuple[WireContainerStatus, ...] | None = None
    init_container_statuses: tuple[WireContainerStatus, ...] | None = None


class WireInitContainer(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    restart_policy: str | None = None

    @property
    def is_sidecar(self) -> bool:
        """Whether it runs as long as the pod."""
        return self.restart_policy == "Always"


class WireSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    node_name: str = ""
    init_containers: tuple[WireInitContainer, ...] | None = None


class WirePod(msgspec.Struct, frozen=True, gc=False):
    metadata: WireMeta
    spec: WireSpec = WireSpec()
    status: WireStatus = WireStatus()
