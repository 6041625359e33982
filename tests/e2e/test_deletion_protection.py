"""Objects with the label policy.kruise.io/delete-protection: each kind with each level, and who is refused what.

The API server evaluates the policies, so these tests need no gatekeeper.
"""

import functools
import json
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from altershield.api.deletion_protection import quotable
from altershield.api.pages import PROTECT
from altershield.api.protected_kinds import KRUISE, PROTECTED_KINDS, ProtectedKind
from command import main
from command.install.deletion_policies import LOCK, deletion_policies
from kube_base.resources import CRDS, NAMESPACES
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually
from tests.support.processes import Done, call

LABEL = "policy.kruise.io/delete-protection"
SEEDED = "policy.kruise.io/disable-cascading-deletion"
REASON = "altershield.defense.antgroup.com/delete-protection-reason"
ALWAYS, CASCADING = {LABEL: "Always"}, {LABEL: "Cascading"}

_POD = {"containers": [{"name": "sleep", "image": "busybox", "command": ["sleep", "inf"]}]}


def _template(app: str, **spec: Any) -> Json:
    return {
        "selector": {"matchLabels": {"app": app}},
        "template": {"metadata": {"labels": {"app": app}}, "spec": _POD},
    } | spec


SPECS: dict[str, Json] = {
    "deployments.apps": _template("d"),
    "replicasets.apps": _template("r"),
    "statefulsets.apps": _template("s", serviceName="s"),
    "daemonsets.apps": _template("ds", template={
        "metadata": {"labels": {"app": "ds"}}, "spec": {**_POD, "nodeSelector": {"no": "node"}},
    }),
    "jobs.batch": {"suspend": True, "template": {"spec": {**_POD, "restartPolicy": "Never"}}},
    "services": {"ports": [{"port": 80}]},
    "ingresses.networking.k8s.io": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}},
    "persistentvolumeclaims": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    "clonesets.apps.kruise.io": _template("c"),
}  # fmt: skip
"""A valid `spec` of each kind that needs one."""


def crd(plural: str, group: str, kind: str, version: str, *, namespaced: bool = True, **labels: str) -> Json:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    served = {"name": version, "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    names = {"plural": plural, "singular": plural.removesuffix("s"), "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"{plural}.{group}", "labels": labels},
        "spec": {
            "group": group, "names": names, "scope": "Namespaced" if namespaced else "Cluster", "versions": [served],
        },
    }  # fmt: skip


KINDS = {f"{kind.resource.kind}.{kind.resource.group}".removesuffix("."): kind for kind in PROTECTED_KINDS}
COUNTED = [name for name, kind in KINDS.items() if kind.content and kind.content.field]
UNCOUNTED = [name for name, kind in KINDS.items() if kind.content is None]

FULL_AND_EMPTY: dict[str, tuple[Json, Json, str, str]] = {
    "DaemonSet.apps": (
        {"spec": {"template": {"spec": {"nodeSelector": None}}}},
        {"spec": {"template": {"spec": {"nodeSelector": {"no": "node"}}}}},
        "replicas",
        "let it select no node",
    ),
    "Job.batch": ({"spec": {"suspend": False}}, {"spec": {"suspend": True}}, "active pods", "suspend it"),
    "DaemonSet.apps.kruise.io": (
        {"status": {"desiredNumberScheduled": 2}}, {"status": {"desiredNumberScheduled": 0}},
        "replicas", "let it select no node",
    ),
    "SidecarSet.apps.kruise.io": (
        {"status": {"matchedPods": 2}}, {"status": {"matchedPods": 0}}, "active pods", "let it select no pod",
    ),
}  # fmt: skip
"""Patches after which a deletion would delete pods, and none; what the refusal counts; and the way out."""
REPLICAS = ({"spec": {"replicas": 1}}, {"spec": {"replicas": 0}}, "replicas", "scale it to 0")


