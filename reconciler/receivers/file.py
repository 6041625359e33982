"""The file with the receivers of notifications. Its URLs and tokens are secrets: no error and no log contains them."""

import asyncio
import contextlib
import ipaddress
import logging
import os
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import yaml

from altershield.api.policy import MAX_RECEIVERS, RECEIVER_NAME
from kube_base.errors import UsageError
from reconciler.outbound import urls
from reconciler.outbound.outbound_client import Outbound
from reconciler.outbound.urls import AllowedHosts
from reconciler.receivers.vocabulary import Event, Selection, Type

logger = logging.getLogger(__name__)

FILE = "receivers.yaml"
"""The key in the Secret of the chart."""

MAX_FILE = 256 * 1024

PLACEHOLDERS = (
    *("event", "namespace", "kind", "workload", "version", "images", "release", "reason", "message"),
    *("time", "cluster", "title", "summary", "command"),
)
PLACEHOLDER = re.compile(r"\{\{[ \t]*([A-Za-z]*)[ \t]*\}\}")

_NAME = re.compile(RECEIVER_NAME)
_SHOWN_PLACEHOLDER = re.compile(r"\{\{[\w .-]{0,32}\}{0,2}", re.ASCII)
_TOKEN = re.compile(r"[!-~]{1,8192}", re.ASCII)  # the value of a header
_ROUTING_KEY = re.compile(r"[A-Za-z0-9]{32}", re.ASCII)
_LISTED = 5  # names in a sentence
_PERIOD = 2.0  # seconds between two checks of the file


