"""The ValidatingAdmissionPolicies for release gates. They hold while no gatekeeper runs, too.

A user may write only their own user name as the name of the user who created or ended a freeze, and cannot write that a
fuse created it. Only AlterShield writes
the status of gates: whoever could write the times of a window could open it.
"""

from altershield.api import pages
from altershield.api.resources import RELEASE_FREEZES
from altershield.gates.judge import GATES
from command.install.admission_policy import USER, Object, admission_policy, validation

_SEE = f"; see {pages.GATES}"


def _text(obj: str, field: str) -> str:
    return f"(has({obj}.spec.{field}) ? {obj}.spec.{field} : '')"


_REQUESTED = f"request.operation == 'UPDATE' || {_text('object', 'requestedBy')} == {USER}"
_ENDED = f"""\
request.operation == 'CREATE' ? {_text("object", "endedBy")} == '' :
{_text("object", "until")} == {_text("oldObject", "until")} ?
({_text("object", "endedBy")} == {_text("oldObject", "endedBy")} || {_text("object", "endedBy")} == {USER}) :
{_text("object", "endedBy")} == {USER}"""

_SAME_STATUS = (
    "has(object.status) == has(oldObject.status) && (!has(object.status) || object.status == oldObject.status)"
)


def gate_policies(reconciler: str) -> list[Object]:
    """The policies and their bindings. `reconciler`: the user name of the reconciler's service account, to which they
    do not apply."""
    users = {"not-the-reconciler": f"{USER} != '{reconciler}'"}
    freezes = admission_policy(
        "freezes",
        [RELEASE_FREEZES],
        users,
        [
            validation(_REQUESTED, f"'spec.requestedBy has to be your user name: ' + {USER} + '{_SEE}'"),
            validation(
                "request.operation == 'UPDATE' || !has(object.spec.fuse)", f"'only AlterShield sets spec.fuse{_SEE}'"
            ),
            validation(
                _ENDED, f"'who changes spec.until has to write spec.endedBy, your user name: ' + {USER} + '{_SEE}'"
            ),
        ],
        operations=("CREATE", "UPDATE"),
    )
    gates = [each.resource for each in GATES]
    status = admission_policy(
        "gates",
        gates,
        users,
        [validation(_SAME_STATUS, f"'only AlterShield writes the status of ' + request.resource.resource + '{_SEE}'")],
        subresource="status",
    )
    return [*freezes, *status]
