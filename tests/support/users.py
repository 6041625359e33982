"""Users with tokens of their own, for tests of rights."""

import json
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.support.kubectl import Json, Kubectl

USERS = ("ann=developers", "bob=developers")
"""For `altershield sandbox --user`."""


@dataclass(frozen=True)
class User:
    name: str
    """As the API server knows the user, for `kubectl create rolebinding --user`."""
    kubectl: Kubectl


def user(admin: Kubectl, name: str, directory: Path) -> User:
    """A user without rights of their own. It is the user of the context `name` of the administrator's kubeconfig, or,
    where there is no such context, a new ServiceAccount in the administrator's namespace."""
    view = ("config", "view", "--raw", "--minify", "--flatten", "-o", "json", "--context", name)
    if (done := admin.run(*view)).returncode == 0:
        return User(name, _kubectl(admin, json.loads(done.stdout) | {"current-context": name}, directory / name))
    return service_account(admin, name, directory)


def service_account(admin: Kubectl, name: str, directory: Path) -> User:
    """A new ServiceAccount in the administrator's namespace, with a token."""
    admin("create", "serviceaccount", name)
    config = admin.config()
    config["users"] = [{"name": name, "user": {"token": admin("create", "token", name).strip()}}]
    context = {"cluster": config["clusters"][0]["name"], "user": name}
    config |= {"contexts": [{"name": name, "context": context}], "current-context": name}
    return User(f"system:serviceaccount:{admin.namespace}:{name}", _kubectl(admin, config, directory / name))


def _kubectl(admin: Kubectl, config: Json, file: Path) -> Kubectl:
    """kubectl with this kubeconfig in the administrator's namespace, which is also that of the kubeconfig."""
    for each in config["contexts"]:
        each["context"]["namespace"] = admin.namespace
    kubeconfig = file.with_name(f"{file.name}.{admin.namespace}.kubeconfig")
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(yaml.safe_dump(config))
    return Kubectl(kubeconfig, admin.namespace)
