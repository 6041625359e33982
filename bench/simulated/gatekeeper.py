"""What the gatekeeper makes of the releases of a simulated fleet."""

import base64
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import jsonpatch

from altershield.admission.webhooks import webhook_path
from altershield.api import labels
from altershield.workloads.adapter import template_of
from altershield.workloads.workload import fingerprint_of
from bench.harness.reviews import review
from bench.simulated.api import Object, Traffic
from kube_base.resources import DEPLOYMENTS

Review = Callable[[Object, Object], Awaitable[Object]]
"""Gets the old and the new Deployment. Returns the new one as it is stored."""


async def labeled(_: Object, new: Object) -> Object:
    """The Deployment with the labels that a gatekeeper would set, for measurements without a gatekeeper."""
    template, own = new["spec"]["template"], new["metadata"]["labels"]
    template["metadata"]["labels"].pop(labels.VERSION, None)
    version = fingerprint_of(template_of(template))
    own[labels.VERSION] = template["metadata"]["labels"][labels.VERSION] = version
    own.pop(labels.DEFENSE_STATUS, None)
    return new


@contextlib.asynccontextmanager
async def reviewing(gatekeeper: str, traffic: Callable[[], Traffic]) -> AsyncIterator[Review]:
    """Have a gatekeeper review the releases, at most 50 at a time. `gatekeeper` is its URL, `traffic` counts."""
    connector = aiohttp.TCPConnector(limit=50)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def reviewed(old: Object, new: Object) -> Object:
            for mutating in (True, False):
                url = f"{gatekeeper}{webhook_path(DEPLOYMENTS, mutating=mutating)}"
                began = time.perf_counter()
                async with session.post(url, data=_body(old, new), headers=_JSON, ssl=False) as answer:
                    text = await answer.read()
                traffic().admissions.append(time.perf_counter() - began)
                if answer.status != 200:
                    raise RuntimeError(f"the gatekeeper answered {answer.status}: {text[:500].decode()}")
                response = json.loads(text)["response"]
                traffic().denied += not response["allowed"]
                if patch := response.get("patch"):
                    new = jsonpatch.apply_patch(new, json.loads(base64.b64decode(patch)))
            return new

        yield reviewed


_JSON = {"Content-Type": "application/json"}


def _body(old: Object, new: Object) -> bytes:
    metadata, type_ = old["metadata"], {"kind": DEPLOYMENTS.kind, "apiVersion": DEPLOYMENTS.api_version}
    made = review(DEPLOYMENTS, "UPDATE", metadata["namespace"], metadata["name"], type_ | new, type_ | old)
    return json.dumps(made).encode()
