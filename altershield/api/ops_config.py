"""The settings `blocking`, `branch` and `rollback`: what is a valid one, and what is in effect.

A setting counts only under its own name in the system namespace. A wrong one changes nothing: what was
accepted last (kept in its status) stays in effect, and before that the defaults do.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from altershield.api.kinds import OpsConfigInfo, OpsConfigInfoSpec

BLOCKING = "blocking"
BRANCH = "branch"
ROLLBACK = "rollback"

DEFAULTS = {
    BLOCKING: OpsConfigInfoSpec(type="isBlockingUp", enable=True, remark="Enabling Blockade"),
    BRANCH: OpsConfigInfoSpec(type="isBranch", enable=False, content="10", remark="Enabling Batch Protection"),
    ROLLBACK: OpsConfigInfoSpec(type="isRollback", enable=True, content="20%", remark="Enabling Self-healing Rollback"),
}

MAX_BATCH = 1000
"""Pods in one batch: a ChangePod with all their results must fit into one object (1.5 MiB in etcd)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is in effect."""

    blocking: bool = True
    """A failed verification suspends the workload's releases."""
    branch: bool = False
    """Pods are verified in batches, not one by one."""
    content: str = DEFAULTS[BRANCH].content
    """The batch: a number of pods (`10`) or a share of the replicas (`10%`)."""
    rollback: bool = True
    """A release whose pods are overdue is undone by itself."""
    share: str = DEFAULTS[ROLLBACK].content
    """So many of its pods, or such a share of them, have to be."""

    def overdue(self, pods: int) -> int:
        """Of so many existing pods of a version, how many have to be overdue to end its release: at least 1."""
        share = _number(self.share, pods) or _number(DEFAULTS[ROLLBACK].content, pods) or 1
        return max(1, min(share, pods))

    def batch(self, replicas: int) -> int:
        """Pods in one batch: at least 1, never more than the replicas."""
        size = _number(self.content, replicas) if self.branch else 1
        return max(1, min(size or 1, replicas, MAX_BATCH))


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a setting is not accepted: a condition's reason and message."""

    reason: str
    message: str


def effective(settings: Iterable[OpsConfigInfo], system_namespace: str) -> Settings:
    """What `settings` (of any namespaces) put into effect."""
    found = {
        setting.metadata.name: in_effect(setting, system_namespace)
        for setting in settings
        if setting.metadata.namespace == system_namespace and setting.metadata.name in DEFAULTS
    }
    blocking = found.get(BLOCKING, DEFAULTS[BLOCKING])
    branch = found.get(BRANCH, DEFAULTS[BRANCH])
    rollback = found.get(ROLLBACK, DEFAULTS[ROLLBACK])
    return Settings(
        blocking=blocking.enable,
        branch=branch.enable,
        content=branch.content,
        rollback=rollback.enable,
        share=rollback.content,
    )


def in_effect(setting: OpsConfigInfo, system_namespace: str) -> OpsConfigInfoSpec:
    """What counts for one of the settings: its spec, else what was accepted last, else the default."""
    default = DEFAULTS[setting.metadata.name]
    if problem(setting, system_namespace) is None:
        return setting.spec
    status = setting.status
    if status.enable is None or (setting.metadata.name == BRANCH and _number(status.content, 1) is None):
        return default
    return OpsConfigInfoSpec(type=default.type, enable=status.enable, content=status.content)


def problem(setting: OpsConfigInfo, system_namespace: str) -> Problem | None:
    """What is wrong with a setting; None if it is accepted."""
    name, spec = setting.metadata.name, setting.spec
    if setting.metadata.namespace != system_namespace:
        return Problem(
            "WrongNamespace",
            f"settings count only in the namespace {system_namespace}; move {name} there or delete it",
        )
    default = DEFAULTS.get(name)
    if default is None:
        return Problem(
            "UnknownName",
            f"no setting is called {name}, there are {', '.join(f'`{each}`' for each in DEFAULTS)}; delete this one",
        )
    if spec.type != default.type:
        return Problem("UnknownType", f"the type of {name} is {default.type}, not {spec.type[:64]!r}; correct it")
    # what is switched off needs no content: the kill switch works however it is written
    needed = name == BRANCH or (name == ROLLBACK and spec.enable and spec.content)
    if needed and _number(spec.content, 1) is None:
        return Problem(
            "InvalidContent",
            "content is a number of pods from 1 (`10`) or a share from 1% to 100% (`10%`), "
            f"not {spec.content[:64]!r}; correct it",
        )
    return None


def _number(content: str, replicas: int) -> int | None:
    """Pods that `content` asks for at `replicas`; None where it is no number and no share."""
    digits = content.removesuffix("%")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 9) or int(digits) == 0:
        return None
    if digits == content:
        return int(digits)
    return -(-replicas * int(digits) // 100) if int(digits) <= 100 else None  # rounded up