class Place:
    """A namespace in which objects are created, and requests to the API server."""

    def __init__(self, kubectl: Kubectl) -> None:
        self.kubectl = kubectl

    def make(self, kind: ProtectedKind, labels: Json, **metadata: Any) -> "Made":
        """Create an object with these labels."""
        made, answer = self.try_to_make(kind, labels, **metadata)
        assert answer["kind"] == kind.resource.kind, answer
        return made

    def try_to_make(self, kind: ProtectedKind, labels: Json, **metadata: Any) -> tuple["Made", Json]:
        """The object, and the answer of the API server."""
        name = f"p-{uuid.uuid4().hex[:8]}"
        obj: Json = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind}
        if kind.resource == CRDS:
            obj = crd("widgets", group := metadata.pop("group", f"{name}.example"), f"Widget{name[2:]}", "v1")
            name = f"widgets.{group}"
        elif kind.resource != NAMESPACES:
            obj["spec"] = SPECS.get(kind.plural, {})
        obj["metadata"] = {"name": name, "labels": labels, **metadata}
        return Made(self.kubectl, kind, name), self.kubectl.create(kind.resource, json.dumps(obj))[1]


@dataclass(frozen=True)
class Made:
    """An object that was created."""

    kubectl: Kubectl
    kind: ProtectedKind
    name: str

    @property
    def namespace(self) -> str:
        return self.kubectl.namespace if self.kind.resource.namespaced else ""

    @property
    def shown(self) -> str:
        return f"{self.kind.resource.kind} " + "/".join(filter(None, (self.namespace, self.name)))

    def request(self, method: str, body: Json | None = None, *, subresource: str = "", query: str = "") -> "Answer":
        path = self.kind.resource.path(self.namespace, self.name, subresource) + query
        type_ = "merge-patch+json" if method == "PATCH" else "json"
        return Answer(*self.kubectl.request(method, path, body, type_))

    def delete(self, query: str = "", **options: Any) -> "Answer":
        return self.request("DELETE", options or None, query=query)

    def patch(self, patch: Json) -> None:
        """Patch the object, or its status. It must succeed."""
        answer = self.request("PATCH", patch, subresource="status" if "status" in patch else "")
        assert answer.status == 200, answer

    def label(self, **labels: str | None) -> "Answer":
        return self.request("PATCH", {"metadata": {"labels": labels}})

    def exists(self) -> bool:
        return self.request("GET").status == 200

    def gone(self) -> None:
        """Wait until the object is deleted, or at least terminating."""
        found = self.request("GET")
        assert found.status == 404 or found.body["metadata"].get("deletionTimestamp"), found

    def denial(self, policy: str, text: str, *, name: str | None = None) -> str:
        """The whole message of the API server. `name`: that of the request."""
        own = f"altershield-{policy}"
        return (
            f'{self.kind.plural} "{self.name if name is None else name}" is forbidden: '
            f"ValidatingAdmissionPolicy '{own}' with binding '{own}' denied request: {text}"
        )

    def text(self, level: str, counted: str, reason: str, way_out: str, *labels: str) -> str:
        """The words of a refusal."""
        where = f" -n {self.namespace}" if self.namespace else ""
        keys = " ".join(f"{key}-" for key in labels or (LABEL,))
        return (
            f"forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection={level}{counted}; "
            f"{self.shown} is protected from deletion{reason}, see {PROTECT}; {way_out}take the label off: "
            f"kubectl label {self.kind.plural} {self.name}{where} {keys}"
        )


@dataclass(frozen=True)
class Answer:
    status: int
    body: Json

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


def policy(kind: ProtectedKind) -> str:
    """The policy that protects a kind."""
    family = "protect-kruise-" if kind.resource.group == KRUISE else "protect-"
    if kind.content and kind.content.field[-1:] == ("replicas",):
        return f"{family}replicas"
    return family + (kind.resource.plural if kind.content and kind.content.field else "objects")


Command = Callable[..., Done]


@pytest.fixture
def altershield(installed: Path, capfd: pytest.CaptureFixture[str]) -> Command:
    """`altershield ARGUMENTS`."""
    return lambda *words: call(main, "altershield", *words, f"--kubeconfig={installed}", capture=capfd)


@pytest.fixture(scope="module")
def place(installed: Path) -> Iterator[Place]:
    kubectl = Kubectl(installed, f"protect-{uuid.uuid4().hex[:8]}")
    kubectl("create", "namespace", kubectl.namespace)
    resources = [kind.resource for kind in PROTECTED_KINDS if kind.resource.group == KRUISE]
    made = []
    for each in resources:
        wanted = crd(each.plural, KRUISE, each.kind, each.version, namespaced=each.namespaced)
        status, answer = kubectl.create(CRDS, json.dumps(wanted))
        assert status in (201, 409), answer  # 409: the cluster has OpenKruise, or a part of it
        made += [wanted["metadata"]["name"]] if status == 201 else []
    for each in resources:
        path = each.path(kubectl.namespace if each.namespaced else "")
        eventually(lambda path=path: kubectl.request("GET", path)[0] == 200, f"the API server to serve {path}")
    yield Place(kubectl)
    kubectl.delete_namespaces()
    for name in made:
        kubectl("delete", "crd", name, "--wait=false")