class Receiver(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A receiver."""

    name: str
    type: str
    url: str
    events: tuple[str, ...] = ()
    """Empty: all but `succeeded`."""
    namespaces: tuple[str, ...] = ()
    """Empty: all."""
    template: Annotated[str, msgspec.Meta(max_length=4096)] = ""
    """Empty: the default text."""
    title: Annotated[str, msgspec.Meta(max_length=512)] = ""
    """The template of the title; empty: the default title."""
    token: str = ""
    """A bearer token; empty: none."""
    routing_key: str = msgspec.field(default="", name="routingKey")
    """The integration key of a service of PagerDuty."""
    selection: str = Selection.DEFAULT
    """The releases that the receiver is notified about; see `Selection`."""

    def __repr__(self) -> str:
        return f"Receiver({self.name!r})"

    def wants(self, event: Event, namespace: str, *, resolved: bool) -> bool:
        """Whether the receiver is notified about this event of a release in the namespace, or about its end
        (`resolved`)."""
        if event is Event.TEST:
            return True
        if resolved and not Type(self.type).ends:
            return False
        named = event in self.events if self.events else event is not Event.SUCCEEDED
        return named and self.is_for(namespace)

    def is_for(self, namespace: str) -> bool:
        """Whether the receiver may be notified about releases in this namespace."""
        return not self.namespaces or namespace in self.namespaces


class Receivers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file."""

    receivers: Annotated[tuple[Receiver, ...], msgspec.Meta(max_length=MAX_RECEIVERS)] = ()
    cluster: Annotated[str, msgspec.Meta(max_length=64)] = ""
    """The name of this cluster in messages; empty: none."""


def read(path: Path) -> Receivers:
    """The receivers in a file (YAML or JSON). UsageError: it cannot be used."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
    except OSError as error:
        raise UsageError(f"cannot read the receivers of notifications in {path}: {error.strerror}") from None
    try:
        return parse(data)
    except ValueError as error:
        raise UsageError(f"the receivers of notifications in {path} are invalid: {error}") from None


def parse(data: bytes) -> Receivers:
    """ValueError with a reason that contains no value of the file."""
    if len(data) > MAX_FILE:
        raise ValueError(f"the file has more than {MAX_FILE} bytes")
    try:
        found = msgspec.convert(yaml.safe_load(data.decode()) or {}, Receivers)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)  # the text of the error quotes the line
        raise ValueError(f"it is not YAML{f' (line {mark.line + 1})' if mark is not None else ''}") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    names = [each.name for each in found.receivers]
    for number, each in enumerate(found.receivers, 1):
        if reason := _problem(each) or ("another receiver has its name" if names.count(each.name) > 1 else ""):
            named = f" ({each.name})" if _NAME.fullmatch(each.name) else ""
            raise ValueError(f"receiver {number}{named}: {reason}")
    return found


def chosen(receivers: Iterable[Receiver], notify: Collection[str] | None, namespace: str) -> set[str]:
    """The names of the receivers of a release in this namespace. `notify`: the receivers that its policy names, or
    None.

    If none of them exists for the namespace, the default receivers are notified: the administrator may have removed or
    renamed a receiver after the release began.
    """
    present = [each for each in receivers if each.is_for(namespace)]
    named = {each.name for each in present if each.name in (notify or ())}
    by_default = notify is None or (bool(notify) and not named)
    others = (Selection.ALWAYS, Selection.DEFAULT) if by_default else (Selection.ALWAYS,)
    return named | {each.name for each in present if each.selection in others}


def unknown_receivers(
    file: "ReceiversFile | None", system_namespace: str, names: Collection[str], namespace: str
) -> str:
    """A sentence about the `names` for which the namespace of the policy has no receiver; empty if there are none. It
    does not mention receivers of other namespaces. A policy of the system namespace may name all receivers."""
    if not names:
        return ""
    if file is None:
        return "nobody is notified, because the reconciler has no receivers (see its option --notifications-file)"
    receivers = file.current.receivers
    present = [each.name for each in receivers if namespace == system_namespace or each.is_for(namespace)]
    missing = [name for name in names if name not in present]
    if not missing:
        return ""
    there = f"there are: {_listed(sorted(present))}" if present else "there is none"
    return f"the administrator's file has no receiver {_listed(missing)} for this namespace; {there}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def allowed(receivers: Iterable[Receiver]) -> AllowedHosts:
    """The hosts of these receivers, and no others."""
    destinations = [urls.parse(each.url) for each in receivers]
    return AllowedHosts(
        frozenset(destination.host for destination in destinations if destination.address is None),
        (),
        tuple(
            ipaddress.ip_network(destination.address) for destination in destinations if destination.address is not None
        ),
    )


def _problem(receiver: Receiver) -> str:
    if not _NAME.fullmatch(receiver.name):
        return "its name has to consist of lower case letters, digits and dashes"
    if receiver.type not in tuple(Type):
        return f"its type is not one of {', '.join(Type)}"
    if receiver.selection not in tuple(Selection):
        return f"its selection is not one of {', '.join(Selection)}"
    known = [each for each in Event if each is not Event.TEST]
    if not set(receiver.events) <= set(known):
        return f"its events are not all among {', '.join(known)}"
    if Event.SUCCEEDED in receiver.events and Type(receiver.type).ends:
        return f"its events have {Event.SUCCEEDED}, but a receiver of the type {receiver.type} is for what has to end"
    try:
        urls.parse(receiver.url)
    except ValueError:  # its text may contain the URL
        return "its url is not valid; it must look like https://example.com/path, without a user and a fragment"
    if receiver.token and not _TOKEN.fullmatch(receiver.token):
        return "its token has a character that is not allowed"
    pagerduty = receiver.type == Type.PAGERDUTY
    if pagerduty and not _ROUTING_KEY.fullmatch(receiver.routing_key):
        return "its routingKey is not the 32 letters and digits of an integration key"
    if receiver.routing_key and not pagerduty:
        return f"its type is {receiver.type}, so it has no routingKey"
    if receiver.title and not Type(receiver.type).titled:
        return f"its type is {receiver.type}, so it has no title; write the title into its template"
    return _unknown_placeholder("template", receiver.template) or _unknown_placeholder("title", receiver.title)


def _unknown_placeholder(field: str, template: str) -> str:
    rest = PLACEHOLDER.sub(lambda match: "" if match[1] in PLACEHOLDERS else match[0], template)
    start = rest.find("{{")
    if start < 0:
        return ""
    shown = _SHOWN_PLACEHOLDER.match(rest[start:])
    placeholder = shown[0] if shown else "{{"
    return f"its {field} has {placeholder}, which is not a placeholder; there are: {', '.join(PLACEHOLDERS)}"


class ReceiversFile:
    """The receivers. They are read again when the file changes. If the new file is invalid, the last ones stay in
    use."""

    def __init__(self, path: Path) -> None:
        """UsageError: the file cannot be used."""
        self._path = path
        self._seen = _stamp(path)  # before the file is read, which may change meanwhile
        self.current = read(path)
        self._handlers: list[Callable[[], None]] = []

    def add_handler(self, handler: Callable[[], None]) -> None:
        """Call `handler` after each change that `follow` finds."""
        self._handlers.append(handler)

    async def follow(self) -> None:
        """Read the file again after each change, until cancelled."""
        while True:
            await asyncio.sleep(_PERIOD)
            stamp = await asyncio.to_thread(_stamp, self._path)
            if stamp == self._seen:
                continue
            try:
                new = await asyncio.to_thread(read, self._path)
            except UsageError as error:
                self._seen = stamp
                logger.warning(
                    "the last receivers stay in use, because the file is invalid", extra={"cause": str(error)}
                )
                continue
            self._seen = stamp  # only now: this is cancelled if the process loses its Lease while it reads
            if new != self.current:
                self.current = new
                logger.info("the receivers of notifications have changed", extra={"receivers": len(new.receivers)})
                for handler in self._handlers:
                    handler()


class Delivery(NamedTuple):
    """Where notifications go, and the client that sends them. The client may call only the hosts in the file."""

    file: ReceiversFile
    outbound: Outbound


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """The inode, time and size of the file, which change with its content. The kubelet replaces a link when a Secret
    changes, so the inode changes too."""
    with contextlib.suppress(OSError):
        found = os.stat(path)
        return found.st_ino, found.st_mtime_ns, found.st_size
    return None
