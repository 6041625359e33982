"""After a rollback, nothing of the version that was rolled back is left for any client.

v2 removes a variable and a container, and is rolled back to v1. v3 is v2 with another image.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import helm_python
import pytest
import yaml

from tests.e2e.kinds import CLONE_SET, CLONE_SET_IN_PLACE, DAEMON_SET, DEPLOYMENT, ORDERED, PARALLEL, Kind, container
from tests.e2e.story import NAME, Story, StoryResults, running_stories
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually
from tests.support.processes import python

pytestmark = pytest.mark.xdist_group("stories")

SERVER_SIDE = ("--server-side",)
FORCED = ("--server-side", "--force-conflicts", "--field-manager=kustomize-controller")
VARIABLES = [{"name": "LEGACY", "value": "1"}, {"name": "REGION", "value": "eu"}]

Apply = Callable[[Kubectl, Json], str]
"""Applies a manifest as one client does, and returns the message of a denial; empty if it was admitted."""
Return = Callable[[Story, str, str], None]
"""Rolls the version of the second argument back to that of the third, by one way."""


def v1(story: Story) -> Json:
    containers = [container("busybox:1", env=VARIABLES), {"name": "metrics-agent", "image": "busybox:agent"}]
    return story.kind.manifest(NAME, "", pod={"containers": containers})


def without_legacy(story: Story, image: str) -> Json:
    return story.kind.manifest(NAME, "", pod={"containers": [container(image, env=VARIABLES[1:])]})


def with_kubectl(*options: str) -> Apply:
    def apply(kubectl: Kubectl, manifest: Json) -> str:
        done = kubectl.run("apply", *options, "-f", "-", stdin=json.dumps(manifest))
        return done.stderr if done.returncode else ""

    return apply


def with_helm(directory: Path) -> Apply:
    """With the Helm engine of this machine, which uses server-side apply."""

    def apply(kubectl: Kubectl, manifest: Json) -> str:
        chart = directory / kubectl.namespace / NAME
        (chart / "templates").mkdir(parents=True, exist_ok=True)
        (chart / "Chart.yaml").write_text(yaml.safe_dump({"apiVersion": "v2", "name": NAME, "version": "1.0.0"}))
        (chart / "templates" / "workload.yaml").write_text(yaml.safe_dump(manifest))
        helm = helm_python.Config(kubeconfig_path=kubectl.kubeconfig, namespace=kubectl.namespace)
        first = not helm.list(all_states=True)
        try:
            (helm.install if first else helm.upgrade)(str(chart), NAME, {}, timeout=60)
        except helm_python.HelmError as error:
            return str(error)
        return ""

    return apply


def automatically(story: Story, failed: str, good: str) -> None:
    story.until(failed, "Failed")


def on_request(story: Story, failed: str, good: str) -> None:
    _request(story, failed, {"status": "Rollback"})


def to_a_version(story: Story, failed: str, good: str) -> None:
    _request(story, failed, {"status": "Rollback", "rollbackTo": good})


def _request(story: Story, failed: str, status: Json) -> None:
    story.until(failed, "Running")
    name = story.kind.change_workload_name(NAME, failed)
    answer = story.kubectl.merge("changeworkload", name, {"status": status}, "status")
    assert answer[0] == 200, answer
    story.until(failed, "Failed")


def goes_back_without_a_trace(apply: Apply, options: tuple[str, ...], go_back: Return) -> Callable[[Story], None]:
    def story_of(story: Story) -> None:
        kubectl, kind = story.kubectl, story.kind
        old, bad, fixed = v1(story), without_legacy(story, "nosuch:1"), without_legacy(story, "busybox:3")
        assert apply(kubectl, old) == ""
        good = story.version()
        story.until(good, "Success")
        before = template(story)
        assert_no_difference(kubectl, old, options)

        assert apply(kubectl, bad) == ""
        failed = story.version()
        assert failed != good
        go_back(story, failed, good)
        assert story.version() == good
        assert template(story) == before
        assert_no_difference(kubectl, old, options)
        owners = [
            each["manager"] for each in managed_fields(story) if "f:template" in each["fieldsV1"].get("f:spec", {})
        ]
        assert "altershield" not in owners
        denied = apply(kubectl, bad)
        assert f"version {failed} (" in denied
        assert ") was rolled back" in denied
        story.until(good, "Success")

        assert apply(kubectl, fixed) == ""
        done = story.until(story.version(), "Success")
        assert template(story) == as_created(kubectl, kind.resource, fixed)
        assert_no_difference(kubectl, fixed, options)
        assert done.condition("RestoredFields") == {}

    return story_of


def fields_are_left_to_a_client_with_a_record_of_its_own(story: Story) -> None:
    """Helm 3 sends the difference between its last manifest, that of v2, and v3: the image."""
    kubectl, resource = story.kubectl, story.kind.resource
    kubectl("create", "--field-manager=helm", "-f", "-", stdin=json.dumps(v1(story)))
    good = story.version()
    story.until(good, "Success")
    removal = {"env": [{"name": "LEGACY", "$patch": "delete"}], "name": "main", "image": "nosuch:1"}
    send(story, {"containers": [removal, {"name": "metrics-agent", "$patch": "delete"}]})
    failed = story.version()
    automatically(story, failed, good)
    story.until(good, "Success")

    left = "spec.containers[main].env[LEGACY]", "spec.containers[metrics-agent]"
    warnings = send(story, {"containers": [{"name": "main", "image": "busybox:3"}]})
    assert f"still has fields that version {failed} had removed and that its rollback brought back" in warnings
    assert all(f"this field is still there: {path}" in warnings for path in left)
    condition = story.until(story.version(), "Success").condition("RestoredFields")
    assert all(path in condition["message"] for path in left)
    events = kubectl.json("events", "--field-selector=reason=RestoredFieldsLeft")["items"]
    assert [each["involvedObject"]["name"] for each in events] == [NAME]
    where = ("-n", kubectl.namespace, "--kubeconfig", str(kubectl.kubeconfig))
    shown = python("command", "why", f"{resource}/{NAME}", *where).stdout
    assert f"Fields:    {condition['message']}" in shown


def send(story: Story, pod: Json) -> str:
    """Patch the pods' spec as Helm 3 does, and return the warnings."""
    patch = json.dumps({"spec": {"template": {"spec": pod}}})
    words = ("patch", story.kind.resource, NAME, "--type=strategic", "--field-manager=helm", "-p", patch)
    done = story.kubectl.run(*words)
    assert done.returncode == 0, done.stderr
    return done.stderr


