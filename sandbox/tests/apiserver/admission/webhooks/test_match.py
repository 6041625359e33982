"""Which webhooks match a request: rules, selectors and match conditions."""

import pytest

from kube_sandbox.apiserver.admission.webhooks import match as webhook_match
from kube_sandbox.apiserver.admission.webhooks.conditions import Evaluations
from kube_sandbox.apiserver.admission.webhooks.match import Hook
from kube_sandbox.apiserver.admission.webhooks.review import Invocation, Kind
from kube_sandbox.apiserver.attributes import Attributes, Object
from kube_sandbox.apiserver.auth.authentication import administrator
from kube_sandbox.apiserver.errors import StatusError
from support.stored import Stored, an_object

GOVERNED = an_object("Namespace", "apps")
GOVERNED["metadata"]["labels"] = {"governed": "yes"}
SELECTOR = {"matchLabels": {"governed": "yes"}}


def deployment(**labels: str) -> Object:
    obj = an_object("Deployment", "sleep", "apps", api_version="apps/v1")
    obj["metadata"]["labels"] = labels
    return obj


def update(obj: Object | None = None, old: Object | None = None, **rest: object) -> Attributes:
    known: Object = {"group": "apps", "version": "v1", "plural": "deployments", "kind": "Deployment"}
    known |= {"namespace": "apps", "name": "sleep", "operation": "UPDATE"}
    return Attributes(administrator(), "update", obj=obj or deployment(), old=old or deployment(), **(known | rest))


def rule(resources: str = "deployments", **rest: object) -> Object:
    known: Object = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources.split()}
    return known | rest


def match(attributes: Attributes, *rules: Object, stored: Stored | None = None, **spec: object) -> Invocation | None:
    hook = Hook("uid", {"name": "h.example.com", "rules": list(rules) or [rule()], **spec})
    return webhook_match.match(hook, attributes, stored or Stored(GOVERNED), Evaluations(attributes, None))


@pytest.mark.parametrize(
    ("rule_", "matches"),
    [
        (rule(), True),
        (rule(operations=["CREATE", "UPDATE"]), True),
        (rule(operations=["CREATE"]), False),
        (rule(apiGroups=["apps"], apiVersions=["v1"]), True),
        (rule(apiGroups=[""]), False),
        (rule(apiVersions=["v1beta1"]), False),
        (rule("*"), True),
        (rule("*/*"), True),
        (rule("pods deployments"), True),
        (rule("deployments/*"), True),
        (rule("deployments/scale"), False),
        (rule(scope="Namespaced"), True),
        (rule(scope="Cluster"), False),
    ],
)
def test_rule_matches_operation_group_version_resource_and_scope(rule_: Object, matches: bool) -> None:
    assert (match(update(), rule_) is not None) is matches


@pytest.mark.parametrize(
    ("resources", "matches"),
    [("deployments", False), ("*", False), ("*/*", True), ("deployments/*", True), ("*/scale", True)],
)
def test_rule_matches_a_subresource_only_if_it_names_it(resources: str, matches: bool) -> None:
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "sleep"}}
    found = match(update(scale, scale, subresource="scale"), rule(resources))
    assert (found is not None) is matches
    if found:
        assert found.kind == Kind("autoscaling", "v1", "Scale")


def test_cluster_scoped_objects_and_namespaces_match_scope_cluster() -> None:
    node = update(group="", plural="nodes", kind="Node", namespace="", name="n1")
    namespace = update(
        GOVERNED, GOVERNED, group="", plural="namespaces", kind="Namespace", namespace="apps", name="apps"
    )
    for attributes in (node, namespace):
        assert match(attributes, rule("*", scope="Cluster"))
        assert not match(attributes, rule("*", scope="Namespaced"))


