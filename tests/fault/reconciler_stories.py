"""Releases from beginning to end, with assertions that must hold whatever happens to the reconciler."""

from collections.abc import Callable, Collection, Coroutine

import msgspec

from altershield.api import labels, names
from altershield.api.annotations import ROLLOUT
from altershield.api.resources import (
    CHANGE_PODS,
    CHANGE_WORKLOADS,
    DEFENSE_POLICIES,
    OPS_CONFIG_INFOS,
    RELEASE_OVERRIDES,
)
from altershield.releases import history
from altershield.workloads.applied import of
from kube_base.resources import CONTROLLER_REVISIONS, DEPLOYMENTS, EVENTS, PODS, REPLICA_SETS
from tests.fault.reconciler_cluster import Cluster, version
from tests.fault.releases import use_override

REVISION = "deployment.kubernetes.io/revision"

Chapter = Callable[[Cluster], Coroutine[None, None, None]]


async def numbers(cluster: Cluster) -> list[int]:
    return sorted(int(each["metadata"]["name"].rpartition("--x--")[2]) for each in await cluster.all(CHANGE_PODS))


async def verified(cluster: Cluster) -> list[str]:
    return [pod["pod"] for each in await cluster.all(CHANGE_PODS) for pod in each["spec"]["podInfos"]]


async def kept_history(cluster: Cluster) -> dict[str, str]:
    """The state of each version in the history of the Deployment."""
    entries = [history.read(msgspec.json.encode(each)) for each in await cluster.all(CONTROLLER_REVISIONS)]
    assert all(each.fingerprint and each.record.released for each in entries)
    found = {each.version: each.record.state for each in entries}
    assert len(found) == len(entries)
    return found


async def until_history(cluster: Cluster, **expected: str) -> None:
    """Wait until the history holds exactly these versions, called v1, v2 …, in these states."""
    wanted = {version(name): state for name, state in expected.items()}

    async def met() -> bool:
        return await kept_history(cluster) == wanted

    await cluster.until(met, f"the history {expected}")


async def settings_made(cluster: Cluster) -> None:
    """A new reconciler makes the settings, and accepts them."""
    for name in ("blocking", "branch", "rollback"):
        await cluster.until_condition(OPS_CONFIG_INFOS, name, "Accepted", names.SYSTEM_NAMESPACE, status="True")


async def good_release(cluster: Cluster) -> None:
    await cluster.release(version("v1"))
    await cluster.until_states(v1="Success")
    assert await kept_history(cluster) == {version("v1"): "Success"}
    taken = await numbers(cluster)
    assert len(taken) == len(set(taken)) == 2
    pods = await verified(cluster)
    assert len(pods) == len(set(pods))
    assert (await cluster.deployment())["metadata"]["labels"][labels.DEFENSE_STATUS] == labels.PROCESSED


async def suspended_and_repaired(cluster: Cluster) -> None:
    """After a good release."""
    await cluster.judge((await cluster.all(CHANGE_PODS))[0], "unpass")
    await cluster.until_states(v1="Suspend")
    await cluster.until(lambda: labelled(cluster, True), "the suspend label")
    await cluster.release(version("v2"), repair=True)
    await cluster.until_states(v2="Success")
    await cluster.until(lambda: labelled(cluster, False), "the end of the suspension")
    assert labels.IGNORED_SUSPEND not in (await cluster.deployment())["metadata"]["labels"]
    (release,) = [each for each in await cluster.all(CHANGE_WORKLOADS) if version("v2") in each["metadata"]["name"]]
    assert [action["verb"] for action in release["status"]["actions"]] == ["Bypass"]
    assert await kept_history(cluster) == {version("v1"): "Suspend", version("v2"): "Success"}


async def suspended(cluster: Cluster) -> None:
    """After a good release."""
    await cluster.judge((await cluster.all(CHANGE_PODS))[0], "unpass")
    await cluster.until_states(v1="Suspend")
    await cluster.until(lambda: labelled(cluster, True), "the suspend label")


async def approved(cluster: Cluster) -> None:
    """After a suspension."""
    await answered(cluster, "Approve")
    await cluster.until_states(v1="Success")
    await cluster.until(lambda: labelled(cluster, False), "the end of the suspension")
    verdicts = [each["status"].get("podResults", []) for each in await cluster.all(CHANGE_PODS)]
    assert sorted(result["verdict"] for results in verdicts for result in results) == ["pass"]


async def resumed(cluster: Cluster) -> None:
    """After a suspension."""
    await answered(cluster, "Resume")
    assert await labelled(cluster, False)
    await cluster.until_states(v1="Suspend")


