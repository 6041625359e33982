"""The users of `altershield sandbox --user`: a token and a context of the kubeconfig for each."""

import csv
import io
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

import yaml

from kube_base.errors import UsageError


@dataclass(frozen=True)
class TokenUser:
    name: str
    groups: tuple[str, ...]
    token: str = field(default_factory=secrets.token_urlsafe, repr=False)


def token_users(values: Sequence[str]) -> list[TokenUser]:
    """The users of values such as `ann` and `ann=developers,approvers`, with new tokens. UsageError for others."""
    users: dict[str, TokenUser] = {}
    for value in values:
        name, equals, groups = value.partition("=")
        user = TokenUser(name, tuple(groups.split(",")) if equals else ())
        if not all((name, *user.groups)):
            raise UsageError(f"--user {value!r} has an empty name; write NAME or NAME=GROUP,GROUP")
        if name in users:
            raise UsageError(f"--user {value!r} is the second user {name!r}; write all groups of a user in one option")
        users[name] = user
    return list(users.values())


def token_csv(users: Sequence[TokenUser]) -> str:
    """The content of a file for `--token-auth-file` of kube-apiserver."""
    text = io.StringIO()
    csv.writer(text).writerows(
        (user.token, user.name, "", *([",".join(user.groups)] if user.groups else [])) for user in users
    )
    return text.getvalue()


def with_contexts(kubeconfig: str, users: Sequence[TokenUser]) -> str:
    """The kubeconfig of one user with a context for each of `users`, named like the user. The current context stays.
    UsageError: there is a context or a user of that name."""
    config = yaml.safe_load(kubeconfig)
    taken = {each["name"] for entries in ("users", "contexts") for each in config[entries]}
    (context,) = (each["context"] for each in config["contexts"])
    for user in users:
        if user.name in taken:
            raise UsageError(f"--user {user.name!r} is the name of the administrator's context; choose another one")
        config["users"].append({"name": user.name, "user": {"token": user.token}})
        config["contexts"].append({"name": user.name, "context": {**context, "user": user.name}})
    return yaml.safe_dump(config, sort_keys=False)
