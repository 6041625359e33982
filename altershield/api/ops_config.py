"""The settings `blocking`, `branch`, `rollback` and `rollout`: their validation, and the values in effect.

A setting counts only under its name in the system namespace. An invalid setting has no effect: the values that were
accepted last (stored in its status) stay in effect, or the defaults if there are none.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from altershield.api.amounts import percentage, scaled
from altershield.api.ops_config_info import OpsConfigInfo, OpsConfigInfoSpec
from altershield.api.policy import OnFailure

_NUMBER = re.compile("[0-9]{1,9}")  # of pods

BLOCKING = "blocking"
BRANCH = "branch"
ROLLBACK = "rollback"
ROLLOUT = "rollout"
ROLLOUT_OFF = "the setting `rollout` is off"
"""Why no release is held in steps, if the setting is off."""

DEFAULTS = {
    BLOCKING: OpsConfigInfoSpec(type="isBlockingUp", enable=True, remark="Enabling Blockade"),
    BRANCH: OpsConfigInfoSpec(type="isBranch", enable=False, content="10", remark="Enabling Batch Protection"),
    ROLLBACK: OpsConfigInfoSpec(type="isRollback", enable=True, content="20%", remark="Enabling Self-healing Rollback"),
    ROLLOUT: OpsConfigInfoSpec(type="isRollout", enable=True, remark="Enabling Releases In Steps"),
}

CREATED = (BLOCKING, BRANCH, ROLLBACK)
"""The settings that AlterShield creates if they are missing. Without the other one, `rollout`, releases are held."""

MAX_BATCH = 1000
"""Pods in one batch: a ChangePod with all their results must fit into one object (1.5 MiB in etcd)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The values in effect."""

    blocking: bool = True
    """Whether a failed verification suspends the workload's releases."""
    branch: bool = False
    """Whether pods are verified in batches instead of one by one."""
    content: str = DEFAULTS[BRANCH].content
    """Size of a batch: a number of pods (`10`) or a share of the replicas (`10%`)."""
    rollback: bool = True
    """Whether a release whose pods are overdue is rolled back automatically."""
    share: str = DEFAULTS[ROLLBACK].content
    """How many of the release's pods must be overdue for that: a number or a share (`20%`)."""
    rollout: bool = True
    """Whether releases are held in steps. Off: every workload that is held gets its own fields back."""
    on_failure: OnFailure = OnFailure.SUSPEND
    """The reaction to a failed verification. Only a DefensePolicy changes this field and the following fields."""
    no_start_rollback: str = ""
    """Why overdue pods do not lead to a rollback although `rollback` is on; empty: they do."""
    blocking_off: str = "the setting `blocking` is off"
    """Why `blocking` is off, if it is."""
    rollback_off: str = "the setting `rollback` is off"
    """Why `rollback` is off, if it is."""

    def overdue(self, pods: int) -> int:
        """How many of the `pods` existing pods of a version must be overdue to end its release: at least 1."""
        share = _number(self.share, pods) or _number(DEFAULTS[ROLLBACK].content, pods) or 1
        return max(1, min(share, pods))

    def batch_size(self, replicas: int) -> int:
        """Pods in one batch: at least 1, never more than the replicas."""
        size = _number(self.content, replicas) if self.branch else 1
        return max(1, min(size or 1, replicas, MAX_BATCH))


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a setting is invalid: reason and message of its condition."""

    reason: str
    message: str


def effective(settings: Iterable[OpsConfigInfo], system_namespace: str) -> Settings:
    """The values in effect, from the settings of all namespaces."""
    found = {
        setting.metadata.name: in_effect(setting, system_namespace)
        for setting in settings
        if setting.metadata.namespace == system_namespace and setting.metadata.name in DEFAULTS
    }
    blocking = found.get(BLOCKING, DEFAULTS[BLOCKING])
    branch = found.get(BRANCH, DEFAULTS[BRANCH])
    rollback = found.get(ROLLBACK, DEFAULTS[ROLLBACK])
    rollout = found.get(ROLLOUT, DEFAULTS[ROLLOUT])
    return Settings(
        blocking=blocking.enable,
        branch=branch.enable,
        content=branch.content,
        rollback=rollback.enable,
        share=rollback.content,
        rollout=rollout.enable,
    )


def in_effect(setting: OpsConfigInfo, system_namespace: str) -> OpsConfigInfoSpec:
    """The values of one setting that are in effect: its spec, else the values accepted last, else the default."""
    default = DEFAULTS[setting.metadata.name]
    if problem(setting, system_namespace) is None:
        if setting.metadata.name == ROLLBACK and not setting.spec.content:
            return msgspec.structs.replace(setting.spec, content=default.content)
        return setting.spec
    status = setting.status
    if status.enable is None or (setting.metadata.name == BRANCH and _number(status.content, 1) is None):
        return default
    return OpsConfigInfoSpec(type=default.type, enable=status.enable, content=status.content)


def problem(setting: OpsConfigInfo, system_namespace: str) -> Problem | None:
    """Why a setting is invalid; None if it is valid."""
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
    # if `rollback` is off, its content need not be valid: people must be able to switch it off with any content
    needed = name == BRANCH or (name == ROLLBACK and spec.enable and spec.content)
    if needed and _number(spec.content, 1) is None:
        return Problem(
            "InvalidContent",
            "content is a number of pods from 1 (`10`) or a share from 1% to 100% (`10%`), "
            f"not {spec.content[:64]!r}; correct it",
        )
    return None


def _number(content: str, replicas: int) -> int | None:
    """The number of pods that `content` means for so many replicas; None if it is neither a number nor a share."""
    percent = percentage(content)
    if percent is not None:
        return scaled(content, replicas, round_up=True) if 1 <= percent <= 100 else None
    return (int(content) or None) if _NUMBER.fullmatch(content) else None