@pytest.mark.parametrize("name", KINDS)
def test_always_refuses_the_deletion_whatever_its_options_until_the_label_is_off(place: Place, name: str) -> None:
    kind = KINDS[name]
    made = place.make(kind, ALWAYS, annotations={REASON: "it serves all shops"})
    wanted = made.denial(
        policy(kind), made.text("Always", "", ' (reason: "it serves all shops")', "")
    )  # fmt: skip
    for answer in (
        made.delete(),
        made.delete(query="?dryRun=All"),
        made.delete(propagationPolicy="Orphan"),
        made.delete(propagationPolicy="Foreground"),
    ):
        assert (answer.status, answer.body.get("reason"), answer.message) == (403, "Forbidden", wanted)
    assert made.label(**{LABEL: None}).status == 200
    assert made.delete().status in (200, 202)
    made.gone()


@pytest.mark.parametrize("name", COUNTED)
def test_cascading_refuses_the_deletion_while_pods_would_be_deleted_too(place: Place, name: str) -> None:
    kind = KINDS[name]
    full, empty, noun, way_out = FULL_AND_EMPTY.get(name, REPLICAS)
    made = place.make(kind, CASCADING)
    made.patch(full)

    eventually(lambda: made.delete(query="?dryRun=All").status == 403, "the deletion to be refused")
    answer = made.delete()
    counted = re.search(rf" and {noun} [1-9]\d*>0", answer.message)
    assert counted is not None, answer
    assert answer.message == made.denial(policy(kind), made.text("Cascading", counted[0], "", f"{way_out} first, or "))
    assert made.delete(propagationPolicy="Orphan").status == 403
    made.patch(empty)
    eventually(lambda: made.delete(query="?dryRun=All").status == 200, "the deletion to be allowed")
    assert made.delete().status in (200, 202)
    made.gone()


@pytest.mark.parametrize("name", UNCOUNTED)
def test_cascading_warns_on_a_kind_with_which_nothing_is_deleted(place: Place, name: str) -> None:
    made, answer = place.try_to_make(KINDS[name], CASCADING)
    assert answer["warnings"] == [
        "Validation failed for ValidatingAdmissionPolicy 'altershield-protect-warnings' with binding "
        "'altershield-protect-warnings': policy.kruise.io/delete-protection=Cascading does not protect "
        f"{made.shown}: no other object is deleted together with it; use Always"
    ]
    again = made.label(team="shop")
    assert (again.status, again.body.get("warnings")) == (200, None)
    assert made.delete().status in (200, 202)


def test_label_of_the_first_proposal_means_cascading_and_the_stricter_label_wins(place: Place) -> None:
    made = place.make(KINDS["Deployment.apps"], {SEEDED: "true"})
    text = made.text("Cascading", " and replicas 1>0", "", "scale it to 0 first, or ", SEEDED)
    assert made.delete().message == made.denial("protect-replicas", text)
    assert made.label(**{LABEL: "Always"}).status == 200
    assert made.delete().message == made.denial("protect-replicas", made.text("Always", "", "", "", LABEL, SEEDED))
    assert made.label(**{LABEL: None, SEEDED: None}).status == 200
    assert made.delete().status == 200


WRONG = {LABEL: ("always", "", "true", "None"), SEEDED: ("false", "True", "")}


@pytest.mark.parametrize(("label", "value"), [(label, value) for label, values in WRONG.items() for value in values])
def test_other_values_of_the_labels_are_refused_when_they_are_set(place: Place, label: str, value: str) -> None:
    kind = KINDS["Deployment.apps"]
    made, answer = place.try_to_make(kind, {label: value})
    allowed = "Always or Cascading" if label == LABEL else '"true"'
    text = f'the label {label} of {made.shown} must be {allowed}, not "{value}"'
    assert (answer["code"], answer["message"]) == (403, made.denial("protect-labels", text))
    changed = place.make(kind, {})
    assert f'must be {allowed}, not "{value}"' in changed.label(**{label: value}).message
    assert changed.delete().status == 200


