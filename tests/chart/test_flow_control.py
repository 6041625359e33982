"""The FlowSchemas of the chart: they apply to each account of the pods, and the API server uses them."""

import base64
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import helm_python
import pytest
import yaml

from altershield.api.names import LEASE, SYSTEM_NAMESPACE
from tests.chart.release import Release
from tests.chart.rendering import RELEASE, Object, containers, of_kind, rendered, the
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually

KUBE_SYSTEM_ACCOUNTS = 900
"""The precedence of the built-in FlowSchema kube-system-service-accounts. Of service-accounts it is 9000."""
SEATS, SHARES = 600, 245
"""The concurrency of an API server with default flags, and the shares of its priority levels together."""


def schemas(objects: list[Object]) -> tuple[Object, Object]:
    """The FlowSchemas for all requests and for Leases."""
    found = {schema["metadata"]["name"]: schema["spec"] for schema in of_kind(objects, "FlowSchema")}
    name = the(objects, "PriorityLevelConfiguration")["metadata"]["name"]
    assert found.keys() == {name, f"{name}-leases"}
    return found[name], found[f"{name}-leases"]


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("release", ["altershield", "gate"])
def test_flow_schemas_precede_those_of_service_accounts_for_each_account_of_the_pods(
    chart: helm_python.Chart, release: str, separate: bool
) -> None:
    objects = rendered(chart, {"reconciler": {"separate": separate}}, release=release, namespace="gatekeeping")
    accounts = {
        obj["spec"]["template"]["spec"]["serviceAccountName"]: containers(obj) for obj in of_kind(objects, "Deployment")
    }
    assert len(accounts) == 1 + separate
    leading = [name for name, found in accounts.items() if "reconciler" in found]
    for schema, wanted in zip(schemas(objects), (list(accounts), leading), strict=True):
        (rule,) = schema["rules"]
        subjects = [subject["serviceAccount"] for subject in rule["subjects"]]
        assert [subject["name"] for subject in subjects] == wanted
        assert {subject["namespace"] for subject in subjects} == {"gatekeeping"}
        assert schema["matchingPrecedence"] < KUBE_SYSTEM_ACCOUNTS
    everything, leases = schemas(objects)
    assert leases["matchingPrecedence"] < everything["matchingPrecedence"]
    assert everything["priorityLevelConfiguration"]["name"] == the(objects, "ServiceAccount")["metadata"]["name"]


@pytest.mark.parametrize(("shares", "seats"), [(None, 24), (1, 3), (100, 174)])
def test_concurrency_is_limited_to_the_share_and_never_borrowed(
    chart: helm_python.Chart, shares: int | None, seats: int
) -> None:
    values = {"flowControl": {"concurrencyShares": shares}} if shares else {}
    limited = the(rendered(chart, values), "PriorityLevelConfiguration")["spec"]["limited"]
    own = limited["nominalConcurrencyShares"]
    assert -(-SEATS * own // (SHARES + own)) == seats, "values.yaml names the number for the default"
    assert limited["borrowingLimitPercent"] == 0
    assert limited["limitResponse"]["type"] == "Queue"


def test_without_flow_control_no_object_of_its_api_is_created(chart: helm_python.Chart) -> None:
    objects = rendered(chart, {"flowControl": {"enabled": False}})
    assert [obj for obj in objects if obj["apiVersion"].startswith("flowcontrol.apiserver.k8s.io/")] == []


@pytest.mark.e2e
@pytest.mark.real_api_server
@pytest.mark.xdist_group("chart")
def test_api_server_applies_the_flow_schemas_to_the_account(release: Release, system: Kubectl) -> None:
    release.install()
    uids = {kind: uid(system, kind, RELEASE) for kind in ("flowschema", "prioritylevelconfiguration")}
    leases = uid(system, "flowschema", f"{RELEASE}-leases")
    assert len({*uids.values(), leases}) == 3
    pods, lease = "/api/v1/pods?limit=1", f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases/{LEASE}"
    eventually(lambda: answered(system, pods) == tuple(uids.values()), "the FlowSchema to apply to the account")
    level = uid(system, "prioritylevelconfiguration", "leader-election")
    eventually(lambda: answered(system, lease) == (leases, level), "the FlowSchema to apply to Leases")


def uid(system: Kubectl, kind: str, name: str) -> str:
    return system("get", kind, name, "-o", "jsonpath={.metadata.uid}")


def answered(system: Kubectl, path: str) -> tuple[str, str]:
    """The uids of the FlowSchema and of the priority level of a request of the release's account."""
    cluster = yaml.safe_load(Path(system.kubeconfig).read_text())["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster.get("certificate-authority-data", "")).decode()
    context = ssl.create_default_context(cadata=authority) if authority else None
    token = system("create", "token", RELEASE).strip()
    request = urllib.request.Request(cluster["server"] + path, headers={"Authorization": f"Bearer {token}"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as response:  # noqa: S310
            headers = response.headers
    except urllib.error.HTTPError as error:
        headers = error.headers
    return headers.get("X-Kubernetes-PF-FlowSchema-UID", ""), headers.get("X-Kubernetes-PF-PriorityLevel-UID", "")
