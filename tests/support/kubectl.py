"""kubectl as a user in one namespace."""

import functools
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from kube_base import resources
from kube_base.resources import Resource
from tests.support import arguments
from tests.support.arguments import RESOURCES
from tests.support.polling import HANG, eventually
from tests.support.proxy import Proxy, proxy

Json = dict[str, Any]

_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Kubectl:
    """The real kubectl. Reads, `wait`, the writes of `arguments.write`, the creation by `apply` and `delete_namespaces`
    go through one `kubectl proxy` per kubeconfig where they can: a process takes longer than the request.

    `user` has the options `--as` and `--as-group`."""

    def __init__(self, kubeconfig: Path, namespace: str = "default", *user: str) -> None:
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self._user = user
        self._headers = arguments.impersonation(user)

    @property
    def _proxy(self) -> Proxy:
        return proxy(self.kubeconfig)

    def run(self, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", "--kubeconfig", str(self.kubeconfig), "-n", self.namespace, *self._user, *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
        )

    def __call__(self, *words: str, stdin: str | None = None) -> str:
        """stdout, or "" without a kubectl process. AssertionError with stderr where kubectl fails."""
        if self._wrote_directly(words, stdin):
            return ""
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}{done.stdout}"
        return done.stdout

    def _wrote_directly(self, words: tuple[str, ...], stdin: str | None) -> bool:
        """Whether a request without a kubectl process did what kubectl does. If it was refused, kubectl sends it again,
        and says why."""
        write = arguments.write(self.namespace, words, stdin)
        if write is None:
            return False
        status, answer = self.request(write.method, f"{write.path}?{write.query}", write.body, write.type)
        if status >= 300:
            return False
        if write.waits:
            uid = (answer.get("details") or answer["metadata"])["uid"]
            path = write.path
            eventually(lambda: self._is_gone(path, uid), f"the end of {path}")
        return True

    def _is_gone(self, path: str, uid: str) -> bool:
        status, found = self._proxy.get(path, self._headers)
        return status == 404 or (status == 200 and found["metadata"]["uid"] != uid)

    def json(self, *words: str) -> Json:
        """The output of `kubectl get WORDS -o json`: an object, or a list with `items`."""
        path = arguments.read(self.namespace, words)
        if path is None:
            result: Json = json.loads(self("get", *words, "-o", "json"))
            return result
        status, found = self._proxy.get(path, self._headers)
        assert status == 200, f"kubectl get {' '.join(words)}: {found}"
        for each in found.get("items", [found]):
            each["metadata"].pop("managedFields", None)  # kubectl does not show them
            each.setdefault("apiVersion", found["apiVersion"])  # the items of a list do not have these two
            each.setdefault("kind", found["kind"].removesuffix("List"))
        return found

    def exists(self, resource: str, name: str) -> bool:
        path = arguments.read(self.namespace, (resource, name))
        if path is None:
            return self.run("get", resource, name).returncode == 0
        status, found = self._proxy.get(path, self._headers)
        assert status in (200, 404), f"kubectl get {resource} {name}: {found}"
        return status == 200

    def may_list(self, resource: str) -> bool:
        return self._proxy.get(RESOURCES[resource].path(self.namespace), self._headers)[0] == 200

    def config(self) -> Json:
        """The kubeconfig with one context. It refers to no other files."""
        found: Json = json.loads(_config(self.kubeconfig))
        return found

    def delete_namespaces(self, *names: str) -> None:
        """Begin to delete these namespaces, or that of this object."""
        for name in names or (self.namespace,):
            status, found = self.request("DELETE", resources.NAMESPACES.path(name=name))
            assert status in (200, 202, 404, 409), found  # 409: it is being deleted

    def request(
        self, method: str, path: str, body: Json | list[Json] | None = None, type_: str = "json"
    ) -> tuple[int, Json]:
        """Send a request, past kubectl's own rules. Returns the status and the answer."""
        sent = None if body is None else json.dumps(body)
        return self._proxy.request(method, path, sent, f"application/{type_}", self._headers)

    def create(self, resource: Resource, manifest: str, *, dry_run: bool = False) -> tuple[int, Json]:
        """POST a manifest (YAML or JSON). Returns the status and the answer."""
        path = resource.path(self.namespace)
        return self._proxy.request("POST", path + ("?dryRun=All" if dry_run else ""), manifest, headers=self._headers)

    def merge(self, resource: str, name: str, patch: Json, subresource: str = "") -> tuple[int, Json]:
        """Send a merge patch. Returns the status and the answer."""
        path = RESOURCES[resource].path(self.namespace, name, subresource)
        return self.request("PATCH", path, patch, "merge-patch+json")

    def apply(self, manifest: str) -> None:
        """`kubectl apply -f -`. AssertionError if it fails. The request that creates an object needs no process."""
        obj = arguments.loaded(manifest)
        resource = RESOURCES.get(obj["kind"].lower())
        if resource is not None:
            metadata = obj["metadata"]
            annotations = {**(metadata.get("annotations") or {}), _APPLIED: json.dumps(obj)}
            path = resource.path(metadata.get("namespace", self.namespace))
            made = {**obj, "metadata": {**metadata, "annotations": annotations}}
            if self.request("POST", f"{path}?fieldManager=kubectl-client-side-apply", made)[0] == 201:
                return
        self("apply", "-f", "-", stdin=manifest)

    def labels(self, *words: str) -> dict[str, str]:
        return dict(self.json(*words)["metadata"].get("labels") or {})

    def wait(self, what: str, condition: str) -> None:
        """`kubectl wait WHAT --for=CONDITION`. AssertionError if it fails, as it does at once without the object."""
        kind, _, name = what.partition("/")
        resource, wanted = RESOURCES.get(kind), arguments.condition(condition)
        if resource is None or wanted is None:
            self("wait", f"--for={condition}", what, f"--timeout={HANG:.0f}s")
            return
        found = None
        for obj in self._states(resource, name):
            found = wanted.value(obj)
            if found == wanted.wanted:
                return
        raise AssertionError(f"waited {HANG:.0f} s for {condition} of {what}; last seen: {found!r}")

    def _states(self, resource: Resource, name: str) -> Iterator[Json]:
        """The states of an object, from the present one on; {} when it is deleted."""
        status, found = self._proxy.get(resource.path(self.namespace, name), self._headers)
        assert status == 200, f"kubectl wait {resource.plural}/{name}: {found}"
        yield found
        query = urlencode({"fieldSelector": f"metadata.name={name}"})
        for event in self._proxy.watch(f"{resource.path(self.namespace)}?{query}", self._headers):
            yield {} if event["type"] == "DELETED" else event["object"]


@functools.cache
def _config(kubeconfig: Path) -> str:
    return Kubectl(kubeconfig)("config", "view", "--raw", "--minify", "--flatten", "-o", "json")