def made_or_none(place: Place, labels: Json) -> Made | None:
    """A Service with these labels; None if the API server refuses it."""
    made, answer = place.try_to_make(KINDS["Service"], labels)
    return made if answer["kind"] == "Service" else None


def test_other_values_stay_where_they_stand(place: Place) -> None:
    binding = ("validatingadmissionpolicybinding", "altershield-protect-labels")
    kubectl = place.kubectl
    kept = kubectl.json(*binding)
    kubectl("delete", *binding)
    try:
        made = eventually(lambda: made_or_none(place, {LABEL: "yes"}), "the policy to end")
    finally:
        head = {key: kept["metadata"][key] for key in ("name", "labels")}
        kubectl("create", "-f", "-", stdin=json.dumps({**kept, "metadata": head}))
    eventually(lambda: made_or_none(place, {LABEL: "yes"}) is None, "the policy to be in force")
    assert made is not None
    assert made.label(team="shop").status == 200
    assert made.label(**{LABEL: "no"}).status == 403
    assert made.delete().status == 200, "it protects nothing"


def test_cascading_needs_the_permission_to_list_custom_resources(place: Place) -> None:
    kind = KINDS["CustomResourceDefinition.apiextensions.k8s.io"]
    made, answer = place.try_to_make(kind, CASCADING)
    group = made.name.removeprefix("widgets.")
    assert answer["message"] == made.denial(
        "protect-groups",
        f"policy.kruise.io/delete-protection=Cascading cannot protect CustomResourceDefinition {made.name}: "
        f"AlterShield may not list its custom resources; add the group {group} to the value "
        "protection.deletion.customResourceGroups of the chart, or use Always",
    )
    changed = place.make(kind, ALWAYS)
    assert changed.label(**CASCADING).status == 403
    assert changed.label(**{LABEL: None, SEEDED: "true"}).status == 403
    assert changed.label(**{LABEL: None}).status == 200
    assert changed.delete().status == 200
    own = place.make(kind, CASCADING, group="app.ops.cloud.alipay.com")
    assert own.label(team="shop").status == 200
    assert own.label(**{LABEL: None}).status == 200
    assert own.delete().status == 200


HOSTILE = {
    "line breaks": ("a\nb\r\nc\u2028d\u2029e\x85f", "a b  c d e f"),
    "of a terminal": ("\x1b[31mred\x07", "[31mred"),
    "of the direction of writing": ("a\u202eb\u200fc", "a b c"),
    "quotes and braces": ('\'; "{}" + \\n %s', '\'; "{}" + \\n %s'),
    "256 characters": ("€" * 256, "€" * 256),
    "257 characters": ("€" * 257, "€" * 256 + "…"),
    "100 kB": ("x" * 100_000, "x" * 256 + "…"),
    "null": ("a\x00b", "a b"),
    "spaces": (" \t\n ", ""),
    "emoji": ("\U0001f512 locked", "\U0001f512 locked"),
}


def test_hostile_reasons_are_quoted_in_one_line_of_bounded_length(place: Place) -> None:
    kind = KINDS["Deployment.apps"]
    made = place.make(kind, ALWAYS)
    for case, (reason, quoted) in HOSTILE.items():
        made.patch({"metadata": {"annotations": {REASON: reason}}})
        text = made.text("Always", "", f' (reason: "{quoted}")' if quoted else "", "")
        assert made.delete().message == made.denial("protect-replicas", text), case
        assert quotable(reason) == quoted, case
    assert made.label(**{LABEL: None}).status == 200
    assert made.delete().status == 200


def test_replace_may_drop_the_label_but_not_delete_the_object(place: Place) -> None:
    made = place.make(KINDS["Deployment.apps"], ALWAYS)
    obj = made.request("GET").body
    manifest = json.dumps(obj)
    done = place.kubectl.run("replace", "--force", "-f", "-", stdin=manifest)
    assert "forbidden by ResourcesProtectionDeletion" in done.stderr
    assert made.request("GET").body["metadata"]["uid"] == obj["metadata"]["uid"]
    del obj["metadata"]["labels"], obj["metadata"]["resourceVersion"]
    place.kubectl("replace", "-f", "-", stdin=json.dumps(obj))
    assert made.delete().status == 200


