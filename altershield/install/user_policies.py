"""The ValidatingAdmissionPolicies. Who gave a verdict or made a request is the user of the request to the API server. A
DefensePolicy lets its author do nothing through AlterShield that the author may not do.

The API server evaluates them. So they hold whether a gatekeeper runs or not, and in namespaces that are not governed.
"""

from altershield.api import labels
from altershield.api.policy import MAX_CHECKS
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, DEFENSE_POLICIES, JOBS, SECRETS
from altershield.install.admission_policy import USER, Object, admission_policy, validation
from altershield.releases import history

_REQUEST = f"""\
!has(object.status) || !has(object.status.request) ||
(has(oldObject.status) && has(oldObject.status.request) && object.status.request == oldObject.status.request) ||
(has(object.status.request.by) && object.status.request.by == {USER})"""

_ACTIONS = """\
(has(object.status) && has(object.status.actions) ? object.status.actions : []) ==
(has(oldObject.status) && has(oldObject.status.actions) ? oldObject.status.actions : [])"""

_NOTIFIED = _ACTIONS.replace("actions", "notified")

_BEFORE = "has(oldObject.status) && has(oldObject.status.podResults) ? oldObject.status.podResults : []"

# The third line compares each result with each earlier one, which the API server limits. It is evaluated only if a user
# removes the verdict of another user.
_RESULTS = f"""\
!has(object.status) || !has(object.status.podResults) ||
object.status.podResults.filter(r, has(r.by) && r.by != {USER}) ==
variables.before.filter(r, has(r.by) && r.by != {USER}) ||
object.status.podResults.all(r, !has(r.by) || r.by == {USER} || r in variables.before)"""

_CHECKS = "has(object.spec) && has(object.spec.checks) ? object.spec.checks : []"
_CHANGED = "request.operation == 'CREATE' || !has(oldObject.spec) || !has(object.spec) || object.spec != oldObject.spec"
_SECRETS = " + ".join(
    f"variables.checks.filter(c, has(c.{kind}) && has(c.{kind}.secretRef)).map(c, c.{kind}.secretRef.name)"
    for kind in ("http", "prometheus")
)
_SAME_STATUS = (
    "has(object.status) == has(oldObject.status) && (!has(object.status) || object.status == oldObject.status)"
)
_SAME_POLICY = """\
request.operation == 'CREATE' ? !has(object.spec.policy) :
has(object.spec.policy) == has(oldObject.spec.policy) &&
(!has(object.spec.policy) || object.spec.policy == oldObject.spec.policy)"""


def user_policies(reconciler: str) -> list[Object]:
    """The policies and their bindings. `reconciler`: the user name of the reconciler's service account, which the
    policies do not bind: it gives the verdicts of users who approve a release."""
    users = {"not-the-reconciler": f"{USER} != '{reconciler}'"}
    requests = admission_policy(
        "requests",
        [CHANGE_WORKLOADS],
        users,
        [
            validation(_REQUEST, "'status.request.by has to be your user name: ' + request.userInfo.username"),
            validation(_ACTIONS, "'only AlterShield writes status.actions'"),
            validation(_NOTIFIED, "'only AlterShield writes status.notified'"),
        ],
        subresource="status",
    )
    verdicts = admission_policy(
        "verdicts",
        [CHANGE_PODS],
        users,
        [validation(_RESULTS, "'by of a new verdict has to be your user name: ' + request.userInfo.username")],
        subresource="status",
        variables={"before": _BEFORE},
    )
    # The spec of a policy that is in force is in the policy's status, and in the ChangeWorkloads of its releases. Only
    # the reconciler writes these copies. Otherwise a user could write there what `_checks` denies.
    accepted = admission_policy(
        "accepted",
        [DEFENSE_POLICIES],
        users,
        [validation(_SAME_STATUS, "'only AlterShield writes the status of DefensePolicies'")],
        subresource="status",
    )
    applied = admission_policy(
        "applied",
        [CHANGE_WORKLOADS],
        users,
        [validation(_SAME_POLICY, "'only AlterShield writes spec.policy of ChangeWorkloads'")],
        operations=("CREATE", "UPDATE"),
    )
    return [*requests, *verdicts, *_checks(reconciler, users), *accepted, *applied, *_history(users)]


