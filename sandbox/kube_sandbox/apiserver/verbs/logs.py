"""`pods/log`. Simulated containers print what an annotation of their pod says.

Checks and messages are those of pkg/registry/core/pod/strategy.go and of the kubelet. `follow` ends at once.
"""

import datetime
import re
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from aiohttp import web

from kube_base.times import rfc3339, unix
from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.context import Api, Call
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.http.requests import boolean

LOG = "sandbox.altershield.io/log"
"""Annotation of a Pod: the lines that each of its containers prints. A line that begins with a time, for example
`3s panic: nil map`, is printed so long after the start of the container; others are printed at the start."""

_DELAY = re.compile(r"(\d+(?:\.\d+)?)(ms|s) ")


class _Line(NamedTuple):
    at: float
    """Unix seconds."""
    text: str


def read(api: Api, call: Call) -> web.Response:
    """The log of a container. StatusError if it has none."""
    pod = call.current(api).object
    query = call.query
    tail, limit, seconds = (_number(query, name) for name in ("tailLines", "limitBytes", "sinceSeconds"))
    since = max(_time(query, "sinceTime"), time.time() - seconds if seconds else 0)
    container = _container(pod, query.get("container", ""))
    begin, end = _run(pod, container, previous=boolean(query, "previous"))
    text = pod["metadata"].get("annotations", {}).get(LOG, "")
    lines = [line for line in _printed(text, begin) if since <= line.at <= end] if begin else []
    lines = lines if tail is None else lines[max(0, len(lines) - tail) :]
    stamped = boolean(query, "timestamps")
    body = "".join(f"{f'{rfc3339(line.at)} ' if stamped else ''}{line.text}\n" for line in lines).encode()
    return web.Response(body=body if limit is None else body[:limit], content_type="text/plain")


def _container(pod: Object, wanted: str) -> str:
    spec, name = pod["spec"], pod["metadata"]["name"]
    names = [each["name"] for each in spec["containers"]]
    if wanted:
        if wanted not in (*names, *(each["name"] for each in spec.get("initContainers") or ())):
            raise StatusError(400, f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(names) > 1:
        listed = " ".join(names)
        raise StatusError(400, f"a container name must be specified for pod {name}, choose one of: [{listed}]")
    return str(names[0])


def _run(pod: Object, container: str, *, previous: bool) -> tuple[float, float]:
    """The begin and the end of the run of the container, in Unix seconds; 0 as the begin: its pod has no node."""
    name, status = pod["metadata"]["name"], pod.get("status") or {}
    if not pod["spec"].get("nodeName"):
        return 0.0, 0.0
    statuses = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    found: Object = next((each for each in statuses if each["name"] == container), {})
    state, last = found.get("state") or {}, (found.get("lastState") or {}).get("terminated")
    if previous:
        if last is None:
            raise StatusError(400, f'previous terminated container "{container}" in pod "{name}" not found')
        return unix(last["startedAt"]), unix(last["finishedAt"])
    if (running := state.get("running")) is not None:
        return unix(running["startedAt"]), time.time()
    ended = state.get("terminated") or last
    if ended is None:
        reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
        raise StatusError(400, f'container "{container}" in pod "{name}" is waiting to start: {reason}')
    return unix(ended["startedAt"]), unix(ended["finishedAt"])


def _printed(text: str, begin: float) -> Iterator[_Line]:
    for line in text.splitlines():
        delay = _DELAY.match(line)
        seconds = 0.0 if delay is None else float(delay[1]) / (1000 if delay[2] == "ms" else 1)
        yield _Line(begin + seconds, line if delay is None else line[delay.end() :])


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if text and not (text.isascii() and text.isdigit()):
        raise StatusError(400, f"{name} is not a number that is not negative: {text}")
    return int(text) if text else None


def _time(query: Mapping[str, str], name: str) -> float:
    try:
        text = query.get(name, "")
        return datetime.datetime.fromisoformat(text).timestamp() if text else 0.0
    except ValueError as error:
        raise StatusError(400, f"{name} is not a time: {error}") from error