def test_deletion_of_a_collection_ends_at_the_protected_object_and_names_it(place: Place) -> None:
    kind = KINDS["Ingress.networking.k8s.io"]
    made = place.make(kind, ALWAYS | {"team": "collected"})
    path = kind.resource.path(place.kubectl.namespace) + "?labelSelector=team%3Dcollected"
    answer = Answer(*place.kubectl.request("DELETE", path))
    wanted = made.denial("protect-objects", made.text("Always", "", "", ""), name="Unknown")
    assert (answer.status, answer.message) == (403, wanted)
    assert made.label(**{LABEL: None}).status == 200
    assert place.kubectl.request("DELETE", path)[0] == 200
    made.gone()


def test_terminating_object_may_be_deleted_again_and_changed(place: Place) -> None:
    made = place.make(KINDS["Deployment.apps"], {}, finalizers=["example.com/held"])
    assert made.delete().status == 200
    assert made.label(**ALWAYS).status == 200
    assert made.delete().status == 200
    assert made.label(**{LABEL: None}).status == 200
    made.patch({"metadata": {"finalizers": None}})
    assert made.request("GET").status == 404


def test_protected_child_stays_until_its_label_is_off(place: Place, altershield: Command) -> None:
    """The garbage collector and the namespace controller are refused like everybody else, and try again."""
    kubectl = Kubectl(place.kubectl.kubeconfig, f"{place.kubectl.namespace}-2")
    kubectl("create", "namespace", kubectl.namespace)
    inside, ingresses = Place(kubectl), KINDS["Ingress.networking.k8s.io"]
    parent = inside.make(KINDS["Service"], {})
    uid = parent.request("GET").body["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Service", "name": parent.name, "uid": uid}
    child, other = (inside.make(ingresses, each, ownerReferences=[owner]) for each in (ALWAYS, {}))
    shown = functools.partial(altershield, "protected", "--stays", f"--namespace={kubectl.namespace}", "-ojson")
    assert (shown().returncode, json.loads(shown().stdout)["items"]) == (0, [])
    assert parent.delete(propagationPolicy="Background").status == 200
    eventually(lambda: not other.exists(), "the garbage collector to delete the other child")
    assert child.exists()
    done = shown()
    (item,) = json.loads(done.stdout)["items"]
    wanted = f"its owner Service {parent.name} is deleted"
    assert (done.returncode, item["name"], item["stays"]) == (3, child.name, wanted)
    assert child.label(**{LABEL: None}).status == 200
    eventually(lambda: not child.exists(), "the garbage collector to delete the child")

    last, other = inside.make(KINDS["Deployment.apps"], CASCADING), inside.make(KINDS["Service"], {})
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
    eventually(lambda: not other.exists(), "the namespace controller to delete the Service")
    assert last.exists()
    (item,) = json.loads(shown().stdout)["items"]
    assert (item["name"], item["stays"]) == (last.name, f"its Namespace {kubectl.namespace} is terminating")
    assert altershield("unprotect", f"deploy/{last.name}", f"--namespace={kubectl.namespace}").returncode == 0
    eventually(lambda: not kubectl.exists("namespace", kubectl.namespace), "the namespace controller to end")


