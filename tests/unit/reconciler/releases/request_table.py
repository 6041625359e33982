"""The answer to each request in each state of a release."""

from collections.abc import Callable

from altershield.api.change_pod import ChangePodStatus, PodState
from altershield.api.check_results import CheckResult, CheckState
from altershield.api.check_specs import Phase
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition
from altershield.api.ops_config import Settings
from altershield.api.workload_requests import Result, Verb
from reconciler.cluster.verdicts import HELD

from .scenarios import (
    FAILED,
    ROLLBACK,
    RUNNING,
    SUCCESS,
    SUSPEND,
    first_release,
    first_release_up,
    second_release,
    serving,
)
from .world import SimPod, World, fingerprint

DONE, UNCHANGED, REFUSED = Result.DONE, Result.UNCHANGED, Result.REFUSED
APPROVE, REPAIR, RESUME, ROLL_BACK, RETRY = (
    Verb.APPROVE,
    Verb.REPAIR,
    Verb.RESUME,
    Verb.ROLLBACK,
    Verb.RETRY,
)
Make = Callable[[str], World]


# the states


def begun(kind: str) -> World:
    """A second release without pods yet."""
    world = serving(kind, 3)
    world.begin("v2")
    return world


def passed(kind: str) -> World:
    """A second release that succeeded. v1 exists as a revision."""
    world = serving(kind, 3)
    world.roll_out("v2")
    return world


def suspended(kind: str) -> World:
    """A second release that a person failed; its pods are up."""
    world = passed(kind)
    world.fail(newest(world))
    assert (world.state(), world.suspended) == (SUSPEND, True)
    return world


def not_blocking(kind: str) -> World:
    """The same while the setting `blocking` is off."""
    world = passed(kind)
    world.settings = Settings(blocking=False)
    world.fail(newest(world))
    assert (world.state(), world.suspended) == (SUSPEND, False)
    return world


def not_started(kind: str) -> World:
    """A second release whose pod did not come up in time. It is not rolled back, so it is suspended."""
    world, _ = second_release(kind)
    world.settings = Settings(rollback=False)
    world.run(121)
    world.settings = Settings()
    assert (world.state(), world.suspended) == (SUSPEND, True)
    return world


def broken(kind: str) -> World:
    """A release whose pods were up, and one of which broke. No older version serves, so it is suspended."""
    world, pods = first_release_up(kind)
    world.run(20)
    assert world.state() == SUCCESS
    world.touch(pods[0].lose_readiness(world.t))
    world.run(125)
    assert (world.state(), world.suspended) == (SUSPEND, True)
    return world


def repaired(kind: str) -> World:
    """A third release, which repairs the second one, and has no pods yet."""
    world = suspended(kind)
    world.begin_repair("v3")
    assert (world.state(), world.suspended) == (RUNNING, True)
    return world


def write_refused(kind: str) -> World:
    """A rollback that the API server refuses."""
    world, _ = second_release(kind)
    world.write_refused = "a policy"
    world.run(121)
    assert (world.state(), world.suspended) == (ROLLBACK, True)
    return world


def order_refused(kind: str) -> World:
    """A release whose order the AlterShield server refused."""
    world = first_release(kind)
    refused = Condition(ConditionType.REPORTED, "False", "OrderRefused", "no")
    world.edit_status(status=FAILED, conditions=(refused,))
    return world


def waiting(kind: str, node: str = "") -> World:
    """A second release whose first batch waits for a person, because a check has no result. `node`: the node of an
    AlterShield server, which can repeat the check."""
    world, pods = second_release(kind)
    world.checked = False
    world.up(*pods)
    world.run(20)
    (name,) = [name for name in world.batches if fingerprint("v2") in name]
    entry = CheckResult("server", Phase.PRE, CheckState.UNKNOWN, "no result in time", handle=node)
    held = Condition(ConditionType.VERIFIED, "Unknown", HELD, "no result in time")
    status = ChangePodStatus(PodState.PRE_SUBMITTED, checks=(entry,), change_pod_id=node, conditions=(held,))
    world.store_batch(name, status)
    world.rest()
    return world


def waiting_on_server(kind: str) -> World:
    return waiting(kind, "node-1")


def newest(world: World) -> SimPod:
    return [pod for pod in world.pods.values() if pod.image == world.image][-1]


TABLE: dict[Make, dict[Verb, tuple[Result, str, bool]]] = {
    # the result; the state and the label `suspend` after the answer is carried out
    begun: {
        APPROVE: (UNCHANGED, RUNNING, False),
        REPAIR: (UNCHANGED, RUNNING, False),
        RESUME: (UNCHANGED, RUNNING, False),
        ROLL_BACK: (DONE, "v1", False),
        RETRY: (UNCHANGED, RUNNING, False),
    },
    passed: {
        APPROVE: (UNCHANGED, SUCCESS, False),
        REPAIR: (UNCHANGED, SUCCESS, False),
        RESUME: (UNCHANGED, SUCCESS, False),
        ROLL_BACK: (DONE, "v1", False),
        RETRY: (UNCHANGED, SUCCESS, False),
    },
    suspended: {
        APPROVE: (DONE, SUCCESS, False),
        REPAIR: (DONE, SUSPEND, True),
        RESUME: (DONE, SUSPEND, False),
        ROLL_BACK: (DONE, "v1", True),
        RETRY: (DONE, SUCCESS, False),
    },
    not_blocking: {
        APPROVE: (DONE, SUCCESS, False),
        REPAIR: (UNCHANGED, SUSPEND, False),
        RESUME: (UNCHANGED, SUSPEND, False),
        ROLL_BACK: (DONE, "v1", False),
        RETRY: (DONE, SUCCESS, False),
    },
    not_started: {
        APPROVE: (DONE, RUNNING, False),
        REPAIR: (DONE, SUSPEND, True),
        RESUME: (DONE, SUSPEND, False),
        ROLL_BACK: (DONE, "v1", False),
        RETRY: (DONE, RUNNING, True),
    },
    broken: {
        APPROVE: (DONE, RUNNING, False),
        REPAIR: (DONE, SUSPEND, True),
        RESUME: (DONE, SUSPEND, False),
        ROLL_BACK: (REFUSED, SUSPEND, True),
        RETRY: (DONE, RUNNING, True),
    },
    repaired: {
        APPROVE: (UNCHANGED, RUNNING, True),
        REPAIR: (DONE, RUNNING, True),
        RESUME: (DONE, RUNNING, False),
        ROLL_BACK: (DONE, "v1", True),
        RETRY: (UNCHANGED, RUNNING, True),
    },
    write_refused: {
        APPROVE: (DONE, RUNNING, False),
        REPAIR: (DONE, ROLLBACK, True),
        RESUME: (DONE, ROLLBACK, False),
        ROLL_BACK: (UNCHANGED, ROLLBACK, True),
        RETRY: (DONE, ROLLBACK, True),
    },
    order_refused: {
        APPROVE: (UNCHANGED, FAILED, False),
        REPAIR: (UNCHANGED, FAILED, False),
        RESUME: (UNCHANGED, FAILED, False),
        ROLL_BACK: (REFUSED, FAILED, False),
        RETRY: (DONE, RUNNING, False),
    },
}
for make in (waiting, waiting_on_server):
    TABLE[make] = {
        APPROVE: (DONE, RUNNING, False),
        REPAIR: (UNCHANGED, RUNNING, False),
        RESUME: (UNCHANGED, RUNNING, False),
        ROLL_BACK: (DONE, "v1", False),
        RETRY: (DONE, RUNNING, False),
    }
