"""What the caches cost: memory of a gatekeeper and of a reconciler in a cluster of many governed pods.

    python -m bench.memory

An API server that makes its objects up, as large as real ones, lists them to both; then it has forgotten the past, so
that they list everything once more while they hold it. The chart's requests and limits follow from the figures.
"""

import asyncio
import contextlib
import datetime
import json
import platform
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from aiohttp import web

from altershield.api import labels, names
from altershield.api.meta import rfc3339
from altershield.api.resources import GROUP
from altershield.pki import Authority
from altershield.processes import free_ports
from altershield.serving import until_ready

RESULTS = Path(__file__).parent / "results" / "memory.json"
PODS = 100_000
REPLICAS = 20
_READY_SECONDS = 300.0
_NUMBER = b"@NUMBER@"
_WORKLOAD = b"@WORKLOAD@"
_VERSION = "b" * 32
_NOW = rfc3339(time.time())


@dataclass(frozen=True)
class Figure:
    """MiB: in the caches at rest, and at most, while all was listed anew. Seconds until ready."""

    resident: int
    peak: int
    seconds: float


class Api:
    """Lists and watches, of as many objects as `pods` make."""

    def __init__(self, pods: int) -> None:
        self._counts = {
            "namespaces": 1,
            "deployments": pods // REPLICAS,
            "replicasets": pods // REPLICAS,
            "pods": pods,
            "changeworkloads": pods // REPLICAS,
            "changepods": pods,
            "opsconfiginfoes": 0,
        }
        self._version = 1
        self._changed = asyncio.Event()
        self.relisted: set[tuple[str, str]] = set()

    def forget(self) -> None:
        """End all watches, and remember nothing of the past."""
        self._version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        plural = request.path.rstrip("/").rpartition("/")[2]
        if "/leases/" in request.path:
            return web.json_response(_lease())
        if request.method != "GET" or plural not in self._counts:
            return web.json_response({"kind": "Status", "code": 403, "message": "look on only"}, status=403)
        if "watch" in request.query:
            return await self._watch(request)
        return self._page(request, plural)

    def _page(self, request: web.Request, plural: str) -> web.Response:
        unversioned = request.query.get("labelSelector", "").startswith("!")
        count = 0 if unversioned else self._counts[plural]
        start, limit = int(request.query.get("continue", 0)), int(request.query["limit"])
        end = min(start + limit, count)
        template = json.dumps(_TEMPLATES[plural]).encode() if count else b""
        items = (
            template.replace(_NUMBER, b"%07d" % number).replace(
                _WORKLOAD, b"%07d" % (number % (count // REPLICAS or 1))
            )
            for number in range(start, end)
        )
        metadata = {"resourceVersion": str(self._version)} | ({"continue": str(end)} if end < count else {})
        if end == count:
            self.relisted.add((str(self._version), f"{request.path}?{request.query.get('labelSelector', '')}"))
        body = b'{"metadata":%s,"items":[%s]}' % (json.dumps(metadata).encode(), b",".join(items))
        return web.Response(body=body, content_type="application/json")

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        if request.query["resourceVersion"] != str(self._version):
            return web.json_response({"kind": "Status", "code": 410, "reason": "Expired", "message": "old"}, status=410)
        changed = self._changed
        response = web.StreamResponse()
        await response.prepare(request)
        await changed.wait()
        return response


def _lease() -> dict[str, Any]:
    """Somebody else leads."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": "another", "leaseDurationSeconds": 3600, "renewTime": now, "acquireTime": now}
    return {"metadata": {"name": names.LEASE, "resourceVersion": "1"}, "spec": spec}


def _metadata(name: str, owner: tuple[str, str, str] | None = None) -> dict[str, Any]:
    """As an API server gives it, bookkeeping and all. `owner` is its apiVersion, kind and name."""
    managed = {"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:spec": {"f:x": "." * 1500}}}
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": f"00000000-0000-0000-0000-{name}",
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": _NOW,
        "labels": {
            "app": "web",
            "pod-template-hash": "6595bcbbb",
            "app.kubernetes.io/name": "web",
            labels.VERSION: _VERSION,
            labels.DEFENSE_STATUS: labels.PROCESSED,
            labels.OPERATE_FINISHED: "1790000000",
        },
        "annotations": {"example.com/config-checksum": "c" * 64, "deployment.kubernetes.io/revision": "12"},
        "managedFields": [managed],
    }
    if owner:
        version, kind, of = owner
        reference = {"apiVersion": version, "kind": kind, "name": of, "uid": f"00000000-0000-0000-0000-{of}"}
        metadata["ownerReferences"] = [reference | {"controller": True, "blockOwnerDeletion": True}]
    return metadata


def _templates() -> dict[str, dict[str, Any]]:
    number, workload = _NUMBER.decode(), _WORKLOAD.decode()
    record = f"web-{workload}--x--{_VERSION}"
    env = [{"name": f"SETTING_{each}", "value": "v" * 40} for each in range(20)]
    container = {"name": "web", "image": "registry.example.com/shop/web:1.2.3", "env": env}
    template = {"metadata": {"labels": {"app": "web", labels.VERSION: _VERSION}}, "spec": {"containers": [container]}}
    sets = {"replicas": REPLICAS, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    ready = [
        {"type": kind, "status": "True", "lastTransitionTime": _NOW, "lastProbeTime": None}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    running = {"name": "web", "ready": True, "restartCount": 0, "started": True, "image": container["image"]}
    info = {
        "pod": f"web-{number}",
        "app": f"web-{workload}",
        "hostName": f"web-{number}",
        "namespace": "shop",
        "workSpace": "default",
        "ip": "10.0.0.1",
        "verdict": "pass",
    }
    times = {"createTime": "2026-11-20 10:00:00", "createTimeUnix": 1790000000}
    counted = {"replicas": REPLICAS, "readyReplicas": REPLICAS, "availableReplicas": REPLICAS, "observedGeneration": 1}
    verified = {"type": "Verified", "status": "True", "reason": "PodsPassed", "message": "20 of 20 pods passed"}
    conditions = [verified | {"lastTransitionTime": _NOW, "observedGeneration": 1}]
    governed = {"name": "shop", "uid": "shop", "labels": {labels.GOVERNED: labels.GOVERNED_VALUE}}
    spec: dict[str, Any] = {"changeWorkloadId": record, "serviceName": f"web-{workload}", "appName": f"web-{workload}"}
    spec |= {"reversion": "12", "countThreshold": 1, "waitTimeThreshold": 60}
    return {
        "namespaces": {"metadata": governed | {"creationTimestamp": _NOW}},
        "deployments": {"metadata": _metadata(f"web-{number}"), "spec": sets, "status": counted},
        "replicasets": {
            "metadata": _metadata(f"set-{number}", ("apps/v1", "Deployment", f"web-{number}")),
            "spec": sets,
            "status": counted,
        },
        "pods": {
            "metadata": _metadata(f"pod-{number}", ("apps/v1", "ReplicaSet", f"set-{workload}")),
            "spec": template["spec"],
            "status": {
                "phase": "Running",
                "podIP": "10.0.0.1",
                "startTime": _NOW,
                "conditions": ready,
                "containerStatuses": [running | {"state": {"running": {"startedAt": _NOW}}, "lastState": {}}],
            },
        },
        "changeworkloads": {
            "metadata": _metadata(f"web-{number}--x--{_VERSION}", ("apps/v1", "Deployment", f"web-{number}")),
            "spec": spec | times,
            "status": {
                "status": "Success",
                "defenseCheckPassPods": [info | {"pod": f"web-{number}-{each}"} for each in range(REPLICAS)],
                "conditions": conditions,
            },
        },
        "changepods": {
            "metadata": _metadata(f"{record}--x--{number}", (f"{GROUP}/v1alpha1", "ChangeWorkload", record)),
            "spec": {"changeWorkloadId": record, "podInfos": [info], **times},
            "status": {"status": "ExecuteDone", "message": "PreFailed", "podResults": [info], "conditions": conditions},
        },
    }


_TEMPLATES = _templates()


async def measure(module: str, pods: int) -> Figure:
    """Start it, wait until it is ready, have it list everything again."""
    api = Api(pods)
    with tempfile.TemporaryDirectory() as name:
        async with _serving(api) as url:
            directory = Path(name)
            kubeconfig = directory / "kubeconfig"
            kubeconfig.write_text(yaml.safe_dump(_kubeconfig(url)))
            port, metrics_port = free_ports(2)
            options = ["--kubeconfig", str(kubeconfig), "--metrics-port", str(metrics_port)]
            if module == "gatekeeper":
                options += ["--host", "127.0.0.1", "--port", str(port), *_certificate(directory)]
            began = time.monotonic()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", module, *options, stderr=asyncio.subprocess.DEVNULL
            )
            try:
                async with asyncio.timeout(_READY_SECONDS):
                    await until_ready([metrics_port])
                seconds = time.monotonic() - began
                listed = len(api.relisted)
                resident = _memory(process.pid, "VmRSS")
                api.forget()
                async with asyncio.timeout(_READY_SECONDS):
                    while len(api.relisted) < 2 * listed:  # noqa: ASYNC110  (it is another process)
                        await asyncio.sleep(0.2)
                await asyncio.sleep(2)  # until the last page is read
                return Figure(resident, _memory(process.pid, "VmHWM"), round(seconds, 1))
            finally:
                process.kill()
                await process.wait()


@contextlib.asynccontextmanager
async def _serving(api: Api) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.handle)
    runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "clusters": [{"name": "bench", "cluster": {"server": url}}],
        "users": [{"name": "bench", "user": {"token": "bench"}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    }


def _certificate(directory: Path) -> list[str]:
    pair = Authority.create("bench", lifetime=datetime.timedelta(days=1)).issue(
        "gatekeeper", hosts=["127.0.0.1"], lifetime=datetime.timedelta(days=1)
    )
    (directory / "tls.crt").write_bytes(pair.certificate)
    (directory / "tls.key").write_bytes(pair.key)
    return ["--tls-cert-file", str(directory / "tls.crt"), "--tls-private-key-file", str(directory / "tls.key")]


def _memory(pid: int, field: str) -> int:
    """MiB of the process, as /proc says."""
    status = Path(f"/proc/{pid}/status").read_text()
    (kib,) = (int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{field}:"))
    return kib // 1024


def main(pods: Annotated[int, typer.Option(help="Governed pods, twenty to a Deployment.")] = PODS) -> None:
    """Measure both."""
    figures = {module: asyncio.run(measure(module, pods)) for module in ("gatekeeper", "reconciler")}
    for module, figure in figures.items():
        print(f"{module}: {figure.resident} MiB, at most {figure.peak} MiB; ready after {figure.seconds} s")
    taken = {"python": platform.python_version(), "pods": pods} | {key: asdict(each) for key, each in figures.items()}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(taken, indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)