def _checks(reconciler: str, users: dict[str, str]) -> list[Object]:
    """A user who writes a DefensePolicy with a Job must be allowed to create Jobs in its namespace; with a Secret, to
    read this Secret. The reconciler does both with its own permissions.

    A policy of the system namespace applies to all namespaces, so its author must be allowed to create Jobs in all of
    them. The API server limits the cost of an expression to two questions to the authorizer (k8s.io/apiserver,
    pkg/cel/library/cost.go), so there is one expression for each Secret.
    """
    may_create = (
        f"authorizer.group('{JOBS.group}').resource('{JOBS.plural}').namespace(variables.scope).check('create')"
    )
    where = "variables.scope == '' ? 'all namespaces' : 'the namespace ' + variables.scope"

    def may_read(number: int) -> Object:
        name = f"variables.secrets[{number}]"
        asked = f"authorizer.group('').resource('{SECRETS.plural}').namespace(request.namespace).name({name})"
        return validation(
            f"size(variables.secrets) <= {number} || {asked}.check('get').allowed()",
            f"'you may not read the Secret ' + {name} + ', so no DefensePolicy of yours may name it'",
        )

    return admission_policy(
        "checks",
        [DEFENSE_POLICIES],
        {**users, "changed": _CHANGED},
        [
            validation(
                f"!variables.checks.exists(c, has(c.job)) || {may_create}.allowed()",
                f"'you may not create Jobs in ' + ({where}) + ', so no DefensePolicy of yours may have one'",
            ),
            validation(
                f"size(variables.secrets) <= {MAX_CHECKS}", f"'a DefensePolicy may name {MAX_CHECKS} Secrets at most'"
            ),
            *map(may_read, range(MAX_CHECKS)),
        ],
        operations=("CREATE", "UPDATE"),
        variables={
            "checks": _CHECKS,
            "secrets": _SECRETS,
            "scope": f"'{reconciler}'.startsWith('system:serviceaccount:' + request.namespace + ':') ? '' : "
            "request.namespace",
        },
    )


def _history(users: dict[str, str]) -> list[Object]:
    """Only the reconciler writes the entries of the history. Otherwise a user who may write ControllerRevisions, but no
    workloads, could have the pod template of an entry released by a rollback, with the permissions of the reconciler;
    and could change who released or approved a version.

    Changes of the owners stay possible: the garbage collector makes them. Users who may do everything in the namespace
    can write entries too, for example backup tools with the role `cluster-admin`.
    """
    content = ", ".join(
        _metadata("{0}", *each) for each in (("labels", labels.HISTORY), ("annotations", history.ANNOTATION))
    )
    content = f"[{content}, {{0}}.revision]"
    may_do_all = "authorizer.group('*').resource('*').namespace(request.namespace).check('*').allowed()"
    return admission_policy(
        "history",
        [history.RESOURCE],
        users,
        [
            validation(
                f"(request.operation == 'UPDATE' && variables.now == variables.before) || {may_do_all}",
                "'only AlterShield writes the history of workloads'",
            )
        ],
        operations=("CREATE", "UPDATE"),
        variables={"now": content.format("object"), "before": content.format("oldObject")},
        # others are not evaluated, so an error cannot block the controllers of Kubernetes
        objects={"matchExpressions": [{"key": labels.HISTORY, "operator": "Exists"}]},
    )


def _metadata(obj: str, field: str, key: str) -> str:
    """The value of a label or annotation; empty without it."""
    values = f"{obj}.metadata.{field}"
    return f"(has({values}) && '{key}' in {values} ? {values}['{key}'] : '')"
