"""A rollback from any template to any other one leaves nothing for the next release, whichever clients are in use."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from altershield.workloads.applied import LAST_APPLIED, OWN_MANAGER, last_applied, managed_fields, of
from altershield.workloads.deployments import Deployments
from tests.support.kubectl import Json, Kubectl

FORCED = ("--server-side", "--force-conflicts")  # without force, the change from another client is a conflict
CLIENTS = ((), FORCED, (*FORCED, "--field-manager=flux"))
PATH = "/apis/apps/v1/namespaces/{}/deployments/{}"


@st.composite
def templates(draw: st.DrawFn) -> Json:
    """A pod template whose fields each may be missing: scalars, maps, lists with merge keys, and lists without."""

    def maybe(**fields: Any) -> Json:
        return fields if draw(st.booleans()) else {}

    variables = draw(st.dictionaries(st.sampled_from("XYZ"), st.sampled_from("12"), max_size=3))
    main = {
        "name": "main",
        "image": f"busybox:{draw(st.sampled_from('123'))}",
        **({"env": [{"name": name, "value": value} for name, value in variables.items()]} if variables else {}),
        **maybe(command=["sleep", draw(st.sampled_from(("1", "2")))]),
        **maybe(ports=[{"containerPort": 80}]),
        **maybe(volumeMounts=[{"name": "data", "mountPath": "/data"}]),
        **maybe(resources={"requests": {"cpu": "1m"}}),
    }
    containers = [main, *([{"name": "agent", "image": "busybox:agent"}] if draw(st.booleans()) else [])]
    nodes = draw(st.dictionaries(st.sampled_from(("a", "b")), st.just("x")))
    return {
        "metadata": {"labels": {"app": "app", **maybe(team="one")}, **maybe(annotations={"note": "1"})},
        "spec": {
            "containers": containers,
            "volumes": [{"name": "data", "emptyDir": {}}],
            **maybe(terminationGracePeriodSeconds=5),
            **({"nodeSelector": nodes} if nodes else {}),
            **maybe(tolerations=[{"operator": "Exists"}]),
        },
    }


def apply(kubectl: Kubectl, client: tuple[str, ...], name: str, template: Json) -> None:
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "app"}}, "template": template}
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    done = kubectl.run("apply", *client, "-f", "-", stdin=json.dumps(manifest))
    assert done.returncode == 0, done.stderr


def read(kubectl: Kubectl, name: str) -> Json:
    status, found = kubectl.request("GET", PATH.format(kubectl.namespace, name))
    assert status == 200, found
    return found


def owners(obj: Json) -> tuple[Json | None, set[str]]:
    """What clients stored about the template. The API server sorts the managers by time."""
    applied = of(obj)
    assert applied is not None
    owning = (each for each in applied.managers if each.template is not None)
    return applied.template, {
        json.dumps([each.manager, each.operation, each.template], sort_keys=True) for each in owning
    }


def patch(kubectl: Kubectl, name: str, operations: list[Json]) -> None:
    path = f"{PATH.format(kubectl.namespace, name)}?fieldManager={OWN_MANAGER}"
    status, found = kubectl.request("PATCH", path, operations, "json-patch+json")
    assert status == 200, found


def go_back(kubectl: Kubectl, name: str, older: Json) -> None:
    """The two writes of a rollback."""
    applied = of(older)
    assert applied is not None
    operations = Deployments().release(older["spec"]["template"])
    manifest = last_applied(read(kubectl, name), applied)
    if manifest is not None:
        annotations = {**(read(kubectl, name)["metadata"].get("annotations") or {}), LAST_APPLIED: manifest}
        operations.append({"op": "add", "path": "/metadata/annotations", "value": annotations})
    patch(kubectl, name, operations)
    entries = managed_fields(read(kubectl, name), applied)
    if entries is not None:
        patch(kubectl, name, [{"op": "replace", "path": "/metadata/managedFields", "value": entries}])


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(a=templates(), b=templates(), c=templates(), clients=st.tuples(*[st.sampled_from(CLIENTS)] * 3))
def test_release_after_a_rollback_equals_the_release_without_it(
    space: Kubectl, clients: tuple[tuple[str, ...], ...], a: Json, b: Json, c: Json
) -> None:
    first, second, third = clients
    for name in ("app", "twin"):
        space("delete", "deployment", name, "--ignore-not-found")
        apply(space, first, name, a)
    older = read(space, "app")
    apply(space, second, "app", b)
    go_back(space, "app", older)
    assert managed_fields(read(space, "app"), of(older)) is None, "nothing is left to restore"
    assert read(space, "app")["spec"]["template"] == older["spec"]["template"]
    assert owners(read(space, "app")) == owners(older)
    for name in ("app", "twin"):
        apply(space, third, name, c)
    assert read(space, "app")["spec"]["template"] == read(space, "twin")["spec"]["template"]
