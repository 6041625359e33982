"""The part of the demo about a release in steps: a bad version reaches one of ten pods, and is taken back."""

import asyncio
from typing import Any

from altershield.api.annotations import ROLLOUT
from altershield.api.change_workload import WorkloadState
from altershield.api.resources import API_VERSION, DEFENSE_POLICIES
from command.demo.sample import BAD_IMAGE, NAME, NAMESPACE, RESOURCE, image_patch
from command.demo.story import STEP_SECONDS, StepFailedError, Story, named
from kube_base.access.client import PatchType
from kube_base.access.errors import ApiError

PODS = 10


def policy() -> dict[str, Any]:
    """`docs/samples/steps.yaml`."""
    return {
        "apiVersion": API_VERSION,
        "kind": DEFENSE_POLICIES.kind,
        "metadata": {"name": "steps"},
        "spec": {"rollout": {"pods": [1, "30%"], "soakSeconds": 60}, "onFailure": "rollback"},
    }


async def ask_for_steps(story: Story) -> str:
    await story.client.create(DEFENSE_POLICIES, policy(), NAMESPACE)
    await story.patch({"spec": {"replicas": PODS}}, subresource="scale")
    await story.until(lambda: f"{PODS}" if len(story.up()) == PODS else "", f"{PODS} ready pods")
    try:
        async with asyncio.timeout(STEP_SECONDS):
            while True:
                if await _is_known(story):
                    break
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise StepFailedError(f"the gatekeepers did not use the policy within {STEP_SECONDS:.0f} s") from None
    return f"{PODS} pods are ready. The next release begins with one pod (tried with a dry run)."


async def _is_known(story: Story) -> bool:
    """Whether the gatekeepers would hold a release now."""
    try:
        body = await story.client.request(
            "PATCH",
            RESOURCE.path(NAMESPACE, NAME),
            query={"dryRun": "All"},
            body=image_patch(BAD_IMAGE),
            content_type=PatchType.STRATEGIC,
        )
    except ApiError:
        return False
    return ROLLOUT.encode() in body


async def bad_version(story: Story) -> str:
    """The version before serves on nine pods at any time, then on ten again."""
    good = story.workload.version
    await story.patch(image_patch(BAD_IMAGE))
    bad = await story.next_version(good)
    most, fewest = 0, PODS

    def outcome() -> str:
        nonlocal most, fewest
        most = max(most, sum(pod.version == bad and pod.exists for pod in story.pods.all()))
        fewest = min(fewest, len(story.up(good)))
        back = story.workload.version == good and story.state(bad) == WorkloadState.FAILED
        if not back or len(story.up(good)) < PODS or len(list(story.pods.all())) != PODS:
            return ""
        return (
            f"{named(bad)} had {most} pod and is taken back. "
            f"{named(good)} served with at least {fewest} of {PODS} pods throughout."
        )

    text = await story.until(outcome, "the version before to be back", story.start_timeout + STEP_SECONDS)
    if most != 1 or fewest < PODS - 1:
        raise StepFailedError(f"the bad version had {most} pods; {fewest} pods of the version before were ready")
    return text
