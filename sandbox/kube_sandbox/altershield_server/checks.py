"""Runs the checks of nodes in time, as the script says."""

import asyncio
import math
from collections.abc import Awaitable, Callable

from kube_sandbox.altershield_server import rules, script
from kube_sandbox.altershield_server.nodes import Node
from kube_sandbox.altershield_server.script import CRASH, FAIL, PASS, Plan, Script
from kube_sandbox.altershield_server.tasks import Tasks
from kube_sandbox.altershield_server.vocabulary import Stage

Sleep = Callable[[float], Awaitable[object]]
Clock = Callable[[], float]
"""Returns Unix seconds."""

Deliver = Callable[[Node, Stage], Awaitable[None]]
"""Sends the callback of a stage."""

_RULE_VERDICTS = {FAIL: "FAIL", "inconc": "INCONC"}


class Checks:
    def __init__(self, current: Callable[[], Script], deliver: Deliver, tasks: Tasks, clock: Clock, sleep: Sleep):
        self._script = current
        self._deliver = deliver
        self._tasks = tasks
        self._clock = clock
        self._sleep = sleep

    def start(self, node: Node, stage: Stage) -> asyncio.Task[None]:
        """Run a check. The task ends after the callback was sent."""
        check = node.checks[stage]
        check.run += 1
        plan = script.plan(self._script(), stage, node.order.id, node.order.names, node.batch)
        at_once = node.emergency or (plan.verdict == PASS and not plan.rules)
        work = self._pass(node, stage) if at_once else self._run(node, stage, plan, check.run)
        return self._tasks.start(work)

    async def _pass(self, node: Node, stage: Stage) -> None:
        """No rule runs: the node is an emergency, or no rule matches."""
        if (due := node.complete(stage, passed=True, verdict=PASS)) is not None:
            await self._deliver(node, due)

    async def _run(self, node: Node, stage: Stage, plan: Plan, run: int) -> None:
        if plan.start_delay == math.inf:
            return
        await self._sleep(plan.start_delay)
        if not node.begin(stage):
            return
        if plan.verdict == CRASH or node.order.crashes_checks:
            if node.crash(stage):
                await self._deliver(node, stage)
            return
        running = rules.executions(plan.rules, stage, self._now())
        node.checks[stage].add(running)
        if plan.delay < plan.timeout:
            await self._sleep(plan.delay)
            if (due := self._complete(node, stage, plan, run, running)) is not None:
                await self._deliver(node, due)
            return
        await self._sleep(plan.timeout)
        if plan.delay < math.inf:
            self._tasks.start(self._late(node, stage, plan, run, running))
        if node.checks[stage].run == run and node.time_out(stage):
            await self._deliver(node, stage)

    async def _late(self, node: Node, stage: Stage, plan: Plan, run: int, running: list[rules.Execution]) -> None:
        """The result after the step timeout. There is no second callback, unless the result is stored as that of
        POST."""
        await self._sleep(plan.delay - plan.timeout)
        if (due := self._complete(node, stage, plan, run, running)) is not None:
            await self._deliver(node, due)

    def _complete(self, node: Node, stage: Stage, plan: Plan, run: int, running: list[rules.Execution]) -> Stage | None:
        now = self._now()
        for each in running:
            each.end(_RULE_VERDICTS.get(plan.verdict, "PASS"), now)
        if node.checks[stage].run != run:
            return None
        verdict = PASS if plan.verdict == FAIL and _all_ignored(running) else plan.verdict
        return node.complete(stage, passed=verdict in (PASS, "none"), verdict=verdict)

    def _now(self) -> int:
        return int(self._clock() * 1000)


def _all_ignored(running: list[rules.Execution]) -> bool:
    failed = [each for each in running if each.verdict == "FAIL"]
    return bool(failed) and all(each.ignored for each in failed)
