"""Loads servers with wrk, in turns: each alone on its core, while wrk sends from another."""

import asyncio
import json
import os
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness.servers import LOOPBACK, Server, running
from kube_base.errors import UsageError

SERVER_CORE, CLIENT_CORE = 0, 1
CONNECTIONS = 8
_WARM_UP_SECONDS = 1

_SCRIPT = """
local requests, next_one = {}, 0
function init(args)
  for i = 1, #args do
    local file = io.open(args[i], "rb")
    requests[i] = wrk.format("POST", nil, {["Content-Type"] = "application/json"}, file:read("*a"))
    file:close()
  end
end
function request()
  next_one = next_one % #requests + 1
  return requests[next_one]
end
function done(summary, latency, _)
  local errors = summary.errors
  io.stderr:write(string.format(
    '{"requests": %d, "seconds": %f, "p50": %f, "p99": %f, "errors": %d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
"""


@dataclass(frozen=True)
class Run:
    """One run of wrk: requests per second, latencies in milliseconds, and the server's CPU time per request in
    microseconds, which depends least on other load of the machine."""

    rate: float
    p50: float
    p99: float
    cpu: float


@dataclass(frozen=True)
class Compared:
    """Medians over the rounds. `share` is the rate relative to another server in the same round, `times` is the p99
    relative to that server's."""

    rate: float
    share: float
    p99: float
    times: float
    cpu: float


def check_machine() -> None:
    """UsageError if wrk or a core is missing."""
    if shutil.which("wrk") is None:
        raise UsageError("wrk is not on PATH; install it (Debian: apt-get install wrk)")
    if len(os.sched_getaffinity(0)) < 2:
        raise UsageError("two cores are needed, one for the server and one for the load")


async def in_turns(servers: Sequence[Server], path: str, bodies: Sequence[Path], seconds: float) -> list[Run]:
    """Warm all servers up, then load one after the other."""
    for server in servers:
        await load(server, path, bodies, _WARM_UP_SECONDS)
    return [await load(server, path, bodies, seconds) for server in servers]


async def load(server: Server, path: str, bodies: Sequence[Path], seconds: float) -> Run:
    """Send the bodies in turn. UsageError if a request fails."""
    script = bodies[0].parent / "wrk.lua"
    script.write_text(_SCRIPT)
    said, before = bodies[0].parent / "wrk.log", server.cpu
    command = [
        *("wrk", "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", "--latency", "-s", str(script)),
        *(f"https://{LOOPBACK}:{server.port}{path}", "--", *map(str, bodies)),
    ]
    async with running(command, log=said, core=CLIENT_CORE, stdout=asyncio.subprocess.DEVNULL) as process:
        await process.wait()
    found = json.loads(said.read_text().splitlines()[-1])
    if found["errors"]:
        failed = f"{found['errors']} of {found['requests']} requests to {path} failed"
        raise UsageError(f"{failed} or took longer than 2 s; run this on a machine without other work")
    cpu = (server.cpu - before) / found["requests"] * 1e6
    return Run(found["requests"] / found["seconds"], found["p50"], found["p99"], cpu)


def compared(rounds: Sequence[Sequence[Run]], own: int, other: int) -> Compared:
    """The runs of one server compared with those of another. Each round has a run of each server, by number."""

    def median(*values: float) -> float:
        return round(statistics.median(values), 3)

    return Compared(
        rate=median(*(runs[own].rate for runs in rounds)),
        share=median(*(runs[own].rate / runs[other].rate for runs in rounds)),
        p99=median(*(runs[own].p99 for runs in rounds)),
        times=median(*(runs[own].p99 / runs[other].p99 for runs in rounds)),
        cpu=median(*(runs[own].cpu for runs in rounds)),
    )
