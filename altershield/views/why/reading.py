"""Reads what an explanation of a release needs, and asks what this user may do about it."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from altershield.api.change_pod import ChangePod
from altershield.releases import Outcome
from altershield.views.access import allowed
from altershield.views.current_user import user
from altershield.views.gates.closed import closed_for
from altershield.views.releases.batches import batches_of
from altershield.views.releases.images import ImagesReader
from altershield.views.releases.model import Release, demand, outcomes, shown
from altershield.views.releases.reading import Reader
from altershield.views.releases.words import with_words
from altershield.views.selection import Selection
from altershield.views.why.advice import accesses, advice
from altershield.views.why.explanation import Facts, explanation, proposed
from altershield.views.why.model import ReleaseExplanation
from altershield.workloads import pods as pod_projections
from altershield.workloads.blocking import blocking_pods
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError
from kube_base.resources import PODS


class Explained(NamedTuple):
    explanations: Sequence[ReleaseExplanation]
    """One for each workload of the name."""
    outcomes: Sequence[Outcome]


async def explain(
    client: Client, namespace: str, selection: Selection, system_namespace: str, program: str
) -> Explained:
    """Explain the releases of the workloads that are named. `program`: the beginning of AlterShield's commands.
    StatusError: there is no such workload, or it has no release."""
    snapshot = await Reader(client, namespace, [selection]).read()
    demand(snapshot, [selection], namespace)
    found = [each for each in shown(snapshot) if each.workload.metadata.name == selection.name]
    found = await with_words(client, await ImagesReader(client).added(found, found), time.time())
    made = []
    for uid in dict.fromkeys(each.workload.metadata.uid for each in found):
        own = [each for each in found if each.workload.metadata.uid == uid]
        made.append(await _explain(client, own, system_namespace, program))
    return Explained(made, outcomes(snapshot))


async def _explain(client: Client, own: Sequence[Release], system_namespace: str, program: str) -> ReleaseExplanation:
    workload, now = own[0].workload, time.time()
    batches, blocking = await _batches(client, own), await _blocking(client, workload)
    facts = Facts(own, batches, blocking, await closed_for(client, workload, system_namespace, now), now)
    proposals = proposed(facts, program)
    may = await allowed(client, accesses(proposals))
    by = await user(client) if any(each.other_than for each in proposals) else ""
    return explanation(facts, advice(proposals, may, by))


async def _blocking(client: Client, workload: Workload) -> list[Pod]:
    """The pods of older versions for which the workload's controller waits; empty if the user may not read pods."""
    if not workload.waits_for_ready:
        return []
    try:
        listed = await client.list(
            PODS, workload.metadata.namespace, as_=msgspec.Raw, label_selector=workload.list_selector
        )
    except ForbiddenError:
        return []
    pods = map(pod_projections.read, listed.items)
    found = blocking_pods(workload, (pod for pod in pods if pod.owner.uid == workload.metadata.uid))
    return sorted(found, key=lambda pod: pod.metadata.name)


async def _batches(client: Client, found: Sequence[Release]) -> list[ChangePod]:
    """The ChangePods of the present release."""
    present = next((each for each in found if each.present and each.stored is not None), None)
    return [] if present is None or present.stored is None else await batches_of(client, present.stored)
