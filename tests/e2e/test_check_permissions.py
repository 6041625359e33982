"""A DefensePolicy lets its author do nothing through AlterShield that the author may not do."""

import json
from typing import Any

import pytest

from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.resources import API_VERSION
from tests.e2e.sleep import release
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

JOB: Json = {
    "name": "smoke",
    "job": {
        "template": {
            "spec": {
                "template": {
                    "spec": {"restartPolicy": "Never", "containers": [{"name": "smoke", "image": "completes-after-1s"}]}
                }
            }
        }
    },
}


def http(secret: str) -> Json:
    return {"name": f"http-{secret}", "http": {"url": "http://hooks.shop.svc", "secretRef": {"name": secret}}}


def prometheus(secret: str) -> Json:
    query = {"url": "http://prometheus.monitoring.svc", "query": "up", "min": "1"}
    return {"name": f"prometheus-{secret}", "prometheus": {**query, "secretRef": {"name": secret}}}


def apply(kubectl: Kubectl, *checks: Json, name: str = "rules", **spec: Any) -> str:
    """Apply a policy with these checks. Returns the denial; empty if it is stored."""
    body = {"apiVersion": API_VERSION, "kind": "DefensePolicy", "metadata": {"name": name}, "spec": spec}
    body["spec"] = {**spec, "checks": list(checks)}
    done = kubectl.run("apply", "-f", "-", stdin=json.dumps(body))
    return "" if done.returncode == 0 else done.stderr


@pytest.fixture
def author(kubectl: Kubectl) -> Kubectl:
    """kubectl of a user who may write policies in the namespace of the test, and nothing else."""
    kubectl("create", "rolebinding", "author", "--clusterrole=altershield-policies", "--user=author")
    own = Kubectl(kubectl.kubeconfig, kubectl.namespace, "--as=author")
    eventually(lambda: own.may_list("defensepolicies"), "the role to be in effect")
    eventually(lambda: apply(own, JOB, name="try") != "", "the admission policies to be in effect")
    return own


def grant(kubectl: Kubectl, name: str, *rule: str) -> None:
    kubectl("create", "role", name, *rule)
    kubectl("create", "rolebinding", name, f"--role={name}", "--user=author")


def test_job_in_a_policy_needs_the_permission_to_create_jobs_in_that_namespace(
    kubectl: Kubectl, author: Kubectl
) -> None:
    denied = apply(author, JOB)
    assert f"you may not create Jobs in the namespace {kubectl.namespace}" in denied
    assert "altershield-checks" in denied
    assert apply(author, http("x")) != ""
    assert apply(author, {"name": "server", "server": {}}) == ""
    assert "you may not create Jobs" in apply(author, {"name": "server", "server": {}}, JOB), "also by an update"
    grant(kubectl, "jobs", "--verb=create", "--resource=jobs")
    eventually(lambda: apply(author, JOB) == "", "the permission to be in effect")


def test_check_of_logs_in_a_policy_needs_the_permission_to_read_logs_in_that_namespace(
    kubectl: Kubectl, author: Kubectl
) -> None:
    check = {"name": "logs", "logs": {"pattern": "panic"}}
    assert f"you may not read the logs of pods in the namespace {kubectl.namespace}" in apply(author, check)
    grant(kubectl, "pods", "--verb=get", "--resource=pods")
    grant(kubectl, "logs", "--verb=get", "--resource=pods/log")
    eventually(lambda: apply(author, check) == "", "the permission to be in effect")


def test_secret_in_a_policy_needs_the_permission_to_read_this_secret(kubectl: Kubectl, author: Kubectl) -> None:
    for check in (http("one"), prometheus("one")):
        assert "you may not read the Secret one" in apply(author, check)
    grant(kubectl, "one", "--verb=get", "--resource=secrets", "--resource-name=one")
    eventually(lambda: apply(author, http("one")) == "", "the permission to be in effect")
    assert apply(author, http("one"), prometheus("one")) == ""
    assert "you may not read the Secret two" in apply(author, http("one"), prometheus("two"))


