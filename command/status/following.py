"""Waits until a release is not under way any more, for commands that begin something."""

from altershield.api.change_workload import WorkloadRef
from altershield.views.selection import Selection
from altershield.workloads import BY_KIND, named_kind
from command.status.command import Mode, show
from kube_base.access.client import Client


async def outcome_code(
    client: Client, namespace: str, workload: WorkloadRef, limit: float | None, asked: frozenset[str]
) -> int:
    """Wait until the workload has no release under way, print it as `altershield status` does, and return its exit
    code. `limit`: the timeout in seconds; None: no timeout. `asked`: versions whose success is what the user asked for,
    although another version was rolled back."""
    selection = Selection((BY_KIND[named_kind(workload)],), workload.name)
    return await show(client, namespace, [selection], None, Mode(watch=False, wait=True, timeout=limit, asked=asked))