async def retried(cluster: Cluster) -> None:
    """After a suspension."""
    before = await numbers(cluster)
    await answered(cluster, "Retry")
    await cluster.until_states(v1="Success")
    await cluster.until(lambda: labelled(cluster, False), "the end of the suspension")
    assert len(await numbers(cluster)) == len(before)
    assert max(await numbers(cluster)) == max(before) + 1
    assert not [each for each in await cluster.all(CHANGE_PODS) if each["status"].get("podResults")]


async def answered(cluster: Cluster, verb: str) -> None:
    """Ask for it, and wait for the only answer."""
    (release,) = await cluster.all(CHANGE_WORKLOADS)
    name = release["metadata"]["name"]
    await cluster.set_status(CHANGE_WORKLOADS, name, {"request": {"verb": verb, "by": "alice"}})

    async def done() -> bool:
        (found,) = await cluster.all(CHANGE_WORKLOADS)
        return "request" not in found["status"] and len(found["status"].get("actions", ())) > 0

    await cluster.until(done, "the answer")
    (found,) = await cluster.all(CHANGE_WORKLOADS)
    (action,) = found["status"]["actions"]
    assert (action["verb"], action["by"], action["result"]) == (verb, "alice", "Done")


async def rolled_back(cluster: Cluster) -> None:
    """After a good release."""
    await cluster.release(version("v2"), image="nosuch")
    await cluster.until_rolled_back()
    deployment = await cluster.deployment()
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "busybox"
    applied = of(deployment)
    assert applied is not None, "no field of the template belongs to AlterShield"
    assert {each.manager for each in applied.managers} == {"kubectl"}
    await until_history(cluster, v1="Success", v2="Failed")


async def rolled_back_with_a_pass(cluster: Cluster) -> None:
    """After a good release. A user asks for a pass for the next release while the present one fails."""
    await cluster.release(version("v2"), image="nosuch")

    async def begun() -> bool:
        return labels.DEFENSE_STATUS in (await cluster.deployment())["metadata"]["labels"]

    await cluster.until(begun, "v2 to begin")
    await cluster.admin.patch(
        DEPLOYMENTS, {"metadata": {"labels": {labels.IGNORED_SUSPEND: "true"}}}, "sleep", cluster.namespace
    )
    await cluster.until_rolled_back()
    assert (await cluster.deployment())["metadata"]["labels"].get(labels.IGNORED_SUSPEND) == "true"
    await cluster.release(version("v3"), image="busybox:3")
    await cluster.until_states(v3="Success")
    assert labels.IGNORED_SUSPEND not in (await cluster.deployment())["metadata"]["labels"]


async def never_up_in_order(cluster: Cluster) -> None:
    """The first pod of a StatefulSet never comes up."""
    await cluster.release_in_order(version("v1"), "nosuch")
    await cluster.until_states(v1="Suspend")


async def repaired_in_order(cluster: Cluster) -> None:
    """After a first release whose pods never came up. The StatefulSet's controller waits for the broken pod."""
    await cluster.release_in_order(version("v2"), "busybox:2", repair=True)
    await cluster.until_states(v2="Success")
    images = {pod["spec"]["containers"][0]["image"] for pod in await cluster.all(PODS)}
    assert images == {"busybox:2"}


async def second_release(cluster: Cluster) -> None:
    await cluster.release(version("v2"), image="busybox:2")
    await cluster.until_states(v2="Success")


async def overridden(cluster: Cluster) -> None:
    """After a good release: the next one passes a gate by an override, which is deleted when the release has begun."""
    await use_override(cluster, version("v2"))
    await cluster.release(version("v2"), image="busybox:2")

    async def actions() -> list[str]:
        found = [each for each in await cluster.all(CONTROLLER_REVISIONS) if version("v2") in each["metadata"]["name"]]
        entries = [history.read(msgspec.json.encode(each)) for each in found]
        return [f"{each.verb} by {each.by}: {each.outcome}" for entry in entries for each in entry.record.actions]

    async def recorded() -> bool:
        return bool(await actions())

    await cluster.until(recorded, "the override in the history")
    await cluster.admin.delete(RELEASE_OVERRIDES, "fix", cluster.namespace)
    await cluster.until_states(v2="Success")
    text = f"ReleaseOverride {cluster.namespace}/fix let it pass ReleaseFreeze shop/incident"
    assert await actions() == [f"Override by ann: {text}"]


async def oldest_version_deleted(cluster: Cluster) -> None:
    """After two good releases, with a limit of one version: the version before this one stays, as the target of a
    rollback."""
    await cluster.release(version("v3"), image="busybox:3")
    await cluster.until_states(v3="Success")
    await until_history(cluster, v2="Success", v3="Success")


async def reused_version(cluster: Cluster) -> None:
    """After a good release."""
    first = {pod["metadata"]["uid"] for pod in await cluster.all(PODS)}
    await cluster.set_image("busybox:2")
    await followed_up(cluster, "VersionReused")
    assert not first & {pod["metadata"]["uid"] for pod in await cluster.all(PODS)}


