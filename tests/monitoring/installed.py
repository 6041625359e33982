"""The alerts, runbooks and dashboards of this repository, as files and decoded."""

import json
from pathlib import Path
from typing import Any

import yaml

from dashboards.__main__ import DIRECTORY
from tests.chart.rendering import CHART

Object = dict[str, Any]

RULES = CHART / "files" / "rules" / "altershield.yaml"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
RUNBOOKS = Path(__file__).parents[2] / "docs" / "runbooks"

ALERTS = {
    "AlterShieldGatekeeperDown",
    "AlterShieldRedundancyLost",
    "AlterShieldGatekeeperErrors",
    "AlterShieldSlow",
    "AlterShieldNotAsked",
    "AlterShieldFailOpen",
    "AlterShieldUngatedRelease",
    "AlterShieldUnchecked",
    "AlterShieldSuspendedLong",
    "AlterShieldReleaseStuck",
    "AlterShieldStepWaitingLong",
    "AlterShieldRolledBack",
    "AlterShieldFuseTripped",
    "AlterShieldDisarmed",
    "AlterShieldReleaseHeldLong",
    "AlterShieldNotAccepted",
    "AlterShieldSchedulesRunOut",
    "AlterShieldOverrideUsed",
    "AlterShieldFreezeForgotten",
    "AlterShieldCertificateExpiring",
    "AlterShieldCertificateUnusable",
    "AlterShieldReconcilerDown",
    "AlterShieldNoLeader",
    "AlterShieldReleaseHeldWithoutReconciler",
    "AlterShieldClusterSilent",
    "AlterShieldReconcileErrors",
    "AlterShieldQueueOld",
    "AlterShieldObjectsSkipped",
    "AlterShieldEventsDropped",
    "AlterShieldMemoryHigh",
    "AlterShieldWatchStale",
    "AlterShieldDenialStorm",
    "AlterShieldBreakerOpen",
    "AlterShieldDeletionLimitNear",
    "AlterShieldBudgetOverdrawn",
    "AlterShieldDrainBlocked",
    "AlterShieldProtectionFailOpen",
    "AlterShieldUngatedDeletions",
    "AlterShieldBudgetNotReconciled",
    "AlterShieldBreakGlassUsed",
}


def rules() -> list[dict[str, Any]]:
    """The alerts, without the recording rules."""
    return [rule for rule in all_rules() if "alert" in rule]


def all_rules() -> list[dict[str, Any]]:
    [file] = yaml.load_all(RULES.read_text(), _LOADER)
    return [rule for group in file["groups"] for rule in group["rules"]]


def loaded() -> dict[str, Object]:
    """The dashboards, by file name."""
    return {path.name: json.loads(path.read_text()) for path in sorted(DIRECTORY.glob("*.json"))}


def panels(dashboard: Object) -> list[Object]:
    """The panels of a dashboard, without rows."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]
