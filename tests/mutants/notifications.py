"""Mutants of notifications."""

from tests.mutants.mutant import Source

_T = "tests/unit/reconciler/notifications/"
_LANE = (_T + "test_lane.py",)

SOURCES = (
    Source(
        "reconciler/notifications/occurrences.py",
        (_T + "test_occurrences.py",),
        (
            ("    if state(release) is WorkloadState.SUSPEND:\n", "    if True:\n"),
            ("if undone is not None and undone.is_true:", "if undone is not None:"),
            ("min(waiting, key=lambda each: each[0])", "waiting[0]"),
            ("found.reason == HELD else None", "True else None"),
            ('return f"{self.event}/{self.since}"', 'return f"{self.event}"'),
            ("    except ValueError:  # a", "    except KeyError:  # a"),
        ),
    ),
    Source(
        "reconciler/notifications/receivers.py",
        (_T + "test_receivers.py",),
        (
            ("        if occurrence.event is Event.TEST:\n", "        if False:\n"),
            ("if occurrence.resolved and self.type != Type.ALERTMANAGER:", "if False:"),
            ("(not self.events or occurrence.event in self.events)", "True"),
            ("not self.namespaces or occurrence.namespace in self.namespaces", "True"),
            ("    if len(data) > MAX_FILE:\n", "    if False:\n"),
            ("names.count(each.name) > 1", "False"),
            ("    if not _NAME.fullmatch(receiver.name):\n", "    if False:\n"),
            ("    if receiver.type not in tuple(Type):\n", "    if False:\n"),
            ("    if not set(receiver.events) <= set(known):\n", "    if False:\n"),
            ("if receiver.token and not _TOKEN.fullmatch(receiver.token):", "if False:"),
            ('    if "{{" in unknown:\n', "    if False:\n"),
            ("            if new != self.current:\n", "            if False:\n"),
        ),
    ),
    Source(
        "reconciler/notifications/messages.py",
        (_T + "test_messages.py",),
        (
            ("    if receiver.type == Type.SLACK:\n", "    if False:\n"),
            ('text.replace("&", "&amp;")', "text"),
            ("    if receiver.template:\n", "    if False:\n"),
            ("text.encode()[:_MAX_TEXT]", "text.encode()"),
            ("now if occurrence.resolved else now + ALERT_SECONDS", "now + ALERT_SECONDS"),
            ('"id": occurrence.id,\n        "source"', '"id": str(id(occurrence)),\n        "source"'),
            ("if receiver.token else {}", "if False else {}"),
        ),
    ),
    Source(
        "reconciler/notifications/lane.py",
        _LANE,
        (
            ("if occurrence.id in self._waiting or self._is_old(occurrence):", "if self._is_old(occurrence):"),
            ("if occurrence.id in self._waiting or self._is_old(occurrence):", "if occurrence.id in self._waiting:"),
            ("        if len(self._waiting) >= MAX_QUEUE:\n", "        if False:\n"),
            ("            await self._pace()\n", ""),
            ("self._tokens = min(_BURST, ", "self._tokens = max(0.0, "),
            ("        self._tokens -= 1\n", "        pass\n"),
            ("jittered(failures, outcome.after,", "jittered(failures, 0.0,"),
            ("            failures += 1\n", "            failures = 1\n"),
            ("            if isinstance(outcome, Refused):\n", "            if False:\n"),
            ("        except Exception as error:  # a", "        except KeyError as error:  # a"),
            ("if each.uid == uid]:", "]:"),
            ("each.event in LASTING and ", ""),
        ),
    ),
    Source(
        "reconciler/notifications/notifier.py",
        (_T + "test_notifier.py",),
        (
            (
                "if lane.receiver.wants(each) and _entry(each, lane.receiver) not in known:",
                "if lane.receiver.wants(each):",
            ),
            (" | self._told.get(release.metadata.uid, set())", ""),
            ("            lane.withdraw(release.metadata.uid, present)\n", ""),
            ("if ended.key not in keys and _entry(ended, lane.receiver) not in known:", "if ended.key not in keys:"),
            ("if ended.key not in keys and _entry(ended, lane.receiver) not in known:", "if True:"),
            ("            if lane.receiver.type != Type.ALERTMANAGER:\n                continue\n", ""),
            ("        if notified != stored:\n", "        if notified:\n"),
            (
                "entry for entry in (*stored, *new) if entry + _RESOLVED not in told",
                "entry for entry in (*stored, *new)",
            ),
            ("if batch is not None and held(batch) is not None:", "if False:"),
            ("            self._end_alerts(gone, set(gone.status.notified), [])\n", "            pass\n"),
            ("        self._outbound.allowed = allowed(present.receivers)\n", ""),
            ("                tasks.pop(name).cancel()\n", "                tasks.pop(name)\n"),
        ),
    ),
    Source(
        "reconciler/notifications/sending.py",
        (_T + "test_notifier.py",),
        (
            ("        if 200 <= reply.status < 300:\n", "        if reply.status < 400:\n"),
            ("reply.status >= 500 or reply.status in _AGAIN", "reply.status >= 500"),
            ("reply.status >= 500 or reply.status in _AGAIN", "reply.status in _AGAIN"),
            (
                "        except OutboundError as error:\n            return Retry(str(error))\n",
                "        except OutboundError as error:\n            return Refused(str(error))\n",
            ),
        ),
    ),
)
