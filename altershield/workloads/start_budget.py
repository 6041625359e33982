"""How long the containers of a pod template may take to start, by their own probes."""

from functools import lru_cache

import msgspec

PROGRESS_DEADLINE = 600
"""`progressDeadlineSeconds` of a workload that has none."""

_ALWAYS = "Always"


class StartBudget(msgspec.Struct, frozen=True, gc=False):
    """Seconds. Workloads with equal budgets share one object."""

    containers: int = 0
    """From the start of the containers until the last one is ready at the latest; 0: no probe allows any time."""
    sidecars: tuple[tuple[str, int], ...] = ()
    """Names of init containers that keep running, and the time after which their startup probes give up."""
    init: int = PROGRESS_DEADLINE
    """For each other init container."""

    def of_init(self, name: str) -> int:
        """The time for the first run of an init container, until the next container may start."""
        return dict(self.sidecars).get(name, self.init)


class _Probe(msgspec.Struct, frozen=True, rename="camel", gc=False):
    initial_delay_seconds: int = 0
    period_seconds: int = 10
    failure_threshold: int = 3
    success_threshold: int = 1

    @property
    def gives_up_after(self) -> int:
        return self.initial_delay_seconds + self.period_seconds * self.failure_threshold


class _Container(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    restart_policy: str | None = None
    startup_probe: _Probe | None = None
    readiness_probe: _Probe | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    containers: tuple[_Container, ...] | None = None
    init_containers: tuple[_Container, ...] | None = None


_decode = msgspec.json.Decoder(_Spec).decode


def start_budget(spec: msgspec.Raw, progress_deadline: int | None) -> StartBudget:
    """The budget of a pod template with this spec. A spec that the API server did not check, as that of a CloneSet, may
    have probes that cannot be read: they allow no time."""
    try:
        found = _decode(spec) if spec else _Spec()
    except (msgspec.DecodeError, RecursionError):
        found = _Spec()
    sidecars = [each for each in found.init_containers or () if each.restart_policy == _ALWAYS]
    times = [_until_ready(each, each.startup_probe) for each in found.containers or ()]
    times += [_until_ready(each, None) for each in sidecars]  # they are started before the containers
    return _shared(
        max(times, default=0),
        tuple((each.name, each.startup_probe.gives_up_after) for each in sidecars if each.startup_probe is not None),
        PROGRESS_DEADLINE if progress_deadline is None else progress_deadline,
    )


@lru_cache(maxsize=1024)
def _shared(containers: int, sidecars: tuple[tuple[str, int], ...], init: int) -> StartBudget:
    return StartBudget(containers, sidecars, init)


def _until_ready(container: _Container, startup: _Probe | None) -> int:
    """The seconds until the container is ready at the latest, if it works. The kubelet runs the readiness probe only
    after the startup probe has passed. The initial delay of the readiness probe begins with the start of the container,
    too."""
    readiness = container.readiness_probe
    begin = startup.gives_up_after if startup is not None else 0
    if readiness is None:
        return begin
    return max(begin, readiness.initial_delay_seconds) + readiness.period_seconds * readiness.success_threshold
