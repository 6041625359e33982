"""Mutants of the leader election."""

from tests.mutants.mutant import Source

SOURCES = (
    Source(
        "altershield/kube/lease.py",
        ("tests/fault/test_lease.py",),
        (
            ("if lease_duration < MIN_LEASE_DURATION:", "if lease_duration <= MIN_LEASE_DURATION:"),
            ("if lease_duration < MIN_LEASE_DURATION:", "if False:"),
            ("    async with client.with_own_connections() as own:\n", "    own = client\n    if True:\n"),
            ("        while not ended:\n", "        if not ended:\n"),
            ("max(1.0, lock.lease_duration * _RETRY_PERIOD)", "1.0"),
            ("max(1.0, lock.lease_duration * _RETRY_PERIOD)", "lock.lease_duration"),
            ("and not election_task.done() and lock.left > 0:", "and lock.left > 0:"),
            ("and not election_task.done() and lock.left > 0:", "and not election_task.done():"),
            ("timeout=lock.left, return_when", "timeout=None, return_when"),
            ("            work.result()\n            return True\n", "            return True\n"),
            (
                "            work.result()\n            return True\n",
                "            work.result()\n            return False\n",
            ),
            ("            await _stop(work)  # the", "            work.cancel()  # the"),
            ("        await lock.release()\n", ""),
            ("    await asyncio.wait((task,))\n    if not", "    if False and not"),
            ("lease_duration * _RENEW_DEADLINE", "lease_duration"),
            (
                "return self._renewed + self.renew_deadline - _now()",
                "return self._renewed + self.lease_duration - _now()",
            ),
            (
                "        except NotFoundError:\n            missing = True",
                "        except ZeroDivisionError:\n            missing = True",
            ),
            ('            self._report("read", error)\n', "            pass\n"),
            (
                '            self._report("read", error)\n            return\n',
                '            self._report("read", error)\n',
            ),
            ('        self._reported.pop("read", None)\n', ""),
            ("if not self._has_other_holder:", "if True:"),
            (
                "if not self._has_other_holder:",
                "if not self._spec.holder_identity or self._spec.holder_identity == self.identity:",
            ),
            ("if not self._has_other_holder:", "if missing or not self._has_other_holder:"),
            ("self._renew(create=missing)", "self._renew(create=False)"),
            ("        if not self.won.is_set():\n            return\n        try", "        try"),
            ("            await self._read()  # a", "            pass  # a"),
            (
                "            if self._spec.holder_identity == self.identity:\n                now",
                "            if True:\n                now",
            ),
            ("leaseDurationSeconds=1, acquire", "leaseDurationSeconds=15, acquire"),
            ('holderIdentity="", ', 'holderIdentity="nobody", '),
            (
                "if not self._spec.holder_identity or self._spec.holder_identity == self.identity:",
                "if self._spec.holder_identity == self.identity:",
            ),
            ("self._spec.lease_duration_seconds or self.lease_duration", "self.lease_duration"),
            ("self._spec.lease_duration_seconds or self.lease_duration", "self._spec.lease_duration_seconds or 0"),
            ("_now() < self._unchanged_since + duration", "True"),
            (
                "leaseDurationSeconds=math.ceil(self.lease_duration)",
                "leaseDurationSeconds=math.floor(self.lease_duration)",
            ),
            ("self._spec.acquire_time if ours and self._spec.acquire_time else now", "now"),
            ("self._spec.acquire_time if ours and self._spec.acquire_time else now", "self._spec.acquire_time or now"),
            ("(0 if ours or create else 1)", "(0 if create else 1)"),
            ("(0 if ours or create else 1)", "(0 if ours else 1)"),
            ("(0 if ours or create else 1)", "0"),
            ('"renew" if self.won.is_set() else "take"', '"renew"'),
            ("        self._renewed = sent\n", "        self._renewed = _now()\n"),
            ("        self._renewed = sent\n", ""),
            ("        self._reported.clear()\n", ""),
            ('{**(self._lease.get("spec") or {}), **spec}', "spec"),
            ("asyncio.timeout(self.renew_deadline / 2)", "asyncio.timeout(None)"),
            (
                "        except TimeoutError as error:\n            raise KubernetesError",
                "        except ZeroDivisionError as error:\n            raise KubernetesError",
            ),
            ("        except msgspec.ValidationError as error:\n", "        except ZeroDivisionError as error:\n"),
            ("        if spec != self._spec:\n", "        if True:\n"),
            ("            self._unchanged_since = _now()\n", "            pass\n"),
            ("        if self._reported.get(verb) != cause:\n", "        if True:\n"),
            ("            self._reported[verb] = cause\n", ""),
        ),
        equivalent=(
            (
                "        await _stop(election_task)\n",
                "        election_task.cancel()\n",
                "The election ends at its next step, and the release, which reads the Lease first, takes more steps.",
            ),
            (
                "if not self._spec.holder_identity or self._spec.holder_identity == self.identity:",
                "if not self._spec.holder_identity:",
                "It makes a difference only for our own Lease, and that one is written whether or not it has run out.",
            ),
        ),
    ),
)
