"""RBAC: tokens of service accounts, roles, bindings, impersonation."""

import functools
import json
from pathlib import Path

import pytest
import yaml

from support.kubectl import Kubectl
from support.polling import eventually


@pytest.fixture(scope="module")
def robot(space: Kubectl, directory: Path) -> Kubectl:
    """kubectl as a service account that may read ConfigMaps and one Secret in its namespace."""
    space("create", "serviceaccount", "robot")
    space("create", "role", "reader", "--verb=get,list", "--resource=configmaps")
    space("create", "role", "one-secret", "--verb=get", "--resource=secrets", "--resource-name=mine")
    for role in ("reader", "one-secret"):
        space("create", "rolebinding", role, f"--role={role}", f"--serviceaccount={space.namespace}:robot")
    space("create", "secret", "generic", "mine")
    token = space("create", "token", "robot", "--duration=1h").strip()
    config = yaml.safe_load(space("config", "view", "--raw", "--minify", "--flatten"))
    cluster = config["clusters"][0]["name"]
    config["users"] = [{"name": "robot", "user": {"token": token}}]
    config["contexts"] = [{"name": "robot", "context": {"cluster": cluster, "user": "robot"}}]
    config["current-context"] = "robot"
    path = directory / "robot.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    robot = Kubectl(path, space.namespace)
    for allowed in ("configmaps", "secret/mine"):
        eventually(functools.partial(may_get, robot, allowed), f"the role to apply to {allowed}")
    return robot


def may_get(robot: Kubectl, what: str) -> bool:
    return robot.run("get", what).returncode == 0


def test_token_gives_user_and_groups_of_its_service_account(robot: Kubectl) -> None:
    who = json.loads(robot("auth", "whoami", "-o", "json"))["status"]["userInfo"]
    assert who["username"] == f"system:serviceaccount:{robot.namespace}:robot"
    assert set(who["groups"]) == {
        "system:serviceaccounts", f"system:serviceaccounts:{robot.namespace}", "system:authenticated",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        ("get pods", 'cannot list resource "pods" in API group "" in the namespace "{namespace}"'),
        ("get secret other", 'cannot get resource "secrets" in API group "" in the namespace "{namespace}"'),
        ("get nodes", 'cannot list resource "nodes" in API group "" at the cluster scope'),
        ("get configmaps -A", 'cannot list resource "configmaps" in API group "" at the cluster scope'),
        ("delete configmap x", 'cannot delete resource "configmaps" in API group "" in the namespace "{namespace}"'),
        (
            "scale deployment x --replicas=1 --namespace=kube-system",
            'cannot get resource "deployments" in API group "apps" in the namespace "kube-system"',
        ),
        ("get --raw /metrics", 'cannot get path "/metrics"'),
    ],
)
def test_request_that_no_role_allows_is_forbidden(robot: Kubectl, arguments: str, refused: str) -> None:
    done = robot.run(*arguments.split())
    assert done.returncode == 1
    user = f'User "system:serviceaccount:{robot.namespace}:robot"'
    assert f"{user} {refused.format(namespace=robot.namespace)}" in done.stderr


def test_request_that_a_role_allows_is_accepted(robot: Kubectl) -> None:
    assert "configmap/" in robot("get", "configmaps", "-o", "name")
    assert robot("get", "secret", "mine", "-o", "name") == "secret/mine\n"
    assert robot("auth", "can-i", "get", "secret/mine") == "yes\n"
    assert robot.run("auth", "can-i", "get", "secret/other").stdout == "no\n"
    robot("version")
    robot("api-resources")


def test_role_with_rules_that_the_user_does_not_hold_is_refused(space: Kubectl, robot: Kubectl) -> None:
    space("create", "role", "maker", "--verb=create", "--resource=roles")
    space("create", "rolebinding", "maker", "--role=maker", f"--serviceaccount={space.namespace}:robot")
    eventually(lambda: robot.run("auth", "can-i", "create", "roles").stdout == "yes\n", "the role to apply")
    robot("create", "role", "same", "--verb=get", "--resource=configmaps")
    more = robot.run("create", "role", "more", "--verb=delete", "--resource=configmaps")
    assert "is attempting to grant RBAC permissions not currently held" in more.stderr


def test_role_ref_of_a_binding_cannot_change(space: Kubectl, robot: Kubectl) -> None:
    done = space.run("patch", "rolebinding", "reader", "--type=merge", "-p", '{"roleRef":{"name":"other"}}')
    assert "cannot change roleRef" in done.stderr


def test_administrator_may_impersonate_and_others_may_not(space: Kubectl, robot: Kubectl) -> None:
    user = f"--as=system:serviceaccount:{space.namespace}:robot"
    assert space("auth", "can-i", "list", "configmaps", user) == "yes\n"
    assert "(Forbidden)" in space.run("get", "pods", user).stderr
    assert "cannot impersonate" in robot.run("get", "configmaps", "--as=admin").stderr


def test_token_for_a_missing_account_or_a_short_time_is_refused(space: Kubectl) -> None:
    done = space.run("create", "token", "nobody")
    assert 'serviceaccounts "nobody" not found' in done.stderr
    short = space.run("create", "token", "default", "--duration=1m")
    assert "may not specify a duration less than 10 minutes" in short.stderr


def test_token_of_a_deleted_account_is_refused(space: Kubectl, robot: Kubectl, directory: Path) -> None:
    space("create", "serviceaccount", "brief")
    token = space("create", "token", "brief").strip()
    config = robot.kubeconfig.read_text()
    current = yaml.safe_load(config)["users"][0]["user"]["token"]
    path = directory / "brief.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(config.replace(current, token))
    brief = Kubectl(path, space.namespace)
    brief("auth", "whoami")
    space("delete", "serviceaccount", "brief")
    eventually(lambda: "Unauthorized" in brief.run("get", "--raw", "/version/").stderr
               or "Unauthorized" in brief.run("auth", "whoami").stderr, "the token to be refused")  # fmt: skip
