"""Policies and deletions."""

from typing import Any

import msgspec

from altershield.api.flow_control import (
    BreakerMode,
    BreakerSpec,
    FlowControlSpec,
    FlowControlStatus,
    LimitRule,
    PodDeletionFlowControl,
)
from altershield.flow_control.decision import Step, step
from altershield.flow_control.deletion import Deletion, Operation
from kube_base.meta import ObjectMeta

NOW = 1_800_000_000
"""2027-01-15T08:00:00Z"""


def policy(
    *rules: str, name: str = "guard", breaker: BreakerMode = BreakerMode.OFF, cooldown: str = "10m", **spec: Any
) -> PodDeletionFlowControl:
    """A policy with rules as `10m/100`."""
    limits = tuple(LimitRule(interval, int(limit)) for interval, _, limit in (each.partition("/") for each in rules))
    return PodDeletionFlowControl(
        ObjectMeta(name=name, uid=f"uid-of-{name}", resource_version="1"),
        FlowControlSpec(limits, breaker=BreakerSpec(breaker, cooldown), **spec),
    )


def deletion(uid: str = "u", **fields: Any) -> Deletion:
    return Deletion(
        **{
            "uid": uid, "namespace": "shop", "name": f"web-{uid}", "operation": Operation.DELETE, "by": "ann",
            "claim": f"claim-of-{uid}", **fields,
        }
    )  # fmt: skip


def written(of: PodDeletionFlowControl, status: FlowControlStatus | None) -> PodDeletionFlowControl:
    """The policy after a write, as the API server stores it. None: nothing is written."""
    if status is None:
        return of
    made = msgspec.structs.replace(of, status=status)
    return msgspec.json.decode(msgspec.json.encode(made), type=PodDeletionFlowControl)


def asked(of: PodDeletionFlowControl, *uids: str, now: float = NOW, **fields: Any) -> PodDeletionFlowControl:
    """The policy after deletions that it admits."""
    done = step(of, [deletion(uid, **fields) for uid in uids], now)
    assert [each.refusal for each in done.verdicts] == [""] * len(uids)
    return written(of, done.status)


def one(of: PodDeletionFlowControl, uid: str, now: float = NOW, **fields: Any) -> tuple[Step, PodDeletionFlowControl]:
    """One deletion, and the policy after it."""
    done = step(of, [deletion(uid, **fields)], now)
    return done, written(of, done.status)


def refusal(of: PodDeletionFlowControl, uid: str, now: float = NOW, **fields: Any) -> str:
    return step(of, [deletion(uid, **fields)], now).verdicts[0].refusal
