"""The ValidatingAdmissionPolicies for users.

A user may write only their own user name as the name of the user who gives a verdict or makes a request. Who promotes a
step with `approval` needs the permission for it. Through a DefensePolicy, AlterShield must not do anything that the
author of the policy may not do.
"""

from altershield.api import labels, pages
from altershield.api.policy import MAX_CHECKS
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, DEFENSE_POLICIES
from altershield.api.rights import APPROVE
from altershield.releases import history
from command.install.admission_policy import USER, Object, admission_policy, is_user, validation
from kube_base.resources import JOBS, PODS, SECRETS

_REQUEST = f"""\
!has(object.status) || !has(object.status.request) ||
(has(oldObject.status) && has(oldObject.status.request) && object.status.request == oldObject.status.request) ||
(has(object.status.request.by) && object.status.request.by == {USER})"""

_ACTIONS = """\
(has(object.status) && has(object.status.actions) ? object.status.actions : []) ==
(has(oldObject.status) && has(oldObject.status.actions) ? oldObject.status.actions : [])"""

_NOTIFIED = _ACTIONS.replace("actions", "notified")

# Whoever may patch the status could otherwise skip a soak or an approval.
_ROLLOUT = """\
(has(object.status) && has(object.status.rollout)) == (has(oldObject.status) && has(oldObject.status.rollout)) &&
(!has(object.status) || !has(object.status.rollout) || object.status.rollout == oldObject.status.rollout)"""

_PROMOTES = """\
has(object.status) && has(object.status.request) && has(object.status.request.verb) &&
object.status.request.verb in ['Promote', 'PromoteFull'] &&
!(has(oldObject.status) && has(oldObject.status.request) && object.status.request == oldObject.status.request)"""

_ROLLOUT_OF_POLICY = "oldObject.spec.policy.rollout"
_HAS_ROLLOUT = f"has(oldObject.spec) && has(oldObject.spec.policy) && has({_ROLLOUT_OF_POLICY})"
_STEPS = f"{_HAS_ROLLOUT} && has({_ROLLOUT_OF_POLICY}.steps) ? {_ROLLOUT_OF_POLICY}.steps : []"
_STEP = """\
has(oldObject.status) && has(oldObject.status.rollout) && has(oldObject.status.rollout.step) ?
oldObject.status.rollout.step : 0"""

# The phase does not count: a request that is made in the soak may be carried out after it. `PromoteFull` skips all
# later approvals. Before the first step, the request may be carried out in any step.
_NEEDS_APPROVAL = """\
variables.promotes && (object.status.request.verb == 'PromoteFull' || variables.step < 1 ?
variables.steps.exists(s, has(s.approval) && s.approval) :
size(variables.steps) >= variables.step && has(variables.steps[variables.step - 1].approval) &&
variables.steps[variables.step - 1].approval)"""

_MAY_APPROVE = f"""\
!variables.needsApproval || authorizer.group('{CHANGE_WORKLOADS.group}').resource('{CHANGE_WORKLOADS.plural}')
.namespace(request.namespace).name(request.name).check('{APPROVE}').allowed()"""

_OTHER_APPROVER = f"""\
!variables.needsApproval || !has({_ROLLOUT_OF_POLICY}.otherApprover) || !{_ROLLOUT_OF_POLICY}.otherApprover ||
!has(oldObject.spec.releasedBy) || !{is_user("oldObject.spec.releasedBy")}"""

_SAME_RELEASER = """\
request.operation == 'CREATE' || (has(object.spec.releasedBy) ? object.spec.releasedBy : '') ==
(has(oldObject.spec.releasedBy) ? oldObject.spec.releasedBy : '')"""

_BEFORE = "has(oldObject.status) && has(oldObject.status.podResults) ? oldObject.status.podResults : []"

# The last line compares each result with each earlier result. The API server limits such comparisons, so the line is
# evaluated only if a user removes the verdict of another user.
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

_DECISIONS = f"; see {pages.DECISIONS}"
_AUTHORS = f"; see {pages.POLICY_AUTHORS}"


