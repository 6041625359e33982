"""kubectl get, describe, explain and the other commands that only read."""

import json
import re
import subprocess

import pytest
import yaml

from conformance.manifests import config_map, deployment, text
from support.kubectl import Kubectl
from support.polling import eventually


@pytest.fixture(scope="module")
def web(space: Kubectl) -> Kubectl:
    """kubectl in a namespace with a Deployment `web` of two ready pods."""
    space("apply", "-f", "-", stdin=text(deployment("web", replicas=2)))
    space("rollout", "status", "deployment/web")
    return space


def rows(table: str) -> list[list[str]]:
    return [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "header"),
    [
        ("deployments", "NAME READY UP-TO-DATE AVAILABLE AGE"),
        ("deployments -o wide", "NAME READY UP-TO-DATE AVAILABLE AGE CONTAINERS IMAGES SELECTOR"),
        ("replicasets", "NAME DESIRED CURRENT READY AGE"),
        ("replicasets -o wide", "NAME DESIRED CURRENT READY AGE CONTAINERS IMAGES SELECTOR"),
        ("pods", "NAME READY STATUS RESTARTS AGE"),
        ("pods -o wide", "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES"),
        ("pods --show-labels", "NAME READY STATUS RESTARTS AGE LABELS"),
        ("pods -L app", "NAME READY STATUS RESTARTS AGE APP"),
        ("pods -A", "NAMESPACE NAME READY STATUS RESTARTS AGE"),
        ("namespaces", "NAME STATUS AGE"),
        ("nodes", "NAME STATUS ROLES AGE VERSION"),
        ("serviceaccounts", None),
        ("configmaps", "NAME DATA AGE"),
        ("events", "LAST SEEN TYPE REASON OBJECT MESSAGE"),
        ("customresourcedefinitions -A", None),
        ("clusterroles", "NAME CREATED AT"),
        ("clusterrolebindings", "NAME ROLE AGE"),
    ],
)
def test_get_prints_the_columns_of_each_kind(web: Kubectl, arguments: str, header: str | None) -> None:
    done = web.run("get", *arguments.split())
    assert done.returncode == 0, done.stderr
    if header is not None:
        assert " ".join(done.stdout.splitlines()[0].split()) == header


def test_get_prints_the_rows_of_a_deployment_and_its_pods(web: Kubectl) -> None:
    assert rows(web("get", "deployment", "web", "-o", "wide", "--no-headers"))[0][:4] == ["web", "2/2", "2", "2"]
    pods = rows(web("get", "pods", "-l", "app=web", "--no-headers"))
    assert [pod[1:4] for pod in pods] == [["1/1", "Running", "0"]] * 2
    everything = web("get", "all")
    for prefix in ("pod/web-", "deployment.apps/web", "replicaset.apps/web-"):
        assert prefix in everything


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("app=web", 2),
        ("app==web", 2),
        ("app in (web,other)", 2),
        ("app notin (web)", 0),
        ("app", 2),
        ("!app", 0),
        ("app!=web", 0),
        ("app=web,pod-template-hash", 2),
    ],
)
def test_get_with_a_label_selector_prints_the_matching_pods(web: Kubectl, selector: str, found: int) -> None:
    names = web("get", "pods", "-l", selector, "-o", "name").split()
    assert len([name for name in names if name.startswith("pod/web-")]) == found


def test_get_with_a_field_selector_prints_the_matching_pods(web: Kubectl) -> None:
    def names(selector: str) -> set[str]:
        return set(web("get", "pods", "--field-selector", selector, "-o", "name").split())

    one = sorted(names("status.phase=Running"))[0]
    assert len(names("status.phase=Running")) == 2
    assert names("status.phase!=Running") == set()
    assert names(f"metadata.name={one.partition('/')[2]}") == {one}
    node = web("get", one, "-o", "jsonpath={.spec.nodeName}")
    assert one in names(f"spec.nodeName={node}")
    refused = web.run("get", "pods", "--field-selector", "spec.hostname=x")
    assert "field label not supported: spec.hostname" in refused.stderr


