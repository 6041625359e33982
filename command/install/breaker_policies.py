"""The ValidatingAdmissionPolicy for the status of PodDeletionFlowControls. The role `altershield-breaker` may patch the
status, because RBAC cannot name fields.

Gatekeepers and reconciler count deletions there. All other users may change only `status.breaker`. A user may write
only their own user name as the name of the user who opened or reset a breaker.
"""

from altershield.api.flow_control import BreakerState
from altershield.api.pages import BREAKER
from altershield.api.resources import POD_DELETION_FLOW_CONTROLS
from command.install.admission_policy import (
    USER,
    Object,
    equal_but,
    policy_of_rules,
    resource_rule,
    validation,
)

ONLY_BREAKER = "only AlterShield writes the status of PodDeletionFlowControls, apart from status.breaker"
_RUN = f"see {BREAKER}; run: altershield breaker"
_TIMES = "['since', 'until', 'passed']"


def breaker_policies(gatekeeper: str, reconciler: str) -> list[Object]:
    """The policy and its binding. `gatekeeper`, `reconciler`: the user names of their service accounts, to which
    the policy does not apply."""
    return policy_of_rules(
        "breaker",
        [resource_rule([POD_DELETION_FLOW_CONTROLS], ["UPDATE"], ["status"], scope="Cluster")],
        {"not-the-reconciler": f"{USER} != '{reconciler}'", "not-the-gatekeeper": f"{USER} != '{gatekeeper}'"},
        [
            validation(equal_but("oldStatus", "newStatus", "['breaker']"), f"'{ONLY_BREAKER}; see {BREAKER}'"),
            validation(
                # an open breaker keeps the name of the user who opened it; other breakers may lose the name
                f"{_of('new', 'openedBy')} == {USER} || "
                f"{_of('new', 'openedBy')} == (variables.opens ? '' : {_of('old', 'openedBy')}) || "
                f"({_of('new', 'openedBy')} == '' && {_state('new')} != '{BreakerState.OPEN}')",
                _own_name("openedBy", "open"),
            ),
            validation(
                f"{_of('new', 'resetBy')} == {USER} || "
                f"{_of('new', 'resetBy')} == (variables.closes ? '' : {_of('old', 'resetBy')})",
                _own_name("resetBy", "reset"),
            ),
            validation(
                f"{_of('new', 'rule')} == '' || (!variables.opens && {_of('new', 'rule')} == {_of('old', 'rule')})",
                f"'only AlterShield writes status.breaker.rule, the rule that opened it; {_RUN} open ' + request.name",
            ),
            # an Auto breaker closes after a time: a user who writes times or HalfOpen would reset it without a name
            validation(
                f"{_state('new')} != '{BreakerState.HALF_OPEN}' || {_state('old')} == '{BreakerState.HALF_OPEN}'",
                f"'status.breaker.state can be set to Open and Closed; {_RUN} reset ' + request.name",
            ),
            validation(
                f"variables.opens || variables.closes || {_of('new', 'openedBy')} == {USER} || "
                f"{_TIMES}.all(k, k in variables.new ? k in variables.old && variables.old[k] == variables.new[k] : "
                "!(k in variables.old))",
                f"'status.breaker.since, until and passed change with the state only; {_RUN} reset ' + request.name",
            ),
        ],
        variables={
            "newStatus": _status("object"),
            "oldStatus": _status("oldObject"),
            "new": _breaker("newStatus"),
            "old": _breaker("oldStatus"),
            "opens": _becomes(BreakerState.OPEN),
            "closes": _becomes(BreakerState.CLOSED),
        },
    )


def _own_name(field: str, command: str) -> str:
    return (
        f"'status.breaker.{field} has to be your user name: ' + request.userInfo.username + '; {_RUN} {command} ' + "
        "request.name"
    )


def _status(obj: str) -> str:
    return f"has({obj}.status) ? dyn({obj}.status) : dyn({{}})"


def _breaker(status: str) -> str:
    return f"'breaker' in variables.{status} ? dyn(variables.{status}.breaker) : dyn({{}})"


def _of(breaker: str, field: str, absent: str = "") -> str:
    """A field of a breaker, which is a text."""
    return f"('{field}' in variables.{breaker} ? variables.{breaker}.{field} : '{absent}')"


def _state(breaker: str) -> str:
    return _of(breaker, "state", BreakerState.CLOSED)


def _becomes(state: BreakerState) -> str:
    return f"{_state('new')} == '{state}' && {_state('old')} != '{state}'"