def test_each_of_eight_secrets_is_checked(kubectl: Kubectl, author: Kubectl) -> None:
    names = [f"s{number}" for number in range(8)]
    readable = [f"--resource-name={name}" for name in names[:7]]
    grant(kubectl, "most", "--verb=get", "--resource=secrets", *readable)
    eventually(lambda: apply(author, *map(http, names[:7])) == "", "the permission to be in effect")
    assert "you may not read the Secret s7" in apply(author, *map(http, names))
    assert "you may not read the Secret s7" in apply(author, *map(http, reversed(names)))
    grant(kubectl, "last", "--verb=get", "--resource=secrets", "--resource-name=s7")
    eventually(lambda: apply(author, *map(http, names)) == "", "all of them to be readable")


def test_update_that_leaves_the_spec_needs_no_permission_and_any_change_of_it_does(
    kubectl: Kubectl, author: Kubectl
) -> None:
    assert apply(kubectl, JOB) == ""
    author("label", "defensepolicy", "rules", "team=a")
    edit = json.dumps({"spec": {"observeSeconds": 5}})
    done = author.run("patch", "defensepolicy", "rules", "--type=merge", "-p", edit)
    assert "you may not create Jobs" in done.stderr
    author("delete", "defensepolicy", "rules")


def test_job_in_a_policy_for_all_namespaces_needs_the_permission_in_all_namespaces(
    kubectl: Kubectl, author: Kubectl
) -> None:
    system = Kubectl(kubectl.kubeconfig, SYSTEM_NAMESPACE)
    binding = f"author-{kubectl.namespace}"
    own = Kubectl(kubectl.kubeconfig, SYSTEM_NAMESPACE, "--as=author")
    try:
        system("create", "rolebinding", binding, "--clusterrole=altershield-policies", "--user=author")
        system("create", "role", binding, "--verb=create", "--resource=jobs")
        system("create", "rolebinding", f"{binding}-jobs", f"--role={binding}", "--user=author")
        eventually(lambda: own.may_list("defensepolicies"), "the role to be in effect")
        eventually(
            lambda: (
                "you may not create Jobs in all namespaces" in apply(own, JOB, selector={"matchLabels": {"a": "b"}})
            ),
            "the denial",
        )
    finally:
        system.run("delete", "rolebinding", binding, f"{binding}-jobs")
        system.run("delete", "role", binding)
        system.run("delete", "defensepolicy", "rules", "--ignore-not-found")


@pytest.fixture
def tenant(kubectl: Kubectl) -> Kubectl:
    """kubectl of a user who may write every object of AlterShield in the namespace of the test, but create no Jobs."""
    kinds = ("changeworkloads", "defensepolicies", "changeworkloads/status", "defensepolicies/status")
    rule = ",".join(
        f"{kind.partition('/')[0]}.app.ops.cloud.alipay.com{kind[len(kind.partition('/')[0]) :]}" for kind in kinds
    )
    kubectl("create", "role", "tenant", "--verb=*", f"--resource={rule}")
    kubectl("create", "rolebinding", "tenant", "--role=tenant", "--user=tenant")
    own = Kubectl(kubectl.kubeconfig, kubectl.namespace, "--as=tenant")
    eventually(lambda: own.may_list("changeworkloads"), "the role to be in effect")
    return own


def test_user_cannot_write_the_copies_of_a_policy_that_the_reconciler_uses(kubectl: Kubectl, tenant: Kubectl) -> None:
    version = release(kubectl)
    forged = json.dumps({"spec": {"policy": {"namespace": SYSTEM_NAMESPACE, "name": "x", "checks": [JOB]}}})
    done = tenant.run("patch", "changeworkload", f"sleep--x--{version}", "--type=merge", "-p", forged)
    assert "only AlterShield writes spec.policy" in done.stderr
    found = kubectl.json("changeworkload", f"sleep--x--{version}")
    found["metadata"] = {"name": f"sleep--x--{'0' * 32}"}
    found["spec"]["policy"] = json.loads(forged)["spec"]["policy"]
    done = tenant.run("create", "-f", "-", stdin=json.dumps(found))
    assert "only AlterShield writes spec.policy" in done.stderr
    assert apply(tenant, {"name": "server", "server": {}}) == ""
    accepted = json.dumps({"status": {"accepted": {"checks": [JOB]}}})
    done = tenant.run("patch", "defensepolicy", "rules", "--subresource=status", "--type=merge", "-p", accepted)
    assert "only AlterShield writes the status of DefensePolicies" in done.stderr