def test_protect_unprotect_and_protected(place: Place, altershield: Command) -> None:
    namespace = f"--namespace={place.kubectl.namespace}"
    made, service = (place.make(KINDS[kind], {}) for kind in ("Deployment.apps", "Service"))
    done = altershield("protect", f"deploy/{made.name}", f"svc/{service.name}", namespace, "--reason=all shops")
    assert (done.returncode, done.stderr) == (0, "")
    names = f"deployment.apps/{made.name}", f"service/{service.name}"
    assert done.stdout.splitlines() == [f"{name} is protected: Always" for name in names]
    assert ' (reason: "all shops")' in made.delete().message
    done = altershield("protect", f"deployment.v1.apps/{made.name}", namespace, "--level=Cascading", "-o=json")
    assert (done.returncode, done.stderr) == (0, f"{names[0]} is protected: Cascading\n")
    assert json.loads(done.stdout)["metadata"]["labels"] == CASCADING

    done = altershield("protected", namespace)
    rows = [re.split(" {2,}", line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, "")
    assert rows[0] == ["NAMESPACE", "NAME", "LEVEL", "DELETION", "REASON", "STAYS"]
    where = place.kubectl.namespace
    assert [where, names[0], "Cascading", "refused: replicas 1", "all shops"] in rows
    assert [where, names[1], "Always", "refused", "all shops"] in rows
    place.kubectl("scale", "deployment", made.name, "--replicas=0")
    items = json.loads(altershield("protected", namespace, "-o", "json").stdout)["items"]
    (item,) = [item for item in items if item["name"] == made.name]
    assert (item["deletion"], item["because"]) == ("allowed", "replicas 0")
    assert names[1] in altershield("protected", namespace, "-o=name").stdout.splitlines()
    assert "crd/changepods" not in altershield("protected", namespace, "-o=name").stdout
    everything = altershield("protected", "-A", "-o=name").stdout.splitlines()
    assert "customresourcedefinition.apiextensions.k8s.io/changepods.app.ops.cloud.alipay.com" in everything

    done = altershield("unprotect", f"deploy/{made.name}", f"svc/{service.name}", namespace)
    assert done.stdout.splitlines() == [f"{name} is not protected" for name in names]
    assert made.delete().status == 200
    assert "annotations" not in service.request("GET").body["metadata"]
    for wrong, text in (
        (
            ("protect", "pod/web"),
            '"pod/web" cannot be protected; write TYPE/NAME or TYPE NAME, where TYPE is one of: deployment,',
        ),
        (("protect", "deploy"), '"deploy" cannot be protected'),
        (("protect", "svc/web", "--level=Cascading"), "Cascading does not protect service/web: no other object"),
        (("protect", "svc/web", f"--reason={'x' * 257}"), "the reason has 257 characters"),
    ):
        done = altershield(*wrong, namespace)
        assert (done.returncode, done.stderr.startswith(f"error: {text}")) == (2, True), done.stderr
    done = altershield("protect", "deploy/none", namespace)
    missing = f'error: deployment.apps/none not found in namespace "{place.kubectl.namespace}"; check the name, or set'
    assert (done.returncode, done.stderr) == (1, f"{missing} another namespace with -n\n")


def test_lock_lets_only_users_with_the_verb_unprotect_take_the_label_off(place: Place) -> None:
    kubectl, kind = place.kubectl, KINDS["Deployment.apps"]
    locks = [each for each in deletion_policies(lock=True) if each["metadata"]["name"].endswith(LOCK)]
    made = place.make(kind, CASCADING)
    namespace = f"--namespace={kubectl.namespace}"
    kubectl("create", "rolebinding", "edit", "--clusterrole=admin", "--user=dev", "--user=lead", namespace)
    kubectl("create", "role", "lead", "--verb=unprotect", "--resource=deployments.apps", namespace)
    kubectl("create", "rolebinding", "lead", "--role=lead", "--user=lead", namespace)
    dev, lead = (Kubectl(kubectl.kubeconfig, kubectl.namespace, f"--as={user}") for user in ("dev", "lead"))
    where = ("label", "deployment", made.name)
    manifest = json.dumps({"items": locks, "kind": "List", "apiVersion": "v1"})
    kubectl("apply", "-f", "-", stdin=manifest)
    try:
        refused = eventually(
            lambda: dev.run(*where, f"{LABEL}-", "--dry-run=server").stderr, "the lock to be in force"
        )  # fmt: skip
        text = (
            f"{made.shown} is protected from deletion by policy.kruise.io/delete-protection=Cascading; to take the "
            "protection off or to weaken it, you need the RBAC verb unprotect on deployments.apps"
        )
        assert made.denial(LOCK, text) in refused
        assert dev.run(*where, "--overwrite", f"{LABEL}=Always").returncode == 0
        assert dev.run(*where, "--overwrite", f"{LABEL}=Cascading").returncode == 1, "it is weaker"
        assert dev.run(*where, "team=shop").returncode == 0
        obj = made.request("GET").body
        del obj["metadata"]["labels"]
        assert LOCK in dev.run("replace", "-f", "-", stdin=json.dumps(obj)).stderr
        assert lead.run(*where, f"{LABEL}-").returncode == 0
    finally:
        kubectl("delete", "-f", "-", stdin=manifest)
    assert made.delete().status == 200