def test_get_supports_each_output_format(web: Kubectl) -> None:
    obj = web.json("deployment", "web")
    assert obj["kind"] == "Deployment"
    assert "managedFields" not in obj["metadata"]
    assert yaml.safe_load(web("get", "deployment", "web", "-o", "yaml"))["metadata"]["uid"] == obj["metadata"]["uid"]
    assert web("get", "deployment", "web", "-o", "name") == "deployment.apps/web\n"
    assert web("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "2"
    columns = "custom-columns=N:.metadata.name,R:.status.readyReplicas"
    assert rows(web("get", "deployments", "-o", columns)) == [["N", "R"], ["web", "2"]]
    assert web("get", "deployment", "web", "-o", "go-template={{.metadata.name}}") == "web"
    assert json.loads(web("get", "--raw", f"/apis/apps/v1/namespaces/{web.namespace}/deployments/web"))["spec"]
    assert json.loads(web("get", "deployments", "-o", "json"))["kind"] == "List"


def test_get_reports_missing_objects_and_resources(web: Kubectl) -> None:
    assert web.run("get", "deployment", "nope").stderr == (
        'Error from server (NotFound): deployments.apps "nope" not found\n'
    )
    assert web.run("get", "nopes").stderr == 'error: the server doesn\'t have a resource type "nopes"\n'
    assert web.run("get", "secrets").stderr.startswith("No resources found in")
    assert web("get", "deployment", "nope", "--ignore-not-found") == ""


def test_get_with_chunk_size_prints_the_whole_list(web: Kubectl) -> None:
    whole = web("get", "clusterroles", "-o", "name")
    assert web("get", "clusterroles", "-o", "name", "--chunk-size=3") == whole
    assert len(whole.split()) > 9
    web("get", "pods", "--sort-by=.metadata.creationTimestamp")


def test_get_with_watch_prints_changes(web: Kubectl) -> None:
    web("create", "-f", "-", stdin=text(config_map("watched")))
    arguments = ["kubectl", "--kubeconfig", str(web.kubeconfig), "-n", web.namespace, "get", "configmap", "watched"]
    watching = subprocess.Popen(
        [*arguments, "--watch", "--output-watch-events", "--no-headers"], stdout=subprocess.PIPE, text=True
    )
    assert watching.stdout is not None
    try:
        assert watching.stdout.readline().split()[:3] == ["ADDED", "watched", "1"]
        web("patch", "configmap", "watched", "-p", '{"data":{"b":"2"}}')
        assert watching.stdout.readline().split()[:3] == ["MODIFIED", "watched", "2"]
        web("delete", "configmap", "watched")
        assert watching.stdout.readline().split()[:3] == ["DELETED", "watched", "2"]
    finally:
        watching.terminate()
        watching.communicate(timeout=30)


def test_describe_shows_a_deployment(web: Kubectl) -> None:
    def described() -> str:
        out = web("describe", "deployment", "web")
        return out if "ScalingReplicaSet" in out else ""

    out = eventually(described, "the Event")
    assert re.search(r"Replicas: +2 desired \| 2 updated \| 2 total \| 2 available \| 0 unavailable", out)
    assert re.search(r"RollingUpdateStrategy: +25% max unavailable, 25% max surge", out)
    assert re.search(r"Available +True +MinimumReplicasAvailable", out)
    assert re.search(r"Progressing +True +NewReplicaSetAvailable", out)
    assert re.search(r"NewReplicaSet: +web-\w+ \(2/2 replicas created\)", out)
    assert re.search(r"Normal +ScalingReplicaSet .*Scaled up replica set web-\w+ from 0 to 2", out)


def test_describe_shows_a_pod_and_its_events(web: Kubectl) -> None:
    pod = web("get", "pods", "-l", "app=web", "-o", "name").split()[0]

    def described() -> str:
        out = web("describe", pod)
        reasons = ("Scheduled", "Created", "Started")  # written by different components, in any order
        return out if all(re.search(rf"Normal +{reason}", out) for reason in reasons) else ""

    out = eventually(described, "the Events")
    assert re.search(r"Controlled By: +ReplicaSet/web-", out)
    assert re.search(r"State: +Running", out)
    assert re.search(r"Ready +True", out)
    assert re.search(r"Status: +Running", out)


def test_describe_shows_a_namespace_a_node_and_a_service(web: Kubectl) -> None:
    assert re.search(r"Status: +Active", web("describe", "namespace", web.namespace))
    node = web("get", "nodes", "-o", "name").split()[0]
    assert "Non-terminated Pods" in web("describe", node)
    web("expose", "deployment", "web", "--port=80")
    assert re.search(r"Selector: +app=web", web("describe", "service", "web"))
    assert re.search(r"Port: +<unset> +80/TCP", web("describe", "service", "web"))


def test_events_for_an_object_are_printed(web: Kubectl) -> None:
    out = eventually(
        lambda: web.run("events", "--for", "deployment/web", "--no-headers").stdout, "an Event of the Deployment"
    )
    assert "ScalingReplicaSet" in out
    assert "ScalingReplicaSet" in web("get", "events", "--field-selector", "involvedObject.kind=Deployment")


def test_explain_shows_built_in_fields(web: Kubectl) -> None:
    out = web("explain", "deployment.spec.strategy.rollingUpdate.maxSurge")
    assert "FIELD: maxSurge" in out
    assert "maxUnavailable" in web("explain", "deployment.spec", "--recursive")
    out = web("explain", "pods.spec.containers")
    assert "GROUP" not in out
    assert "imagePullPolicy" in out
    assert 'field "nope" does not exist' in web.run("explain", "deployment.spec.nope").stderr


def test_api_resources_lists_short_names_scopes_verbs_and_categories(web: Kubectl) -> None:
    resources = rows(web("api-resources", "--no-headers"))
    short = {row[0]: row[1] for row in resources}
    assert (short["deployments"], short["pods"], short["configmaps"]) == ("deploy", "po", "cm")
    assert "deployments.apps" in web("api-resources", "--namespaced=true", "-o", "name").split()
    assert "namespaces" in web("api-resources", "--namespaced=false", "-o", "name").split()
    assert "pods" in web("api-resources", "--categories=all", "-o", "name").split()
    assert "pods" not in web("api-resources", "--verbs=nope", "-o", "name").split()
    assert {"v1", "apps/v1", "apiextensions.k8s.io/v1"} <= set(web("api-versions").split())


def test_cluster_info_version_and_health_are_served(web: Kubectl) -> None:
    assert "is running at" in web("cluster-info")
    version = json.loads(web("version", "-o", "json"))["serverVersion"]
    assert re.fullmatch(r"v1\.\d+\.\d+.*", version["gitVersion"])
    assert web("get", "--raw", "/readyz") == "ok"
    assert web("get", "--raw", "/livez?verbose").endswith("livez check passed\n")


def test_auth_can_i_and_whoami_report_the_rights_of_the_user(web: Kubectl) -> None:
    assert web("auth", "can-i", "create", "deployments") == "yes\n"
    denied = web.run("auth", "can-i", "create", "deployments", "--as=system:serviceaccount:default:nobody")
    assert (denied.returncode, denied.stdout) == (1, "no\n")
    assert re.search(r"\*\.\* +\[\] +\[\] +\[\*\]", web("auth", "can-i", "--list"))
    assert "system:masters" in web("auth", "whoami")
