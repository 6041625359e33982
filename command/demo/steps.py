"""The steps of the demo, in order.

Each step makes one change that a user could make with kubectl, and waits for its outcome.
"""

import asyncio
import contextlib
import json
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from altershield.admission.webhooks import webhook_name
from altershield.api import labels
from altershield.api.change_pod import ChangePod, PodState
from altershield.api.change_workload import WorkloadState
from altershield.api.pod_verdicts import Verdict
from altershield.api.resources import CHANGE_PODS
from altershield.releases.texts import suspended
from altershield.workloads.applied import of
from command.demo import in_steps
from command.demo.sample import (
    BAD_IMAGE,
    FIXED_IMAGE,
    MISSING_IMAGE,
    NAME,
    NAMESPACE,
    REPLICAS,
    RESOURCE,
    image_patch,
    manifest,
    template_patch,
)
from command.demo.story import STEP_SECONDS, StepFailedError, Story, named
from kube_base.access.bodies import ObjectList
from kube_base.access.client import PatchType
from kube_base.access.errors import ApiError, NotFoundError
from kube_base.resources import NAMESPACES
from kube_base.times import rfc3339

_KIND = RESOURCE.kind.lower()
_KUBECTL = f"kubectl -n {NAMESPACE}"
_SAMPLES = "docs/samples"
_REPAIRED = {"test": "1234"}  # the template label of docs/samples/sleep-repaired.yaml


@dataclass(frozen=True)
class Step:
    """One step of the demo."""

    title: str
    explanation: str
    """What happens, in one sentence."""
    commands: Callable[[Story], tuple[str, ...]]
    """The change as a user can type it. It is called before `run`."""
    run: Callable[[Story], Awaitable[str]]
    """Makes the change, waits for the outcome, and returns it in one line; StepFailedError for another outcome."""


def _typed(*commands: str) -> Callable[[Story], tuple[str, ...]]:
    return lambda _: commands


def _patch_command(patch: dict[str, Any]) -> str:
    return f"{_KUBECTL} patch {_KIND} {NAME} \\\n  -p {_quoted(patch)}"


def _quoted(patch: dict[str, Any]) -> str:
    return shlex.quote(json.dumps(patch, separators=(",", ":")))


async def govern(story: Story) -> str:
    await _delete_namespace(story)
    await story.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    patch = {"metadata": {"labels": {labels.GOVERNED: labels.GOVERNED_VALUE}}}
    await story.client.patch(NAMESPACES, patch, NAMESPACE, type_=PatchType.MERGE)
    # An API server takes a moment to read a new webhook configuration and the labels of a new namespace.
    answer = "nothing"
    try:
        async with asyncio.timeout(STEP_SECONDS):
            while True:
                try:
                    body = await story.client.request(
                        "POST", RESOURCE.path(NAMESPACE), query={"dryRun": "All"}, body=manifest()
                    )
                except ApiError as error:
                    answer = str(error)
                else:
                    if labels.VERSION.encode() in body:
                        return f"The API server gives a {RESOURCE.kind} a version (tried with a dry run)."
                    answer = f"a {RESOURCE.kind} without a version"
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise StepFailedError(
            f"the gatekeeper did not stamp a {RESOURCE.kind} in the namespace within {STEP_SECONDS:.0f} s; "
            f"seen: {answer}"
        ) from None


async def release(story: Story) -> str:
    await story.apply(manifest())
    version = await story.next_version("")
    if story.workload.template_version != version:
        raise StepFailedError(f"the pod template does not carry the {RESOURCE.kind}'s version")
    path = await story.succeeded(version)
    if WorkloadState.RUNNING not in path:
        raise StepFailedError(f"the ChangeWorkload was never Running: {path}")
    passed = (PodState.EXECUTE_DONE, PodState.PRE_FAILED)

    def outcome() -> str:  # this informer may be behind the one of ChangeWorkloads
        states = [(each.status.status, each.status.message) for each in story.change_pods.all()]
        return f"{path} {REPLICAS} of {REPLICAS} pods passed." if states == [passed] * REPLICAS else ""

    return await story.until(outcome, f"{REPLICAS} ChangePods in the state {'/'.join(passed)}")


def _first_change_pod(story: Story) -> ChangePod:
    return min(story.change_pods.all(), key=lambda change_pod: change_pod.metadata.name)


def _verdict(change_pod: ChangePod) -> dict[str, Any]:
    result = {"pod": change_pod.spec.pod_infos[0].pod, "verdict": Verdict.UNPASS.value, "message": "find error"}
    return {"status": {"podResults": [result]}}


def _verdict_command(story: Story) -> tuple[str, ...]:
    change_pod = _first_change_pod(story)
    lines = (
        f"{_KUBECTL} patch changepod {change_pod.metadata.name}",
        "  --subresource=status --type=merge",
        f"  -p {_quoted(_verdict(change_pod))}",
    )
    return (" \\\n".join(lines),)


