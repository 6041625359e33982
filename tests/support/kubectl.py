"""kubectl as a user in one namespace."""

import atexit
import contextlib
import functools
import http.client
import json
import subprocess
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml

from altershield.api import resources
from altershield.api.resources import Resource
from altershield.releases import history
from altershield.workloads import ADAPTERS

Json = dict[str, Any]

_READ_DIRECTLY = (
    *(adapter.resource for adapter in ADAPTERS),
    resources.CHANGE_PODS,
    resources.CHANGE_WORKLOADS,
    resources.CONFIG_MAPS,
    history.RESOURCE,
    resources.DEFENSE_POLICIES,
    resources.DISRUPTION_BUDGETS,
    resources.EVENTS,
    resources.JOBS,
    resources.MUTATING_WEBHOOKS,
    resources.NAMESPACES,
    resources.OPS_CONFIG_INFOS,
    resources.POD_DELETION_FLOW_CONTROLS,
    resources.POD_UNAVAILABLE_BUDGETS,
    resources.PODS,
    resources.REPLICA_SETS,
    resources.SECRETS,
    resources.SERVICE_ACCOUNTS,
    resources.VALIDATING_WEBHOOKS,
)
_RESOURCES = {
    name: each
    for each in _READ_DIRECTLY
    for name in (each.kind.lower(), each.plural, *([f"{each.plural}.{each.group}"] if each.group else []))
}
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_SELECTORS = {"-l": "labelSelector", "--field-selector": "fieldSelector"}


