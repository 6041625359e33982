"""The ValidatingAdmissionPolicies for release gates. They hold while no gatekeeper runs, too.

A user may write only their own user name as the name of the user who created or ended a freeze, and cannot write that a
fuse created it. Only AlterShield writes
the status of gates: whoever could write the times of a window could open it.
"""

from altershield.api import pages
from altershield.api.resources import RELEASE_FREEZES, RELEASE_OVERRIDES
from altershield.api.rights import OVERRIDE
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


_MAY_OVERRIDE = f"""\
!variables.system || authorizer.group('{RELEASE_OVERRIDES.group}').resource('{RELEASE_OVERRIDES.plural}')
.namespace(request.namespace).check('{OVERRIDE}').allowed()"""

_OWN_TARGET = """\
variables.system || !has(object.spec.target.namespace) || object.spec.target.namespace in ['', request.namespace]"""


def gate_policies(gatekeeper: str, reconciler: str) -> list[Object]:
    """The policies and their bindings. `gatekeeper`, `reconciler`: the user names of their service accounts.
    The policies do not apply to the reconciler. The gatekeeper may write the uses of overrides."""
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
    overrides = admission_policy(
        "overrides",
        [RELEASE_OVERRIDES],
        users,
        [
            validation(
                f"{_text('object', 'requestedBy')} == {USER}",
                f"'spec.requestedBy has to be your user name: ' + {USER} + '{_SEE}'",
            ),
            validation(
                _MAY_OVERRIDE,
                "'you may not override gates of this namespace: ask for the ClusterRole altershield-breakglass in the "
                f"namespace ' + request.namespace + '{_SEE}'",
            ),
            validation(
                _OWN_TARGET,
                "'spec.target.namespace has to be the namespace of the ReleaseOverride: ' + request.namespace + "
                f"'{_SEE}'",
            ),
        ],
        operations=("CREATE",),
        variables={"system": f"'{reconciler}'.startsWith('system:serviceaccount:' + request.namespace + ':')"},
    )
    uses = admission_policy(
        "uses",
        [RELEASE_OVERRIDES],
        {**users, "not-the-gatekeeper": f"{USER} != '{gatekeeper}'"},
        [validation(_SAME_STATUS, f"'only AlterShield writes the status of ReleaseOverrides{_SEE}'")],
        subresource="status",
    )
    return [*freezes, *status, *overrides, *uses]