async def without_version(cluster: Cluster) -> None:
    await cluster.until_after_the_second_of_creation()
    await cluster.release("")
    await followed_up(cluster, "NoVersion")


async def followed_up(cluster: Cluster, reason: str) -> None:
    """An ungated release gets one ChangeWorkload and is verified, without a restart of its pods."""

    async def succeeded() -> bool:
        states = await cluster.states()
        return list(states.values()) == ["Success"] and version("v1") not in states

    await cluster.until(succeeded, "its success")
    (release,) = await cluster.all(CHANGE_WORKLOADS)
    own = names.version_in(release["metadata"]["name"])
    (ungated,) = [each for each in release["status"]["conditions"] if each["type"] == "Ungated"]
    assert (ungated["status"], ungated["reason"]) == ("True", reason)
    deployment = await cluster.deployment()
    assert deployment["metadata"]["labels"][labels.VERSION] == own
    assert deployment["metadata"]["labels"][labels.DEFENSE_STATUS] == labels.PROCESSED
    revisions = {each["metadata"]["annotations"][REVISION] for each in await cluster.all(REPLICA_SETS)}
    assert deployment["metadata"]["annotations"][REVISION] == max(revisions) == str(len(revisions))
    assert deployment["metadata"]["generation"] == len(revisions), "only the release may change the spec"


async def labelled(cluster: Cluster, expected: bool) -> bool:
    return (labels.SUSPEND in (await cluster.deployment())["metadata"]["labels"]) == expected


async def _policy(cluster: Cluster, on_failure: str, **more: object) -> None:
    obj = {
        "apiVersion": DEFENSE_POLICIES.api_version,
        "kind": DEFENSE_POLICIES.kind,
        "metadata": {"name": "own"},
        "spec": {"onFailure": on_failure, **more},
    }
    await cluster.admin.create(DEFENSE_POLICIES, obj, cluster.namespace)
    await cluster.until_condition(DEFENSE_POLICIES, "own", "Accepted", status="True")


async def policy_with_rollback(cluster: Cluster) -> None:
    await _policy(cluster, "rollback")


async def policy_with_pause(cluster: Cluster) -> None:
    await _policy(cluster, "pause")


async def policy_with_pause_that_ends(cluster: Cluster) -> None:
    await _policy(cluster, "pause", pauseSeconds=1)


async def policy_with_pause_that_continues(cluster: Cluster) -> None:
    await _policy(cluster, "pause", pauseSeconds=1, onPauseEnd="continue")


async def rolled_back_by_policy(cluster: Cluster) -> None:
    """After two good releases under a policy with `onFailure: rollback`."""
    own = [each for each in await cluster.all(CHANGE_PODS) if version("v2") in each["metadata"]["name"]]
    await cluster.judge(own[0], "unpass")
    await cluster.until_states(v1="Success", v2="Failed")
    deployment = await cluster.deployment()
    assert deployment["metadata"]["labels"][labels.VERSION] == version("v1")
    assert labels.SUSPEND not in deployment["metadata"]["labels"]
    (failed,) = [each for each in await cluster.all(CHANGE_WORKLOADS) if version("v2") in each["metadata"]["name"]]
    (found,) = [each for each in failed["status"]["conditions"] if each["type"] == "RolledBack"]
    assert (found["status"], found["reason"]) == ("True", "VerificationFailed")
    assert deployment["metadata"]["generation"] <= 3, "the rollback is one change of the template"


async def paused(cluster: Cluster) -> None:
    """After a good release under a policy with `onFailure: pause`."""
    await suspended(cluster)
    await cluster.until(lambda: is_paused(cluster, True), "the pause")
    assert ROLLOUT in (await cluster.deployment())["metadata"]["annotations"]


async def continued(cluster: Cluster) -> None:
    """After a pause."""
    await answered(cluster, "Resume")
    await cluster.until(lambda: is_paused(cluster, False), "the end of the pause")
    assert ROLLOUT not in (await cluster.deployment())["metadata"].get("annotations", {})
    assert await labelled(cluster, False)


async def rolled_back_after_pause(cluster: Cluster) -> None:
    """After two good releases under a policy with `onFailure: pause` and `pauseSeconds`."""
    own = [each for each in await cluster.all(CHANGE_PODS) if version("v2") in each["metadata"]["name"]]
    await cluster.judge(own[0], "unpass")
    await cluster.until_states(v1="Success", v2="Failed")
    await cluster.until(lambda: is_paused(cluster, False), "the end of the pause")
    await cluster.until(lambda: labelled(cluster, False), "the end of the suspension")
    deployment = await cluster.deployment()
    assert deployment["metadata"]["labels"][labels.VERSION] == version("v1")
    assert ROLLOUT not in deployment["metadata"].get("annotations", {})
    (failed,) = [each for each in await cluster.all(CHANGE_WORKLOADS) if version("v2") in each["metadata"]["name"]]
    (found,) = [each for each in failed["status"]["conditions"] if each["type"] == "RolledBack"]
    assert (found["status"], found["reason"]) == ("True", "VerificationFailed")
    assert "the pause has ended after 1 s" in found["message"]