def user_policies(reconciler: str) -> list[Object]:
    """The policies and their bindings. `reconciler`: the user name of the reconciler's service account, to
    which the policies do not apply: it gives the verdicts of users who approve a release."""
    users = {"not-the-reconciler": f"{USER} != '{reconciler}'"}
    requests = admission_policy(
        "requests",
        [CHANGE_WORKLOADS],
        users,
        [
            validation(_REQUEST, f"'status.request.by has to be your user name: ' + {USER} + '{_DECISIONS}'"),
            validation(_ACTIONS, f"'only AlterShield writes status.actions{_DECISIONS}'"),
            validation(_NOTIFIED, f"'only AlterShield writes status.notified; see {pages.NOTIFICATIONS}'"),
            validation(_ROLLOUT, f"'only AlterShield writes status.rollout{_DECISIONS}'"),
            validation(
                _MAY_APPROVE,
                "'this step needs the approval of a person, and you may not approve: ask for the ClusterRole "
                f"altershield-approvals in the namespace ' + request.namespace + '{_DECISIONS}'",
            ),
            validation(
                _OTHER_APPROVER,
                f"'you released this version, and its DefensePolicy demands that another user approves it{_DECISIONS}'",
            ),
        ],
        subresource="status",
        variables={"promotes": _PROMOTES, "steps": _STEPS, "step": _STEP, "needsApproval": _NEEDS_APPROVAL},
    )
    verdicts = admission_policy(
        "verdicts",
        [CHANGE_PODS],
        users,
        [validation(_RESULTS, f"'by of a new verdict has to be your user name: ' + {USER} + '{_DECISIONS}'")],
        subresource="status",
        variables={"before": _BEFORE},
    )
    # The spec of a policy that is in force is copied to the policy's status, and to the ChangeWorkloads of its
    # releases. Only the reconciler writes these copies. Otherwise a user could write a check there that `_checks`
    # denies.
    accepted = admission_policy(
        "accepted",
        [DEFENSE_POLICIES],
        users,
        [validation(_SAME_STATUS, f"'only AlterShield writes the status of DefensePolicies{_AUTHORS}'")],
        subresource="status",
    )
    applied = admission_policy(
        "applied",
        [CHANGE_WORKLOADS],
        users,
        [
            validation(_SAME_POLICY, f"'only AlterShield writes spec.policy of ChangeWorkloads{_AUTHORS}'"),
            validation(_SAME_RELEASER, f"'only AlterShield writes spec.releasedBy of ChangeWorkloads{_DECISIONS}'"),
        ],
        operations=("CREATE", "UPDATE"),
    )
    return [*requests, *verdicts, *_checks(reconciler, users), *accepted, *applied, *_history(users)]


def _checks(reconciler: str, users: dict[str, str]) -> list[Object]:
    """The policy for the authors of DefensePolicies. A user who writes a DefensePolicy with a Job must be allowed to
    create Jobs in its namespace, and one who writes a check of logs to read logs there. If it names a Secret, the user
    must be allowed to read this Secret. The reconciler does all this with its own permissions.

    A policy of the system namespace applies to all namespaces, so its author must be allowed to do so in all of
    them. The API server limits the cost of an expression to two requests to the authorizer (k8s.io/apiserver,
    pkg/cel/library/cost.go), so each Secret has its own expression.
    """
    may_create = (
        f"authorizer.group('{JOBS.group}').resource('{JOBS.plural}').namespace(variables.scope).check('create')"
    )
    logs = f"authorizer.group('{PODS.group}').resource('{PODS.plural}').subresource('log')"
    may_read_logs = f"{logs}.namespace(variables.scope).check('get')"
    where = "variables.scope == '' ? 'all namespaces' : 'the namespace ' + variables.scope"

    def may_read(number: int) -> Object:
        name = f"variables.secrets[{number}]"
        asked = f"authorizer.group('').resource('{SECRETS.plural}').namespace(request.namespace).name({name})"
        return validation(
            f"size(variables.secrets) <= {number} || {asked}.check('get').allowed()",
            f"'you may not read the Secret ' + {name} + ', so no DefensePolicy of yours may name it{_AUTHORS}'",
        )

    return admission_policy(
        "checks",
        [DEFENSE_POLICIES],
        {**users, "changed": _CHANGED},
        [
            validation(
                f"!variables.checks.exists(c, has(c.job)) || {may_create}.allowed()",
                f"'you may not create Jobs in ' + ({where}) + ', so no DefensePolicy of yours may have one{_AUTHORS}'",
            ),
            validation(
                f"!variables.checks.exists(c, has(c.logs)) || {may_read_logs}.allowed()",
                f"'you may not read the logs of pods in ' + ({where}) + "
                f"', so no DefensePolicy of yours may have a check of them{_AUTHORS}'",
            ),
            validation(
                f"size(variables.secrets) <= {MAX_CHECKS}",
                f"'a DefensePolicy may name {MAX_CHECKS} Secrets at most{_AUTHORS}'",
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
    """The policy for the entries of the history. Only the reconciler writes them. Otherwise a user who may write
    ControllerRevisions, but no workloads, could write the pod template that a rollback releases with the permissions of
    the reconciler. Such a user could also change the names of the users who released or approved a version.

    Changes of the owners stay possible, because the garbage collector makes them. Users who may do everything in the
    namespace can write entries too, for example backup tools with the role `cluster-admin`.
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
                f"'only AlterShield writes the history of workloads; see {pages.HISTORY}'",
            )
        ],
        operations=("CREATE", "UPDATE"),
        variables={"now": content.format("object"), "before": content.format("oldObject")},
        # other objects are not evaluated, so an error cannot block the controllers of Kubernetes
        objects={"matchExpressions": [{"key": labels.HISTORY, "operator": "Exists"}]},
    )


def _metadata(obj: str, field: str, key: str) -> str:
    """The expression for the value of a label or annotation; the value is empty if the object does not have it."""
    values = f"{obj}.metadata.{field}"
    return f"(has({values}) && '{key}' in {values} ? {values}['{key}'] : '')"