def assert_no_difference(kubectl: Kubectl, manifest: Json, options: tuple[str, ...]) -> None:
    """kubectl reads the object twice, so a label of AlterShield that is written in between is a difference, once."""

    def equal() -> bool:
        return kubectl.run("diff", *options, "-f", "-", stdin=json.dumps(manifest)).returncode == 0

    eventually(equal, f"no difference to {json.dumps(manifest)}")


def template(story: Story) -> Json:
    """The pod template without the labels of AlterShield."""
    return without_labels(story.get()["spec"]["template"])


def without_labels(found: Json) -> Json:
    own = {key: value for key, value in found["metadata"]["labels"].items() if "antgroup" not in key}
    return {**found, "metadata": {**found["metadata"], "labels": own}}


def as_created(kubectl: Kubectl, resource: str, manifest: Json) -> Json:
    """The pod template of a new workload with this manifest, with the API server's defaults."""
    new = {**manifest, "metadata": {**manifest["metadata"], "name": "twin"}}
    done = kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(new))
    return without_labels(json.loads(done)["spec"]["template"])


def managed_fields(story: Story) -> list[Json]:
    found = story.kubectl("get", story.kind.resource, NAME, "-o", "json", "--show-managed-fields")
    entries: list[Json] = json.loads(found)["metadata"]["managedFields"]
    return entries


CLIENTS: dict[str, tuple[Callable[[Path], Apply], tuple[str, ...]]] = {
    "apply": (lambda _: with_kubectl(), ()),
    "server-side": (lambda _: with_kubectl(*SERVER_SIDE), SERVER_SIDE),
    "controller": (lambda _: with_kubectl(*FORCED), FORCED),
    "helm": (with_helm, ("--server-side", "--field-manager=helm")),
}
WAYS = {"automatic": automatically, "requested": on_request, "to-a-version": to_a_version}
TABLE = [
    *((client, way, DEPLOYMENT) for client in CLIENTS for way in WAYS),
    *((client, "automatic", kind) for client in CLIENTS for kind in (ORDERED, DAEMON_SET, CLONE_SET)),
    *(
        (client, way, kind)
        for client in ("apply", "server-side")
        for way in ("requested",)
        for kind in (PARALLEL, CLONE_SET_IN_PLACE)
    ),
]


OWN_RECORD = "record-of-its-own"


def _name(client: str, way: str, kind: Kind) -> str:
    return f"{client}-{way}-{kind.id}"


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest, installed: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StoryResults]:
    charts = tmp_path_factory.mktemp("charts")
    stories: dict[str, tuple[Callable[[Story], None], Any]] = {}
    for client, way, kind in TABLE:
        make, options = CLIENTS[client]
        stories[_name(client, way, kind)] = goes_back_without_a_trace(make(charts), options, WAYS[way]), kind
    stories[OWN_RECORD] = fields_are_left_to_a_client_with_a_record_of_its_own, DEPLOYMENT
    with running_stories(request, installed, stories) as results:
        yield results


@pytest.mark.parametrize("name", [*(_name(*row) for row in TABLE), OWN_RECORD])
def test_next_release_equals_its_manifest(results: StoryResults, name: str) -> None:
    if name not in results:
        pytest.skip("the cluster has no CloneSets")
    results[name].result()
