"""Impersonation (`kubectl --as`): a user makes a request as another user.

The rules are those of kube-apiserver's `pkg/endpoints/filters/impersonation`. Its constrained modes (KEP-5284) are
enabled in 1.36. The permission `impersonate` is for all requests. A constrained mode gives the permission for some
verbs.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from kube_sandbox.apiserver.attributes import Attributes, User
from kube_sandbox.apiserver.auth.authentication import ANONYMOUS, AUTHENTICATED, MASTERS
from kube_sandbox.apiserver.auth.authorization import Authorizer, forbidden
from kube_sandbox.apiserver.auth.tokens import service_account_groups
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.gotext import quoted

_GROUP = "authentication.k8s.io"
_UNAUTHENTICATED = ANONYMOUS.groups[0]
_EXTRA = "impersonate-extra-"


@dataclass(slots=True)
class _Wanted:
    name: str = ""
    uid: str = ""
    groups: list[str] = field(default_factory=list)
    extra: dict[str, list[str]] = field(default_factory=dict)

    @property
    def has_only_name(self) -> bool:
        return not (self.uid or self.groups or self.extra)


def impersonate(headers: Sequence[tuple[str, str]], attributes: Attributes, authorizer: Authorizer) -> User:
    """The effective user of a request: `attributes.user`, or the user in its impersonation headers.

    Raises StatusError 400 for headers without a user name, and 403 when the user may not impersonate the other user."""
    wanted = _wanted(headers)
    if not wanted.name:
        if wanted.has_only_name:
            return attributes.user
        raise StatusError(400, f"requested {_go_value(wanted)} without impersonating a user name")
    mode = _mode(wanted)
    if mode is None:
        return _impersonated("", wanted, attributes, authorizer)
    try:
        return _impersonated(mode, wanted, attributes, authorizer)
    except StatusError:
        with contextlib.suppress(StatusError):
            return _impersonated("", wanted, attributes, authorizer)
        raise


def _wanted(headers: Sequence[tuple[str, str]]) -> _Wanted:
    wanted = _Wanted()
    for name, value in headers:
        key = name.lower()
        if key == "impersonate-user":
            wanted.name = wanted.name or value
        elif key == "impersonate-uid":
            wanted.uid = wanted.uid or value
        elif key == "impersonate-group":
            wanted.groups.append(value)
        elif key.startswith(_EXTRA):
            wanted.extra.setdefault(unquote(key.removeprefix(_EXTRA)), []).append(value)
    return wanted


def _mode(wanted: _Wanted) -> str | None:
    """The constrained mode for a user; None for a ServiceAccount or node if the headers contain more than the name."""
    if _service_account(wanted.name):
        return "serviceaccount" if wanted.has_only_name else None
    if wanted.name.startswith("system:node:"):
        return "arbitrary-node" if wanted.has_only_name else None
    return "user-info"


def _impersonated(mode: str, wanted: _Wanted, attributes: Attributes, authorizer: Authorizer) -> User:
    """The impersonated user, after the checks of a constrained mode, or those of full impersonation for an empty mode.
    Raises StatusError 403."""
    verb = f"impersonate:{mode}" if mode else "impersonate"
    if mode:
        _require(authorizer, replace(attributes, verb=f"impersonate-on:{mode}:{attributes.verb}"))

    def require(plural: str, name: str, *, group: str = _GROUP, namespace: str = "", subresource: str = "") -> None:
        requested = Attributes(
            attributes.user,
            verb,
            group=group,
            plural=plural,
            name=name,
            namespace=namespace,
            subresource=subresource,
        )
        if mode and plural == "groups" and name in ("", MASTERS):
            target = "the system:masters group" if name else "the empty string group"
            raise forbidden(requested, f"impersonating {target} is not allowed")
        _require(authorizer, requested)

    groups = list(wanted.groups)
    named = _GROUP if mode else ""
    if account := _service_account(wanted.name):
        require("serviceaccounts", account[1], group=named, namespace=account[0])
        groups = groups or list(service_account_groups(account[0]))
    elif mode == "arbitrary-node":
        require("nodes", wanted.name.removeprefix("system:node:"))
        groups = ["system:nodes"]
    else:
        require("users", wanted.name, group=named)
    if wanted.uid:
        require("uids", wanted.uid)
    for group in wanted.groups:
        require("groups", group, group=named)
    for key, values in sorted(wanted.extra.items()):
        for value in values:
            require("userextras", value, subresource=key)
    if wanted.name == ANONYMOUS.name:
        groups += [] if _UNAUTHENTICATED in groups else [_UNAUTHENTICATED]
    elif _UNAUTHENTICATED not in groups and AUTHENTICATED not in groups:
        groups.append(AUTHENTICATED)
    extra: Mapping[str, tuple[str, ...]] = {key: tuple(values) for key, values in wanted.extra.items()}
    return User(wanted.name, tuple(groups), wanted.uid, extra)


def _require(authorizer: Authorizer, attributes: Attributes) -> None:
    reason = authorizer.authorize(attributes)
    if reason is not None:
        raise forbidden(attributes, reason)


def _service_account(name: str) -> tuple[str, str] | None:
    parts = name.split(":")
    is_account = len(parts) == 4 and parts[:2] == ["system", "serviceaccount"] and all(parts[2:])
    return (parts[2], parts[3]) if is_account else None


def _go_value(wanted: _Wanted) -> str:
    """A user as Go's `%#v` prints it."""

    def strings(values: Sequence[str]) -> str:
        return "[]string{" + ", ".join(quoted(value) for value in values) + "}"

    groups = strings(wanted.groups) if wanted.groups else "[]string(nil)"
    extra = ", ".join(f"{quoted(key)}:{strings(values)}" for key, values in sorted(wanted.extra.items()))
    shown = f"map[string][]string{{{extra}}}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{quoted(wanted.uid)}, Groups:{groups}, Extra:{shown}}}'
