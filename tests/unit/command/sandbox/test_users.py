"""`altershield sandbox --user`. tests/e2e/test_users.py has the rights of the users."""

import stat
from pathlib import Path

import pytest
import yaml

from command import main
from command.sandbox.users import TokenUser, token_csv, token_users, with_contexts
from kube_base.errors import UsageError
from kube_sandbox.apiserver.attributes import User
from kube_sandbox.apiserver.auth import token_files
from tests.support.processes import call, command, wait_for_line

ADMIN = yaml.safe_dump(
    {
        "users": [{"name": "admin", "user": {"token": "t"}}],
        "contexts": [{"name": "admin", "context": {"cluster": "c", "user": "admin"}}],
        "current-context": "admin",
    }
)


@pytest.mark.parametrize("name", ["ann", "oidc:ann@example.com", 'a "quoted", name', "new\nline"])
@pytest.mark.parametrize("groups", [(), ("developers",), ("developers", "a=b", 'x"y')])
def test_token_file_has_the_users(tmp_path: Path, name: str, groups: tuple[str, ...]) -> None:
    (user,) = token_users([f"{name}={','.join(groups)}" if groups else name])
    (tmp_path / "tokens.csv").write_text(token_csv([user, TokenUser("other", ())]))
    tokens = token_files.load(tmp_path / "tokens.csv")
    assert tokens[user.token] == User(name, groups)
    assert len(tokens) == 2


@pytest.mark.parametrize("value", ["", "=", "=developers", "ann=", "ann=a,,b", "ann=a,"])
def test_empty_name_is_a_usage_error(value: str) -> None:
    with pytest.raises(UsageError, match="has an empty name; write NAME or NAME=GROUP,GROUP"):
        token_users([value])


def test_second_user_of_a_name_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="--user 'ann=b' is the second user 'ann'"):
        token_users(["ann=a", "ann=b"])


def test_user_with_the_name_of_the_administrators_context_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="--user 'admin' is the name of the administrator's context"):
        with_contexts(ADMIN, token_users(["admin"]))


def test_kubeconfig_keeps_its_current_context_and_gets_one_for_each_user() -> None:
    ann, bob = token_users(["ann=developers", "bob"])
    config = yaml.safe_load(with_contexts(ADMIN, [ann, bob]))
    assert config["current-context"] == "admin"
    assert [each["user"]["token"] for each in config["users"]] == ["t", ann.token, bob.token]
    assert [each["context"]["user"] for each in config["contexts"]] == ["admin", "ann", "bob"]


def test_tokens_are_in_the_kubeconfig_only(tmp_path: Path) -> None:
    kubeconfig, log = tmp_path / "kubeconfig", tmp_path / "sandbox.log"
    with command("sandbox", "--nodes=0", "--user=ann=developers", "--output", str(kubeconfig), log=log) as process:
        wait_for_line(process, log, "Serving ")
        assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
        tokens = [each["user"]["token"] for each in yaml.safe_load(kubeconfig.read_text())["users"][1:]]
    assert len(tokens) == 1
    assert tokens[0] not in log.read_text()


def test_users_need_an_api_server_of_the_sandbox(capfd: pytest.CaptureFixture[str]) -> None:
    done = call(main, "altershield", "sandbox", "--user=ann", "--kubeconfig=any", capture=capfd)
    assert done.returncode == 2
    assert "in the cluster of --kubeconfig, use a ServiceAccount" in done.stderr
