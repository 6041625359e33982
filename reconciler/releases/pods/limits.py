"""How long a pod may take to come up: the start timeout, or longer while its containers start for the first time. Pure
functions. Times are in seconds."""

from dataclasses import dataclass

import msgspec

from altershield.workloads.pods import Starting
from altershield.workloads.start_budget import StartBudget


@dataclass(frozen=True, slots=True)
class Limit:
    """The time that a pod may take to come up."""

    seconds: float
    """From the time since which the pod is down."""
    why: str = ""
    """Where the time comes from, for messages; empty: it is the start timeout."""


def limit(
    starting: Starting | None, budget: StartBudget, start_timeout: float, max_start: float, min_ready: int
) -> Limit:
    """The limit of a pod that is not ready.

    It is the start timeout, which begins when the init containers have completed. While the containers, or an init
    container, run for the first time, their own budget extends it, up to `max_start`. A pod that waits for something
    else, or whose container crashed, has no budget. `min_ready`: `minReadySeconds`, if the pod has been ready.
    """
    if starting is None:
        return Limit(start_timeout)
    found = Limit(starting.since + start_timeout, f"its init containers took {starting.since} s")
    if starting.running_since is not None and not starting.restarted:
        own = _own(starting, starting.running_since, budget, max(min_ready, 0))
        found = own if own.seconds > found.seconds else found
    if found.seconds > max_start:
        found = Limit(max_start, f"maxStartSeconds is {int(max_start)}")
    return found if found.seconds > start_timeout else Limit(start_timeout)


def _own(starting: Starting, running_since: int, budget: StartBudget, min_ready: int) -> Limit:
    """The limit that the containers set that have been running since `running_since`."""
    if starting.init:
        seconds = budget.of_init(starting.init)
        return Limit(running_since + seconds, f"its init container {starting.init} may take {seconds} s")
    settles = f", and minReadySeconds is {min_ready}" if min_ready else ""
    return Limit(running_since + budget.containers + min_ready, f"its probes allow {budget.containers} s{settles}")


def updated_in_place(starting: Starting, *, restarts: int) -> Starting:
    """The start of a pod that got another template without being replaced. `restarts`: since then; the update itself
    restarts a container. The kubelet accepted the pod long before."""
    running_since = None if starting.running_since is None else 0
    return msgspec.structs.replace(starting, since=0, running_since=running_since, restarted=restarts > 1)