class Kubectl:
    """The real kubectl. Reads, `create`, `patch`, the creation by `apply` and `delete_namespaces` go through one
    `kubectl proxy` per kubeconfig where they can: a process takes longer than the request."""

    def __init__(self, kubeconfig: Path, namespace: str = "default", *more: str) -> None:
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self._more = more

    def run(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", "--kubeconfig", str(self.kubeconfig), "-n", self.namespace, *self._more, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """stdout; AssertionError with stderr where kubectl fails."""
        if not self._more and self._wrote_directly(arguments, stdin):
            return ""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}{done.stdout}"
        return done.stdout

    def _wrote_directly(self, arguments: tuple[str, ...], stdin: str | None) -> bool:
        """Whether a request without a kubectl process did what `create -f -`, `create namespace` or `patch` does. If it
        was refused, kubectl sends it again, and says why."""
        match arguments:
            case ("create", "-f", "-") if stdin is not None:
                obj = yaml.safe_load(stdin)
            case ("create", "namespace", name):
                obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            case ("patch", *rest) if (found := _patch(self.namespace, rest)) is not None:
                return self.request("PATCH", *found)[0] == 200
            case _:
                return False
        resource = _RESOURCES.get(obj["kind"].lower())
        if resource is None:
            return False
        path = resource.path(obj["metadata"].get("namespace", self.namespace))
        return self.request("POST", f"{path}?fieldManager=kubectl-create", obj)[0] == 201

    def json(self, *arguments: str) -> Json:
        """The output of `kubectl get ARGUMENTS -o json`: an object, or a list with `items`."""
        path = None if self._more else _path(self.namespace, arguments)
        if path is None:
            result: Json = json.loads(self("get", *arguments, "-o", "json"))
            return result
        status, found = _proxy(self.kubeconfig).get(path)
        assert status == 200, f"kubectl get {' '.join(arguments)}: {found}"
        for each in found.get("items", [found]):
            each["metadata"].pop("managedFields", None)  # kubectl does not show them
            each.setdefault("apiVersion", found["apiVersion"])  # the items of a list do not have these two
            each.setdefault("kind", found["kind"].removesuffix("List"))
        return found

    def exists(self, resource: str, name: str) -> bool:
        path = None if self._more else _path(self.namespace, (resource, name))
        if path is None:
            return self.run("get", resource, name).returncode == 0
        status, found = _proxy(self.kubeconfig).get(path)
        assert status in (200, 404), f"kubectl get {resource} {name}: {found}"
        return status == 200

    def delete_namespaces(self, *names: str) -> None:
        """Begin to delete these namespaces, or that of this object."""
        for name in names or (self.namespace,):
            status, found = _proxy(self.kubeconfig).request("DELETE", resources.NAMESPACES.path(name=name))
            assert status in (200, 202, 404, 409), found  # 409: it is being deleted

    def request(self, method: str, path: str, body: Json | None = None, type_: str = "json") -> tuple[int, Json]:
        """Send a request, past kubectl's own rules. Returns the status and the answer."""
        sent = None if body is None else json.dumps(body)
        return _proxy(self.kubeconfig).request(method, path, sent, f"application/{type_}")

    def create(self, resource: Resource, manifest: str, *, dry_run: bool = False) -> tuple[int, Json]:
        """POST a manifest (YAML or JSON). Returns the status and the answer."""
        path = resource.path(self.namespace)
        return _proxy(self.kubeconfig).request("POST", path + ("?dryRun=All" if dry_run else ""), manifest)

    def merge(self, resource: str, name: str, patch: Json, subresource: str = "") -> tuple[int, Json]:
        """Send a merge patch. Returns the status and the answer."""
        path = _RESOURCES[resource].path(self.namespace, name, subresource)
        return self.request("PATCH", path, patch, "merge-patch+json")

    def apply(self, manifest: str) -> None:
        """`kubectl apply -f -`. AssertionError if it fails."""
        if not self._more and (obj := yaml.safe_load(manifest))["kind"].lower() in _RESOURCES:
            resource, metadata = _RESOURCES[obj["kind"].lower()], obj["metadata"]
            applied = {**(metadata.get("annotations") or {}), _APPLIED: json.dumps(obj)}
            made = json.dumps({**obj, "metadata": {**metadata, "annotations": applied}})
            path = resource.path(metadata.get("namespace", self.namespace))
            if (
                _proxy(self.kubeconfig).request("POST", f"{path}?fieldManager=kubectl-client-side-apply", made)[0]
                == 201
            ):
                return
        self("apply", "-f", "-", stdin=manifest)

    def labels(self, *arguments: str) -> dict[str, str]:
        return dict(self.json(*arguments)["metadata"].get("labels") or {})

    def wait(self, what: str, condition: str, seconds: int = 60) -> None:
        self("wait", f"--for={condition}", what, f"--timeout={seconds}s")


def _path(namespace: str, arguments: tuple[str, ...]) -> str | None:
    """The URL path and query of `kubectl get ARGUMENTS`; None for arguments that this function does not know."""
    first, *rest = arguments
    resource: Resource | None = _RESOURCES.get(first.partition("/")[0])
    if resource is None:
        return None
    name, query = first.partition("/")[2], {}
    while rest:
        word = rest.pop(0)
        if word in _SELECTORS and rest:
            query[_SELECTORS[word]] = rest.pop(0)
        elif word == "--all-namespaces":
            namespace = ""
        elif name or word.startswith("-"):
            return None
        else:
            name = word
    if name and (query or (resource.namespaced and not namespace)):
        return None
    return resource.path(namespace, name) + (f"?{urlencode(query)}" if query else "")


def _patch(namespace: str, arguments: list[str]) -> tuple[str, Json, str] | None:
    """The URL path, the body and the media type of `kubectl patch ARGUMENTS`; None for arguments that this function
    does not know."""
    words: list[str] = []
    options = {"--type": "strategic", "--subresource": "", "-p": ""}
    rest = iter(arguments)
    for word in rest:
        name, _, value = word.partition("=")
        if name in options:
            options[name] = value or next(rest)
        elif word.startswith("-"):
            return None
        else:
            words += word.split("/")
    resource = _RESOURCES.get(words[0])
    if resource is None or len(words) != 2:
        return None
    types = {"strategic": "strategic-merge-patch+json", "merge": "merge-patch+json", "json": "json-patch+json"}
    path = resource.path(namespace, words[1], options["--subresource"])
    return f"{path}?fieldManager=kubectl-patch", json.loads(options["-p"]), types[options["--type"]]


def _warnings(answer: http.client.HTTPResponse) -> list[str]:
    """The texts of the headers `Warning: 299 - "TEXT"`."""
    return [json.loads(value.split(" ", 2)[2]) for value in answer.headers.get_all("Warning") or ()]


class _Proxy:
    """`kubectl proxy`, with one connection per thread."""

    def __init__(self, kubeconfig: Path) -> None:
        self._process = subprocess.Popen(
            ["kubectl", "--kubeconfig", str(kubeconfig), "proxy", "--port=0"], stdout=subprocess.PIPE, text=True
        )
        atexit.register(self._process.kill)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()  # Starting to serve on 127.0.0.1:40001
        address = urlsplit(f"//{line.split()[-1]}")
        assert address.hostname is not None
        self._host_and_port = address.hostname, address.port
        self._connections = threading.local()

    def get(self, path: str) -> tuple[int, Json]:
        """The status and the answer."""
        for attempt in range(2):
            connection = self._connection()
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, json.loads(answer.read())
            except (http.client.HTTPException, OSError):  # the proxy closed the connection while it was idle
                connection.close()
                if attempt:
                    raise
        raise AssertionError

    def request(
        self, method: str, path: str, manifest: str | None = None, content_type: str = "application/yaml"
    ) -> tuple[int, Json]:
        """Send a request that changes something. It has a connection of its own, so that it is never repeated. The
        warnings of the API server are in the answer, as `warnings`."""
        connection = http.client.HTTPConnection(*self._host_and_port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body=manifest, headers={"Content-Type": content_type})
            answer = connection.getresponse()
            found = json.loads(answer.read())
            return answer.status, {**found, "warnings": warnings} if (warnings := _warnings(answer)) else found

    def _connection(self) -> http.client.HTTPConnection:
        if not hasattr(self._connections, "connection"):
            self._connections.connection = http.client.HTTPConnection(*self._host_and_port, timeout=60)
        connection: http.client.HTTPConnection = self._connections.connection
        return connection


@functools.cache
def _proxy(kubeconfig: Path) -> _Proxy:
    return _Proxy(kubeconfig)