async def fail_a_pod(story: Story) -> str:
    version = story.workload.version
    change_pod = _first_change_pod(story)
    await story.client.patch(
        CHANGE_PODS, _verdict(change_pod), change_pod.metadata.name, NAMESPACE, subresource="status"
    )

    def outcome() -> str:
        change_workload = story.change_workload(version)
        since = story.workload.suspended
        if change_workload is None or story.state(version) != WorkloadState.SUSPEND or not since.isdigit():
            return ""
        failed = change_workload.status.defense_check_fail_pods
        pods = "; ".join(f"pod {pod.pod} failed: {pod.message}" for pod in failed)
        return f"{named(version)} is suspended since {rfc3339(int(since))}; {pods}." if pods else ""

    return await story.until(outcome, "the release to be suspended")


async def next_release_denied(story: Story) -> str:
    error = await story.denied(lambda: story.patch(template_patch("test")))
    text = suspended(_KIND, NAME)
    full = f'admission webhook "{webhook_name(RESOURCE, mutating=False)}" denied the request: {text}'
    if (error.reason, str(error)) != (text, full):
        raise StepFailedError(f"denied with another reason: {error.reason}: {error}")
    return f"Denied: Error from server ({error.reason}): {error}"


async def scale(story: Story) -> str:
    await story.patch({"spec": {"replicas": REPLICAS + 1}}, subresource="scale")
    outcome = f"{REPLICAS + 1} pods are ready."
    return await story.until(lambda: outcome if len(story.up()) == REPLICAS + 1 else "", f"{REPLICAS + 1} ready pods")


async def repair(story: Story) -> str:
    old = story.workload.version
    story.most_change_workloads = 0
    await story.patch({"metadata": {"labels": {labels.IGNORED_SUSPEND: "true"}}})
    await story.apply(manifest(template_labels=_REPAIRED))
    version = await story.next_version(old)
    path = await story.succeeded(version, alone=True)
    if story.most_change_workloads != 2:
        raise StepFailedError(f"{story.most_change_workloads} ChangeWorkloads at one time instead of 2")

    def outcome() -> str:
        kept = story.workload.suspended or story.workload.ignores_suspension
        return "" if kept else f"{path} The labels suspend and ignored-suspend are removed."

    return await story.until(outcome, "the labels suspend and ignored-suspend to be removed")


async def release_again(story: Story) -> str:
    old = story.workload.version
    await story.patch(template_patch("test"))
    return await story.succeeded(await story.next_version(old), alone=True)


async def bad_image(story: Story) -> str:
    good = story.workload.version
    await story.patch(image_patch(MISSING_IMAGE))
    bad = await story.next_version(good)

    def stuck() -> str:
        reasons = {pod.trouble.reason for pod in story.pods.all() if pod.version == bad and pod.trouble is not None}
        return "ImagePullBackOff" if "ImagePullBackOff" in reasons else ""

    reason = await story.until(stuck, "a pod in ImagePullBackOff")
    still_up = len(story.up(good))
    if still_up < REPLICAS - REPLICAS // 4:
        raise StepFailedError(f"only {still_up} of the old pods were still ready")

    def outcome() -> str:
        back = (
            story.workload.version == good
            and len(story.up(good)) == REPLICAS == len(list(story.pods.all()))
            and story.state(bad) == WorkloadState.FAILED
        )
        return (
            f"{named(bad)}: {reason}, then {story.state(bad)}; {still_up} old pods stayed ready. "
            f"{named(good)} is released again and has {REPLICAS} ready pods."
            if back
            else ""
        )

    return await story.until(outcome, "the old template to be back", story.start_timeout + STEP_SECONDS)


async def bad_image_again(story: Story) -> str:
    error = await story.denied(lambda: story.patch(image_patch(MISSING_IMAGE)))
    if "was rolled back" not in str(error) or labels.IGNORED_SUSPEND not in str(error):
        raise StepFailedError(f"denied without the reason or the way out: {error}")
    return f"Denied: Error from server ({error.reason}): {error}"


async def fix(story: Story) -> str:
    """The fix changes the template of the version that AlterShield released again, and nothing else."""
    old, wanted = story.workload.version, await _template(story)
    wanted["spec"]["containers"][0]["image"] = FIXED_IMAGE
    await story.patch(image_patch(FIXED_IMAGE))
    version = await story.next_version(old)
    path = await story.succeeded(version, alone=True)
    if await _template(story) != wanted:
        raise StepFailedError("the pod template differs from that of the version before in more than the image")
    return f"{path} Of the release that was rolled back, nothing is left."