def test_namespace_selector_reads_the_labels_of_the_namespace() -> None:
    assert match(update(), namespaceSelector=SELECTOR)
    assert not match(update(), namespaceSelector={"matchLabels": {"governed": "no"}})
    assert not match(
        update(), namespaceSelector={"matchExpressions": [{"key": "governed", "operator": "DoesNotExist"}]}
    )
    assert match(update(), namespaceSelector={"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["y"]}]})


def test_missing_namespace_refuses_the_request_only_if_the_rules_match() -> None:
    with pytest.raises(StatusError, match='namespaces "apps" not found'):
        match(update(), stored=Stored(), namespaceSelector=SELECTOR)
    assert match(update(), stored=Stored(), namespaceSelector={})
    assert not match(update(), rule("pods"), stored=Stored(), namespaceSelector=SELECTOR)


def test_cluster_scoped_object_matches_every_namespace_selector() -> None:
    node = update(group="", plural="nodes", kind="Node", namespace="", name="n1")
    assert match(node, rule("nodes"), namespaceSelector=SELECTOR)


def test_namespace_selector_reads_the_new_labels_of_a_namespace_request() -> None:
    bare = an_object("Namespace", "apps")
    about = {"group": "", "plural": "namespaces", "kind": "Namespace", "namespace": "", "name": "apps"}
    assert match(update(GOVERNED, bare, **about), rule("namespaces"), stored=Stored(bare), namespaceSelector=SELECTOR)
    assert not match(update(bare, GOVERNED, **about), rule("namespaces"), namespaceSelector=SELECTOR)
    deleted = Attributes(administrator(), "delete", version="v1", operation="DELETE", old=GOVERNED, **about)  # type: ignore[arg-type]
    assert match(deleted, rule("namespaces"), namespaceSelector=SELECTOR)


def test_object_selector_matches_the_new_or_the_old_object() -> None:
    selector = {"matchLabels": {"a": "b"}}
    assert match(update(deployment(a="b"), deployment()), objectSelector=selector)
    assert match(update(deployment(), deployment(a="b")), objectSelector=selector)
    assert not match(update(), objectSelector=selector)
    assert match(update(), objectSelector={})


def test_match_policy_equivalent_converts_to_another_served_version() -> None:
    versions = [{"name": "v1", "served": True}, {"name": "v2", "served": True}, {"name": "v3", "served": False}]
    crd = an_object(
        "CustomResourceDefinition",
        "things.x.io",
        api_version="apiextensions.k8s.io/v1",
        spec={"versions": versions},
    )
    thing = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}}
    attributes = update(thing, thing, group="x.io", plural="things", kind="Thing")
    wants_v2 = rule("things", apiVersions=["v2"])
    found = match(attributes, wants_v2, stored=Stored(GOVERNED, crd))
    assert found == Invocation("v2", Kind("x.io", "v2", "Thing"))
    assert not match(attributes, wants_v2, stored=Stored(GOVERNED, crd), matchPolicy="Exact")
    assert not match(attributes, rule("things", apiVersions=["v3"]), stored=Stored(GOVERNED, crd))


@pytest.mark.parametrize("kind", ["MutatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding"])
def test_webhook_and_policy_configurations_are_exempt(kind: str) -> None:
    configuration = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "x"}}
    group = "admissionregistration.k8s.io"
    assert webhook_match.is_exempt(update(configuration, group=group, kind=kind, plural="x", namespace=""))
    assert not webhook_match.is_exempt(update())


def test_webhooks_are_sorted_by_the_name_of_their_configuration() -> None:
    stored = [
        an_object("MutatingWebhookConfiguration", name, webhooks=[{"name": f"{name}-{index}"} for index in range(2)])
        for name in ("b", "a")
    ]
    names = [hook.name for hook in webhook_match.hooks(stored)]
    assert names == ["a-0", "a-1", "b-0", "b-1"]


def conditions(*expressions: str) -> list[Object]:
    return [{"name": f"c{index}", "expression": expression} for index, expression in enumerate(expressions)]


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ("object.metadata.name == 'sleep'", True),
        ("request.operation == 'UPDATE' && request.resource.resource == 'deployments'", True),
        ("request.userInfo.username == 'somebody'", False),
        ("!('system:masters' in request.userInfo.groups)", False),
        ("oldObject != null && object.metadata.labels == oldObject.metadata.labels", True),
        ("has(object.metadata.annotations)", False),
        ("request.dryRun", False),
    ],
)
def test_match_condition_reads_request_object_and_old_object(expression: str, matches: bool) -> None:
    assert (match(update(), matchConditions=conditions(expression)) is not None) is matches


def test_webhook_matches_only_if_all_match_conditions_are_true() -> None:
    assert match(update(), matchConditions=conditions("true", "object.kind == 'Deployment'"))
    assert not match(update(), matchConditions=conditions("true", "false"))


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("object.data.x == 'y'", "no such key: data"),
        ("1 / size(object.metadata.labels) == 1", "division by zero"),
        ("int(object.kind) == 1", "type conversion error from 'string' to 'int'"),
        ("[1, 2][5] == 1", "index out of bounds: 5"),
    ],
)
def test_condition_error_with_failure_policy_fail_refuses_the_request(expression: str, why: str) -> None:
    with pytest.raises(StatusError) as refused:
        match(update(), failurePolicy="Fail", matchConditions=conditions(expression))
    assert refused.value.code == 403
    assert refused.value.message == (
        f"deployments.apps \"sleep\" is forbidden: expression '{expression}' resulted in error: {why}"
    )


def test_field_of_a_null_object_is_a_missing_key() -> None:
    created = update(operation="CREATE")
    created.old = None
    with pytest.raises(StatusError, match=r"no such key: metadata$"):
        match(created, matchConditions=conditions("oldObject.metadata.name == 'x'"))


def test_errors_of_several_conditions_are_listed_in_one_message() -> None:
    with pytest.raises(StatusError) as refused:
        match(update(), matchConditions=conditions("object.a == 1", "object.b == 1"))
    assert refused.value.message.endswith(
        "forbidden: [expression 'object.a == 1' resulted in error: no such key: a, "
        "expression 'object.b == 1' resulted in error: no such key: b]"
    )


def test_false_condition_takes_precedence_over_a_condition_error() -> None:
    assert not match(update(), matchConditions=conditions("object.a == 1", "false"))
    assert not match(update(), failurePolicy="Ignore", matchConditions=conditions("object.a == 1"))
