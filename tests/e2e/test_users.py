"""Users with tokens: `altershield sandbox --user`, and their rights."""

import functools
import json
from pathlib import Path

import pytest

from tests.support.kubectl import Kubectl
from tests.support.polling import eventually
from tests.support.users import USERS, user


def test_user_has_the_rights_of_a_binding_and_no_others(space: Kubectl, tmp_path: Path) -> None:
    ann, bob = (user(space, name, tmp_path) for name in ("ann", "bob"))
    assert [each.kubectl.may_list("configmaps") for each in (ann, bob)] == [False, False]
    space("create", "rolebinding", "ann", "--clusterrole=view", f"--user={ann.name}")
    eventually(functools.partial(ann.kubectl.may_list, "configmaps"), "the binding to give rights")
    assert not bob.kubectl.may_list("configmaps")
    assert not ann.kubectl.may_list("secrets")
    space("delete", "rolebinding", "ann")
    eventually(lambda: not ann.kubectl.may_list("configmaps"), "the rights to end")


@pytest.mark.parametrize("option", USERS)
def test_context_of_a_user_has_the_name_and_the_groups(
    request: pytest.FixtureRequest, admin: Kubectl, option: str
) -> None:
    if request.config.getoption("--kubeconfig"):
        pytest.skip("the cluster of --kubeconfig does not have the users of the tests")
    name, _, groups = option.partition("=")
    who = json.loads(admin("auth", "whoami", "-o", "json", "--context", name))["status"]["userInfo"]
    assert who == {"username": name, "groups": [*groups.split(","), "system:authenticated"]}
