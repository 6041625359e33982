"""Mutants of the callback port and of the TLS of listeners."""

from tests.mutants.mutant import Source

_T = "tests/unit/reconciler/endpoints/"
_CALLBACKS = (_T + "test_callbacks.py",)
_TOOLS = (_T + "test_tools.py",)
_CHECKS = (_T + "test_check_callbacks.py",)

SOURCES = (
    Source(
        "altershield/process/certificate.py",
        ("tests/unit/gatekeeper/test_clients.py",),
        (
            ("            raise ssl.SSLWantReadError from error\n", "            raise\n"),
            ("            self._failed = error\n", ""),
            ("    context.sslobject_class = _Connection\n", ""),
            ("                context.verify_mode = ssl.CERT_REQUIRED\n", ""),
            ("                context.load_verify_locations(self._client_ca_file)\n", ""),
        ),
    ),
    Source(
        "reconciler/endpoints/signatures.py",
        _CALLBACKS,
        (
            ("if platform != self._platform or ", "if "),
            ("values[0] if len(values) == 1", "values[0] if values"),
            ("if not content.strip() or not signature.verify(", "if not signature.verify("),
            ("        content = signature.body_content(body)\n", "        content = body\n"),
            ("        if abs(away) > SKEW:\n", "        if away > SKEW:\n"),
            ("        if abs(away) > SKEW:\n", "        if -away > SKEW:\n"),
            ("        if abs(away) > SKEW:\n", "        if False:\n"),
            ("        self._replays.use(claim.signature)\n", ""),
            ("        return content\n", "        return body\n"),
            ("        self._replays.give_back(claim.signature)\n", "        pass\n"),
            ("        if not token:\n", "        if self._token is None:\n"),
            (
                "        except UsageError as error:\n            raise missing from error\n",
                "        except UsageError:\n            token = 'x'\n",
            ),
            ("claim.timestamp / 1000 - self._clock()", "claim.timestamp - self._clock()"),
        ),
    ),
    Source(
        "reconciler/endpoints/check_signatures.py",
        _CHECKS,
        (
            ("if len(timestamps) != 1 or len(signatures) != 1:", "if not timestamps or len(signatures) != 1:"),
            ("if len(timestamps) != 1 or len(signatures) != 1:", "if len(timestamps) != 1 or not signatures:"),
            ("not _TIMESTAMP.fullmatch(timestamps[0]) or ", ""),
            ("        if abs(away) > SKEW:\n", "        if away > SKEW:\n"),
            ("        if abs(away) > SKEW:\n", "        if -away > SKEW:\n"),
            ("        if not secret or not hmac.compare_digest(", "        if not hmac.compare_digest("),
            ("not hmac.compare_digest(right, claim.signature)", "False"),
            ("signature(secret, claim.timestamp, body)", "signature(secret, int(self._clock()), body)"),
            ("        except CredentialsError as error:\n", "        except ZeroDivisionError as error:\n"),
            ("        self._replays.use(claim.signature)\n", ""),
            ("        self._replays.forget(claim.signature)\n", "        pass\n"),
        ),
        equivalent=(
            (" or not _SIGNATURE.fullmatch(signatures[0])", "", "such a signature is wrong, which is found out later"),
        ),
    ),
    Source(
        "reconciler/endpoints/places.py",
        (*_CHECKS, _T + "test_access.py", *_TOOLS),
        (
            ("        if not self._free:\n", "        if False:\n"),
            ("        self._free += 1\n", "        pass\n"),
        ),
    ),
    Source(
        "reconciler/endpoints/check_keys.py",
        _CHECKS,
        (
            ("        if not all(informer.synced for informer in self._caches.required):\n", "        if False:\n"),
            (" or batch.metadata.uid != run.uid:", ":"),
            (" or release.metadata.uid != batch.owner.uid:", ":"),
            (" and run.phase in each.phases)", ")"),
            ("if each.name == run.check and", "if"),
            ("        with self._places:\n", "        if True:\n"),
            (" or self._early >= _EARLY:", ":"),
            ("            self._early -= 1\n", "            pass\n"),
            ("                if found is not None:\n                    return found\n", ""),
            ("with_own_connections(max_in_flight=_AT_A_TIME)", "with_own_connections(max_in_flight=50)"),
            ("read(namespace, check", 'read("pay", check'),
            ("except (SecretUnreadableError, TimeoutError) as error:", "except TimeoutError as error:"),
        ),
    ),
    Source(
        "reconciler/endpoints/check_callback.py",
        _CHECKS,
        (
            ("except (msgspec.MsgspecError, ValueError, RecursionError)", "except RecursionError"),
            ("    if run is None:\n", "    if False:\n"),
            ("            return Pass(message)\n", "            return Pass()\n"),
            ("            return Fail(message or ", "            return Fail("),
            ("MAX_BODY = 16 * 1024", "MAX_BODY = 1024 * 1024"),
        ),
    ),
    Source(
        "reconciler/batches/check_callback_receiver.py",
        ("tests/unit/reconciler/batches/test_check_callback_receiver.py",),
        (("        if change_pod.metadata.uid != run.uid:\n", "        if False:\n"),),
    ),
    Source(
        "altershield/kube/backoff.py",
        ("tests/unit/reconciler/batches/test_check_callback_receiver.py",),
        (
            ("        except (ConflictError, NotFoundError) as error:\n", "        except NotFoundError as error:\n"),
            ('attempts: int = 5) -> T:\n    """Call', 'attempts: int = 4) -> T:\n    """Call'),
        ),
    ),
    Source(
        "reconciler/batches/batch_reconciler.py",
        ("tests/unit/reconciler/batches/test_check_callback_receiver.py",),
        (
            ("        if entry is None or entry.start_time_unix != run.started:\n", "        if entry is None:\n"),
            ("        if entry.state not in (CheckState.RUNNING, CheckState.UNKNOWN):\n", "        if False:\n"),
            ("        if status.checks == change_pod.status.checks:\n            return Reception.LATE\n", ""),
            ("answers={(run.check, run.phase): result}", "answers={}"),
        ),
    ),
    Source(
        "reconciler/endpoints/replays.py",
        (_T + "test_replays.py", *_CALLBACKS),
        (
            ("        if used:\n", "        if False:\n"),
            (" and len(self._used) >= self._most:", " and False:"),
            ("        if signature not in self._used and ", "        if "),
            ("(self._used[signature][0], False)", "(self._used[signature][0], True)"),
            ("        if signature in self._used:\n", "        if True:\n"),
            ("        self._drop_old()\n", ""),
            ("[0] <= now:", "[0] < now:"),
            ("self._used[signature] = (until, True)", "self._used[signature] = (until, False)"),
            ("self._used.pop(signature, None)", "self._used.get(signature)"),
        ),
    ),
    Source(
        "reconciler/endpoints/intake.py",
        _CALLBACKS,
        (
            ("        if (request.content_length or 0) > limit:\n            raise _too_large(limit)\n", ""),
            ("            if size > limit:\n                raise _too_large(limit)\n", ""),
            ("async with asyncio.timeout(_BODY_SECONDS):", "async with asyncio.timeout(60):"),
            ("            if size > SMALL and not has_place:\n", "            if not has_place:\n"),
            ("        await ask_for_body(request)\n", ""),
        ),
    ),
    Source(
        "reconciler/endpoints/callback.py",
        (_T + "test_reading.py", *_CALLBACKS),
        (
            ("except (msgspec.MsgspecError, ValueError, RecursionError)", "except (msgspec.MsgspecError, ValueError)"),
            (r'{1,64}\Z")]', r'{1,64}$")]'),
            ("each.began >= found[key].began", "each.began > found[key].began"),
            ("each.began >= found[key].began", "True"),
            ('key = each.id or f"\\x00{number}"', "key = each.id"),
            ("self.verdict in _DECIDED and not self.skipped", "self.verdict in _DECIDED"),
            ("    if verdict.passed:\n", "    if False:\n"),
            ("tuple(rules[:MAX_RULES])", "tuple(rules)"),
            (
                '; ".join(reasons) or "the server gave no reason", MAX_MESSAGE)',
                '; ".join(reasons) or "the server gave no reason", 9999)',
            ),
            ("rollback=bool(request.verdict.rollback)", "rollback=False"),
            ("key=lambda rule: _rank(rule.verdict)", "key=lambda rule: 0"),
            ('_DECIDED = ("FAIL", "INCONC")', '_DECIDED = ("FAIL",)'),
            ("    if wire.msg:\n        reasons.append(wire.msg)\n", ""),
        ),
    ),
    Source(
        "reconciler/endpoints/server.py",
        (*_CALLBACKS, *_CHECKS),
        (
            ("        if request.method != route.method:\n", "        if False:\n"),
            (
                "self._listener = Listener(self.answer, settings.host, settings.port, settings.context,",
                "self._listener = Listener(self.answer, settings.host, settings.port, None,",
            ),
        ),
    ),
    Source(
        "reconciler/endpoints/callback_endpoint.py",
        (*_CALLBACKS, *_CHECKS),
        (
            ("await asyncio.wait({task}, timeout=_RECEIVE_SECONDS)", "await asyncio.wait({task}, timeout=60)"),
            (
                "        if error is not None:\n            self._signatures.give_back(claim)\n",
                "        if error is not None:\n",
            ),
            ("        if len(self._storing) >= _STORING:\n", "        if False:\n"),
            ("        self._metrics.callbacks.labels(CallbackOutcome.ACCEPTED).inc()\n", ""),
            ("            self._metrics.callbacks.labels(error.outcome).inc()\n", ""),
            ("            self._metrics.callbacks.labels(CallbackOutcome.FAILED).inc()\n", ""),
            ("            return not_acknowledged(error)\n", "            pass\n"),
            ("            self._signatures.verify(claim, body)\n        return", "            pass\n        return"),
        ),
    ),
    Source(
        "reconciler/endpoints/check_callback_endpoint.py",
        (*_CALLBACKS, *_CHECKS),
        (
            (
                "            if not changed:\n                self._signatures.forget(claim)\n",
                "            pass\n",
            ),
            ("        with self._results:\n", "        if True:\n"),
            (
                "                async with asyncio.timeout(_RESULT_SECONDS):\n",
                "                async with asyncio.timeout(60):\n",
            ),
            ("        self._metrics.check_callbacks.labels(error.outcome).inc()\n", ""),
            ("        self._metrics.check_callbacks.labels(CallbackOutcome.ACCEPTED).inc()\n", ""),
            ("            await self._signatures.verify(claim, taken.run, body, self._keys.key)\n", ""),
        ),
    ),
    Source(
        "reconciler/endpoints/access.py",
        (_T + "test_access.py", *_TOOLS),
        (
            ("not review.status.authenticated or ", ""),
            (
                '            raise EndpointError("the API server does not accept the bearer token", 401)\n',
                "            pass\n",
            ),
            ("        if not review.status.allowed or review.status.denied:\n", "        if review.status.denied:\n"),
            ('            "groups": user.groups or [],\n', ""),
            ('            "namespace": namespace,\n', ""),
            ('            "name": name,\n', ""),
            ('            "subresource": subresource,\n', ""),
            (
                "            except (KubernetesError, TimeoutError) as error:\n",
                "            except TimeoutError as error:\n",
            ),
        ),
    ),
    Source(
        "reconciler/endpoints/rollbacks.py",
        (_T + "test_rollbacks.py",),
        (
            ("status=WorkloadState.ROLLBACK, rollback_to=to)", "status=WorkloadState.ROLLBACK)"),
            ("            except (ConflictError, NotFoundError):\n", "            except NotFoundError:\n"),
            ("            if known is not None:\n                return known\n", ""),
            (" if is_controlled_by(each, workload)]", "]"),
            (
                "        if to and to in names and is_current(release, workload):",
                "        if to and is_current(release, workload):",
            ),
            ("        if not to and rolled_back(release) and ", "        if rolled_back(release) and "),
            ("        if not to and rolled_back(release) and went", "        if not to and False and went"),
            ("            if to and to not in (", "            if to not in ("),
            ("            except InvalidError as error:\n", "            except ZeroDivisionError as error:\n"),
            ("        if not filled(self._caches, adapter):\n", "        if False:\n"),
        ),
    ),
    Source(
        "reconciler/endpoints/suspended.py",
        _TOOLS,
        (
            ("    if not filled(caches, adapter):\n", "    if False:\n"),
            ("        if each.suspended and namespace in", "        if namespace in"),
            (' and namespace in ("", each.metadata.namespace)', ""),
            ("    return int(label) if digits else None\n", "    return int(label)\n"),
            ("    return sorted(found, key", "    return list(found) or sorted(found, key"),
        ),
    ),
)
