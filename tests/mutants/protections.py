"""Mutants of what refuses or reports the loss of objects: the handlers of deletions and of disruptions, the status of
budgets, and the budgets that annotations ask for."""

from tests.mutants.mutant import Source

_H = "gatekeeper/handlers/"
_R = "reconciler/budgets/"
_G = "reconciler/generated_budgets/"
_DELETED = ("tests/unit/gatekeeper/handlers/deletions/test_deletions.py",)
_JUDGED = ("tests/unit/gatekeeper/handlers/test_pod_handlers.py",)
_RECONCILED = (
    "tests/unit/reconciler/budgets/test_budget_reconciler.py",
    "tests/unit/reconciler/test_protection_metrics.py",
)
_PLANNED = ("tests/unit/reconciler/generated_budgets/test_plan.py",)
_GENERATED = ("tests/unit/reconciler/generated_budgets/test_generated_budget_reconciler.py",)

SOURCES = (
    Source(
        "altershield/api/deletion_protection.py",
        (*_DELETED, "tests/unit/altershield/views/test_protection.py"),
        (
            ("labels.get(LABEL) == Level.CASCADING or labels", "labels"),
            (" or labels.get(CASCADING_LABEL) == CASCADING_VALUE:", ":"),
            ("if len(reason) <= MAX_REASON else", "if len(reason) < MAX_REASON else"),
            ('("Cc", "Cf", "Zl", "Zp")', '("Cc", "Zl", "Zp")'),
            (" for key in (LABEL, CASCADING_LABEL) if key in labels)", " for key in (LABEL, CASCADING_LABEL))"),
        ),
    ),
    Source(
        _H + "deletions/custom_resource_definition.py",
        _DELETED,
        (
            ("if not found.needs_reading:", "if False:"),
            (" if version.served)", ")"),
            (" if objects else", " if True else"),
        ),
    ),
    Source(
        _H + "deletions/namespace.py",
        _DELETED,
        (
            ("    if pods:\n", "    if False:\n"),
            ("field_selector=_NOT_FINISHED, ", ""),
            (" and stays(claim)", ""),
            ("claim.status.phase == _BOUND and ", ""),
        ),
    ),
    Source(
        _H + "deletions/protected.py",
        _DELETED,
        (
            ("metadata.deletion_timestamp is None and ", ""),
            ("== Level.CASCADING\n", "is not None\n"),
            ("annotations.reason[: deletion_protection.MAX_REASON]", "annotations.reason"),
            ("    except AlterShieldError as error:", "    except ZeroDivisionError as error:"),
            ("Reason.CONTENT_UNKNOWN)", "Reason.HAS_CONTENT)"),
        ),
    ),
    Source(
        _H + "budgets/answer.py",
        _JUDGED,
        (
            ("if not listers.budgets.filled(request.namespace):", "if False:"),
            ("BREAK_GLASS_GROUP in request.groups,", "False,"),
            ("dry_run or request.dry_run,", "dry_run,"),
            ("Reason.BREAK_GLASS if broken_glass else ", ""),
            ("Reason.BLOCKED_BY_PDB if by_pdb else ", ""),
            ("if operation == Operation.EVICT:", "if True:"),
            ("texts[:_MAX_WARNINGS]", "texts"),
        ),
    ),
    Source(
        _H + "budgets/deletion.py",
        _JUDGED,
        (("found.metadata.deletion_timestamp is not None or not", "not"),),
    ),
    Source(
        _H + "budgets/eviction.py",
        _JUDGED,
        (("dry_run=request.object.dry_run)", "dry_run=False)"),),
    ),
    Source(
        _H + "budgets/overlap.py",
        _JUDGED,
        (
            ("request.user == listers.reconciler or ", ""),
            (" or not listers.budgets.filled(request.namespace):", ":"),
        ),
    ),
    Source(
        _H + "budgets/pod.py",
        _JUDGED,
        (("if metadata.namespace != namespace:", "if False:"),),
    ),
    Source(
        _H + "budgets/restart.py",
        _JUDGED,
        (
            ("if not name or not", "if not"),
            (" and each.status_context.container_id\n", "\n"),
            ("short_id(each.status_context.container_id)", "each.status_context.container_id"),
            ("request_name=name, ", ""),
        ),
    ),
    Source(
        _H + "budgets/update.py",
        _JUDGED,
        (
            (" or before.metadata.deletion_timestamp is not None:", ":"),
            ("if not made.possible:", "if False:"),
            ("generation = request.object", "generation = before"),
        ),
    ),
    Source(
        _R + "metrics.py",
        _RECONCILED[1:],
        (
            ("if _missing(budget) > 0:", "if _missing(budget) >= 0:"),
            ("heapq.nlargest(", "heapq.nsmallest("),
        ),
    ),
    Source(
        _R + "budget_reconciler.py",
        _RECONCILED,
        (
            (" or budget.metadata.deletion_timestamp is not None:", ":"),
            ("if not self._caches.is_filled(key[0]):", "if False:"),
            ("if status == stored.status:", "if status == budget.status:"),
            ("        if delay:\n", "        if False:\n"),
            ("if wanted <= self._caches.seen:", "if False:"),
            ("if found.unread:", "if False:"),
            ("pod.packed_uid in found.pods", "True"),
            ("budget.spec.mode != BudgetMode.ENFORCE or ", ""),
            (" or not set(REMOVING) <= set(budget.spec.protect_operations):", ":"),
            ("{*live.status.disrupted_pods, *budget.status.disrupted_pods}", "budget.status.disrupted_pods"),
            ("{*live.status.disrupted_pods, *budget.status.disrupted_pods}", "live.status.disrupted_pods"),
            ("if len(names) > 3 else", "if len(names) >= 3 else"),
        ),
    ),
    Source(
        _R + "budget_status.py",
        _RECONCILED,
        (
            ("elif found.desired >= found.total:", "elif found.desired > found.total:"),
            ("wanted.observed_generation != budget.status.observed_generation\n        or ", ""),
            ("wanted.unavailable_allowed > budget", "wanted.unavailable_allowed >= budget"),
            ("        or len(wanted.disrupted_pods) < len(budget.status.disrupted_pods)\n", ""),
            ("others[:5]", "others"),
        ),
    ),
    Source(
        _R + "departures.py",
        _RECONCILED,
        (
            ("(old.available or taken)", "old.available"),
            ("(old.available or taken)", "True"),
            ("deleted = new is None or new.terminating", "deleted = new is None"),
            ("taken = old.exists and ", "taken = "),
            (" or (taken and new is not None and new.lost)):", "):"),
            ("if len(found) < _MAX_PODS:", "if len(found) <= _MAX_PODS:"),
            ("> _DROPPED_SECONDS:", "> 0:"),
            ("now - gone.at < _SECONDS and", ""),
            ("            dropped.pop(uid, None)\n", ""),
            ("        self._pods.pop(budget, None)\n", ""),
        ),
    ),
    Source(
        _R + "subject.py",
        _RECONCILED,
        (
            (", evicted=lambda old: None)", ")"),
            ("if old is None or new is None or old.spec != new.spec:", "if old is None or new is None:"),
            ("if old is None or new is None or old.spec != new.spec:", "if old is None or old.spec != new.spec:"),
            (" or not self._caches.is_filled(pod.namespace):", ":"),
            ("if old is not None and old in covered:", "if old is not None:"),
            (", pod.containers\n", "\n"),
            ("scaled.replicas, scaled.deleting, scaled.owner", "scaled.replicas, scaled.owner"),
            ("any(_is_named(spec, each) for each in changed) or ", ""),
            (" or (bool(scaled.owner.uid) and refers_to(reference, scaled.owner))", ""),
            ("for uid in (each.uid, each.owner.uid) if uid}", "for uid in (each.uid,) if uid}"),
            ("    if group.owner.uid in uids:\n        return True\n", ""),
            ("return controller is not None and controller.owner.uid in uids", "return False"),
        ),
    ),
    Source(
        _G + "budget_plan.py",
        _PLANNED,
        (
            ("owner.uid == uid and _is_generated(budget)", "owner.uid == uid"),
            ("budget.metadata.controller is None or not _is_generated(budget)", "not _is_generated(budget)"),
            ("workload.replicas <= 1 or", "workload.replicas < 1 or"),
            ("if is_by_user(each) and _covers(each, workload)", "if is_by_user(each)"),
            ("amount(kept) != wanted or not _covers(kept, workload)", "amount(kept) != wanted"),
            ("delete=tuple(surplus))", "delete=())"),
            ("(reference.group_kind, reference.name)", "(workload.resource.group_kind, reference.name)"),
            (
                "spec.selector.match_labels or {}, spec.selector.match_expressions",
                "spec.selector.match_labels or {}, ()",
            ),
            ('"controller": True, ', ""),
        ),
    ),
    Source(
        _G + "wanted.py",
        _PLANNED,
        (
            ('1 if amount in (0, "0%") else amount', "1 if amount == 0 else amount"),
            ("_amounts(kind, own) or _amounts(kind, default)", "_amounts(kind, own)"),
            ("_amounts(kind, own) or _amounts(kind, default)", "{**_amounts(kind, default), **_amounts(kind, own)}"),
            ('text if text.endswith("%") else int(text)', "text"),
            ('"[0-9]{1,9}|', '"[0-9]{1,8}|'),
        ),
    ),
    Source(
        _G + "generated_budget_reconciler.py",
        _GENERATED,
        (
            (" or not self._caches.governed(key.namespace):", ":"),
            ("        if not unsettled:\n", "        if False:\n"),
            (" and workload.replicas <= 1)", " and workload.replicas < 1)"),
            ("return not by_users and [", "return ["),
            ("if live.metadata.uid != metadata.uid:", "if False:"),
            ("reported != found.message and workload", "workload"),
            ("                self._reported.pop((key, kind), None)\n", "                pass\n"),
            ("for budget in found.delete:", "for budget in ():"),
        ),
    ),
)