async def _template(story: Story) -> dict[str, Any]:
    """The pod template without its version. StepFailedError if a field of it belongs to AlterShield."""
    obj: dict[str, Any] = await story.client.get(RESOURCE, NAME, NAMESPACE)
    if of(obj) is None:
        raise StepFailedError("a field of the pod template belongs to AlterShield")
    template: dict[str, Any] = obj["spec"]["template"]
    del template["metadata"]["labels"][labels.VERSION]
    return template


async def clean_up(story: Story) -> str:
    await _delete_namespace(story)
    return f"Namespace {NAMESPACE} is deleted."


async def _delete_namespace(story: Story) -> None:
    """Delete the demo's namespace, and watch it until it is gone."""
    client, selector = story.client, f"metadata.name={NAMESPACE}"
    with contextlib.suppress(NotFoundError):
        await client.delete(NAMESPACES, NAMESPACE)
    try:
        async with asyncio.timeout(STEP_SECONDS):
            while True:
                listed: ObjectList[dict[str, Any]] = await client.list(NAMESPACES, field_selector=selector)
                if not listed.items:
                    return
                version = listed.metadata.resource_version
                watch = client.watch(NAMESPACES, resource_version=version, field_selector=selector)
                async with contextlib.aclosing(watch) as events:
                    async for event in events:
                        if event.type == "DELETED":
                            return
    except TimeoutError:
        raise StepFailedError(
            f"namespace {NAMESPACE} was still there {STEP_SECONDS:.0f} s after its deletion"
        ) from None


_SET_IMAGE = _typed(f"{_KUBECTL} set image {_KIND} {NAME} {NAME}={MISSING_IMAGE}")
_PATCH_TEMPLATE = _typed(_patch_command(template_patch("test")))

STEPS = (
    Step(
        "Govern a namespace",
        "AlterShield handles the releases in each namespace that has this label.",
        _typed(
            f"kubectl create namespace {NAMESPACE}",
            f"kubectl label namespace {NAMESPACE} {labels.GOVERNED_SELECTOR}",
        ),
        govern,
    ),
    Step(
        "Release",
        f"The {RESOURCE.kind} gets a version. AlterShield verifies all {REPLICAS} pods, then the release is a Success.",
        _typed(f"{_KUBECTL} apply -f {_SAMPLES}/sleep.yaml"),
        release,
    ),
    Step(
        "Fail a pod",
        "A verdict says that one pod does not work. AlterShield suspends the release.",
        _verdict_command,
        fail_a_pod,
    ),
    Step(
        "Release while suspended",
        "The next release is denied.",
        _PATCH_TEMPLATE,
        next_release_denied,
    ),
    Step(
        "Scale while suspended",
        "Scaling is not a release. It is allowed.",
        _typed(f"{_KUBECTL} scale {_KIND} {NAME} --replicas={REPLICAS + 1}"),
        scale,
    ),
    Step(
        "Repair",
        "A label lets one release pass. Its success ends the suspension.",
        _typed(
            f"{_KUBECTL} label {_KIND} {NAME} {labels.IGNORED_SUSPEND}=true",
            f"{_KUBECTL} apply -f {_SAMPLES}/sleep-repaired.yaml",
        ),
        repair,
    ),
    Step(
        "Release after the repair",
        "It is allowed again.",
        _PATCH_TEMPLATE,
        release_again,
    ),
    Step(
        "Release an image that does not exist",
        "Its pods never start. AlterShield rolls the release back.",
        _SET_IMAGE,
        bad_image,
    ),
    Step(
        "Release that image again",
        "It is denied. The message gives the reason and the ways out.",
        _SET_IMAGE,
        bad_image_again,
    ),
    Step(
        "Release the fix",
        "The rollback left no trace: the fix is the last good version with another image.",
        _typed(f"{_KUBECTL} set image {_KIND} {NAME} {NAME}={FIXED_IMAGE}"),
        fix,
    ),
    Step(
        "Ask for steps",
        "A policy says: a new version reaches 1 pod, then 30%, then all. Each step has to stay verified for a time.",
        _typed(
            f"{_KUBECTL} apply -f {_SAMPLES}/steps.yaml",
            f"{_KUBECTL} scale {_KIND} {NAME} --replicas={in_steps.PODS}",
        ),
        in_steps.ask_for_steps,
    ),
    Step(
        "Release a bad version in steps",
        f"It reaches one of {in_steps.PODS} pods. AlterShield takes it back.",
        _typed(f"{_KUBECTL} set image {_KIND} {NAME} {NAME}={BAD_IMAGE}"),
        in_steps.bad_version,
    ),
    Step(
        "Clean up",
        "The namespace is deleted.",
        _typed(f"kubectl delete namespace {NAMESPACE}"),
        clean_up,
    ),
)