async def continued_after_pause(cluster: Cluster) -> None:
    """After a good release under a policy with `onPauseEnd: continue`."""
    await suspended(cluster)

    async def ended() -> bool:
        (found,) = await cluster.all(CHANGE_WORKLOADS)
        return bool(found["status"].get("pause", {}).get("ended"))

    await cluster.until(ended, "the end of the pause")
    await cluster.until(lambda: is_paused(cluster, False), "the rollout to continue")
    assert ROLLOUT not in (await cluster.deployment())["metadata"].get("annotations", {})
    assert await labelled(cluster, True)
    assert set((await cluster.states()).values()) == {"Suspend"}


async def is_paused(cluster: Cluster, expected: bool) -> bool:
    return bool((await cluster.deployment())["spec"].get("paused")) == expected


STORIES = (
    (policy_with_rollback, good_release, second_release, rolled_back_by_policy),
    (policy_with_pause, good_release, paused),
    (policy_with_pause, good_release, paused, continued),
    (policy_with_pause_that_ends, good_release, second_release, rolled_back_after_pause),
    (policy_with_pause_that_continues, good_release, continued_after_pause),
    (good_release,),
    (good_release, suspended_and_repaired),
    (good_release, rolled_back),
    (good_release, rolled_back_with_a_pass),
    (good_release, second_release, oldest_version_deleted),
    (good_release, overridden),
    (good_release, reused_version),
    (good_release, suspended, approved),
    (good_release, suspended, resumed),
    (good_release, suspended, retried),
    (never_up_in_order, repaired_in_order),
    (settings_made, without_version),
)

EVENTS_OF = {
    approved: ["RequestCarriedOut"],
    continued: ["RequestCarriedOut", "RolloutContinued"],
    continued_after_pause: ["ReleaseSuspended", "RolloutPauseEnded", "RolloutPaused"],
    paused: ["ReleaseSuspended", "RolloutPaused"],
    repaired_in_order: ["ReleaseResumed", "StuckPodDeleted", "SuspensionBypassed"],
    resumed: ["RequestCarriedOut"],
    retried: ["ReleaseResumed", "RequestCarriedOut"],
    reused_version: ["UngatedRelease"],
    rolled_back: ["RollbackStarted", "RolledBack"],
    rolled_back_after_pause: [
        "ReleaseResumed",
        "ReleaseSuspended",
        "RollbackStarted",
        "RolledBack",
        "RolloutContinued",
        "RolloutPauseEnded",
        "RolloutPaused",
    ],
    rolled_back_by_policy: ["RollbackStarted", "RolledBack"],
    rolled_back_with_a_pass: ["RollbackStarted", "RolledBack"],
    suspended_and_repaired: ["ReleaseResumed", "ReleaseSuspended", "SuspensionBypassed"],
    without_version: ["UngatedRelease"],
}
"""The reasons of the Events that the chapters announce, each once."""

OF_EFFECTS = {"RolloutPaused", "RolloutContinued", "ReleaseResumed"}
"""The Events about a pause and a suspension. In chapters with a pause that ends, they may be missing: its time may be
over before the next reconciler pauses the rollout, or suspends the workload. StuckPodDeleted may be missing because no
status has it."""


async def written_events(cluster: Cluster) -> dict[str, str]:
    """The reasons of AlterShield's Events, by name."""
    found = [each for each in await cluster.all(EVENTS) if each["source"]["component"] == "altershield"]
    assert all(each["count"] == 1 for each in found)
    return {each["metadata"]["name"]: each["reason"] for each in found}


async def announced(cluster: Cluster, before: Collection[str], chapter: Chapter) -> None:
    """Wait for the Events of the chapter. `before`: the names of the Events from before it."""
    wanted, new = EVENTS_OF.get(chapter, []), list[str]()
    optional = OF_EFFECTS if "RolloutPauseEnded" in wanted else {"StuckPodDeleted"}

    async def met() -> bool:
        new[:] = sorted(reason for name, reason in (await written_events(cluster)).items() if name not in before)
        return len(new) == len(set(new)) and set(wanted) - optional <= set(new) <= set(wanted)

    try:
        await cluster.until(met, f"the Events {wanted}")
    except AssertionError as error:
        error.add_note(f"the Events are {new}")
        raise
