"""The ValidatingAdmissionPolicies for the separation of duties.

They apply to a user whom `spec.notDecidedBy` of a ChangeWorkload or ChangePod names: the reconciler writes it there if
the option `--separation-of-duties` is set. Such a user may ask for a rollback, hold or promote the release, and fail a
pod, but writes nothing else into the status: the verdicts follow from it.
"""

import msgspec

from altershield.api import pages
from altershield.api.change_pod import ChangePodStatus
from altershield.api.change_workload import ChangeWorkloadStatus, WorkloadState
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS
from altershield.releases import duties
from command.install.admission_policy import USER, Object, admission_policy, is_user, validation

_EXCLUDED = "(has({0}.spec) && has({0}.spec.notDecidedBy) ? {0}.spec.notDecidedBy : '')"
_BEFORE = _EXCLUDED.format("oldObject")

_OWN = f"{_BEFORE} != '' && {is_user(_BEFORE)}"

_DECIDES = f"""\
has(object.status) && has(object.status.request) && has(object.status.request.verb) &&
object.status.request.verb in {[str(each) for each in duties.DECISIONS]} &&
!(has(oldObject.status) && has(oldObject.status.request) && object.status.request == oldObject.status.request)"""

_STATE = "(has({0}.status) && has({0}.status.status) ? {0}.status.status : '')"
_SAME_STATE = f"""\
{_STATE.format("object")} == '{WorkloadState.ROLLBACK.value}' ||
{_STATE.format("object")} == {_STATE.format("oldObject")}"""

_RESULTS = "has({0}.status) && has({0}.status.podResults) ? {0}.status.podResults : []"
_PASSED = "filter(r, has(r.verdict) && r.verdict == 'pass')"
_FAILED = "filter(r, has(r.verdict) && !(r.verdict in ['', 'pass']))"

# Lists are searched only if the user replaces a verdict: the API server limits such comparisons. A verdict without a
# uid is valid for the pod of that name.
_NO_PASS = f"""\
(variables.now.{_PASSED} == variables.before.{_PASSED} ||
variables.now.{_PASSED}.all(r, r in variables.before)) &&
(variables.now.{_FAILED} == variables.before.{_FAILED} ||
variables.before.{_FAILED}.all(r, variables.now.{_FAILED}.exists(n, n.pod == r.pod &&
(!has(n.uid) || (has(r.uid) && n.uid == r.uid)))))"""

_PAGE = f"; see {pages.DUTIES}"


def duties_policies(reconciler: str) -> list[Object]:
    """The policies and their bindings. `reconciler`: the user name of the reconciler's service account."""
    users = {"not-the-reconciler": f"{USER} != '{reconciler}'"}
    own = {**users, "own": _OWN}
    releases = admission_policy(
        "duties",
        [CHANGE_WORKLOADS],
        own,
        [
            validation(f"!({_DECIDES})", _denied("approve, repair, resume or retry it")),
            validation(_SAME_STATE, _denied("change its state")),
            validation(_same(ChangeWorkloadStatus, "request", "status", "rollbackTo"), _denied("change its status")),
        ],
        subresource="status",
    )
    verdicts = admission_policy(
        "duties-verdicts",
        [CHANGE_PODS],
        own,
        [
            validation(_NO_PASS, _denied("give its pods the verdict pass, or remove a failing verdict")),
            validation(_same(ChangePodStatus, "podResults", "message"), _denied("change its verification")),
        ],
        subresource="status",
        variables={"before": _RESULTS.format("oldObject"), "now": _RESULTS.format("object")},
    )
    kept = admission_policy(
        "duties-kept",
        [CHANGE_WORKLOADS, CHANGE_PODS],
        users,
        [
            validation(
                f"{_BEFORE} == {_EXCLUDED.format('object')}", f"'only AlterShield writes spec.notDecidedBy{_PAGE}'"
            )
        ],
    )
    return [*releases, *verdicts, *kept]


def _same(type_: type[msgspec.Struct], *but: str) -> str:
    """Whether all fields of the status are as they were, except for those in `but`."""
    found = []
    for field in (each for each in type_.__struct_encode_fields__ if each not in but):
        now, before = (f"(has({obj}.status) && has({obj}.status.{field}))" for obj in ("object", "oldObject"))
        found.append(f"{now} == {before} && (!{now} || object.status.{field} == oldObject.status.{field})")
    return " && ".join(found)


def _denied(what: str) -> str:
    """The message about what the user may not do."""
    return (
        "'you released this version, so another user has to decide about it: one with the ClusterRole "
        f"altershield-verdicts in the namespace ' + request.namespace + '. You may not {what}, but you may go back: "
        f"altershield rollback{_PAGE}'"
    )
