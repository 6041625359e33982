"""The executions of rules, and the `Rule` and `Verdict` objects of responses and callbacks."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kube_sandbox.altershield_server.script import RuleScript
from kube_sandbox.altershield_server.vocabulary import Stage


@dataclass(slots=True, kw_only=True)
class Execution:
    """One run of a rule. Times are in Unix milliseconds."""

    id: str
    rule: RuleScript
    rule_id: str
    stage: Stage
    started: int
    verdict: str = "NONE"
    finished: int | None = None
    ignored: bool = False

    def end(self, verdict: str, now: int) -> None:
        self.verdict, self.finished = self.rule.verdict or verdict, now

    def body(self) -> dict[str, Any]:
        ended = "SUCCESS" if self.verdict in ("PASS", "FAIL") else "TIMEOUT"
        return {
            "ruleExeId": self.id,
            "name": self.rule.name,
            "owner": self.rule.owner,
            "relationId": self.rule_id,
            "externalRuleId": self.rule_id,
            "controlKey": "sandbox",
            "stage": self.stage,
            "status": "EXE" if self.finished is None else ended,
            "verdict": self.verdict,
            "msg": self.rule.msg or None,
            "resultJsn": None,
            "riskLevel": "BLOCK",
            "grayStatus": True,
            "allowIgnore": self.rule.allow_ignore,
            "ignored": self.ignored,
            "gmtStart": self.started,
            "gmtFinish": self.finished,
            "url": "",
        }


def executions(rules: Sequence[RuleScript], stage: Stage, now: int) -> list[Execution]:
    """New executions of the rules."""
    return [
        Execution(id=str(uuid.uuid4()), rule=rule, rule_id=f"{stage.lower()}-{index}", stage=stage, started=now)
        for index, rule in enumerate(rules)
    ]


def verdict_body(verdict: str, rules: Sequence[Execution], **more: Any) -> dict[str, Any]:
    """A `Verdict`. `emergency` and `rollback` are always false, as on the published server."""
    return {
        "verdict": verdict,
        "checkPass": verdict not in ("fail", "inconc"),
        "allFinish": True,
        "rollback": False,
        "emergency": False,
        "rules": [each.body() for each in rules],
        **more,
    }
