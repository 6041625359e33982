"""The dashboard AlterShield / Protections: budgets, limits of deletions, breakers, what passed without a decision."""

from dashboards.board import SYSTEM, Row, board
from dashboards.panels import GREEN, NEVER, ORANGE, RED, SELDOM, Column, Object, Query, graph, stat, table, timeline
from dashboards.queries import OURS, PROTECTING_HOOKS, REAL, grown

_OF_PODS = f'webhook=~"v(pod|containerrecreaterequest).*", {REAL}, {OURS}'
_EVICTIONS = f'webhook=~"vpod-eviction[.].*", {REAL}, {OURS}'
_UNGATED = f"altershield_ungated_deletions_total{{{OURS}}}"
_BREAK_GLASS = f"altershield_break_glass_total{{{OURS}}}"


def dashboard() -> Object:
    return board(
        "Protections",
        "Which budgets are overdrawn, how near are the limits of deletions, what is refused, and what passed without a "
        "decision?",
        "6h",
        [SYSTEM],
        [
            Row("Is anything blocked or unprotected?", 4, [_now()]),
            Row("PodUnavailableBudgets", 8, [[_states(), _overdrawn(), _refused()]]),
            Row("PodDeletionFlowControls", 8, [[_used(), _breakers(), _evictions()]]),
            Row("What passed (the last one: if Prometheus scrapes the API servers)", 8, [[_admitted(), _unanswered()]]),
        ],
    )


def _now() -> list[Object]:
    return [
        stat(
            "Open breakers",
            "Number of PodDeletionFlowControls that refuse every deletion of the pods that they count.",
            "sum(max by (cluster, flow_control) "
            f'(altershield_deletion_breaker{{mode="Enforce", state="Open", {OURS}}})) or vector(0)',
            steps=NEVER,
        ),
        stat(
            "Nearest limit",
            "Used share of the limit, for the rule with the largest share of all PodDeletionFlowControls.",
            f"max(altershield_deletion_limit_used_ratio{{{OURS}}})",
            unit="percentunit",
            steps=((None, GREEN), (0.8, ORANGE), (1, RED)),
        ),
        stat(
            "Overdrawn budgets",
            "Number of PodUnavailableBudgets with fewer available pods than the budget demands.",
            f'sum(max by (cluster) (altershield_budgets{{state="overdrawn", {OURS}}}))',
            steps=SELDOM,
        ),
        stat(
            "Budgets not reconciled",
            "Number of PodUnavailableBudgets whose status does not describe their spec. After ten minutes an alert "
            "fires.",
            f'sum(max by (cluster) (altershield_budgets{{state="not-reconciled", {OURS}}}))',
            steps=SELDOM,
        ),
        stat(
            "Ungated deletions",
            "Number of available pods with a PodUnavailableBudget that were deleted in the time range although no "
            "gatekeeper was asked.",
            f"sum({grown(_UNGATED, '$__range')})",
            steps=NEVER,
        ),
        stat(
            "Break glass used",
            "Number of disruptions that passed budgets or limits in the time range by break glass.",
            f"sum({grown(_BREAK_GLASS, '$__range')})",
            steps=SELDOM,
        ),
    ]


def _states() -> Object:
    return graph(
        "Budgets by state",
        "Number of PodUnavailableBudgets. used-up: exactly as many pods are available as the budget demands, so no "
        "disruption is admitted. overdrawn: fewer pods are available.",
        Query(f"sum by (state) (max by (cluster, state) (altershield_budgets{{{OURS}}}))", "{{state}}"),
        unit="short",
        stacked=True,
    )


def _overdrawn() -> Object:
    labels = ("namespace", "budget")
    # not OURS, because the label `namespace` is that of the budget
    missing = 'max by (namespace, budget) (altershield_budget_missing_pods{cluster=~"$cluster"})'
    return table(
        "Overdrawn budgets now",
        "PodUnavailableBudgets with fewer available pods than the budget demands, and the number of missing pods.",
        [Query(missing)],
        [*(Column(label, label.capitalize()) for label in labels), Column("Value", "Missing pods", "short")],
    )


def _refused() -> Object:
    return graph(
        "Refused disruptions by reason",
        "Deletions, evictions and changes of pods that were refused, by reason. Repeated attempts count too: a drain "
        "repeats an eviction every five seconds.",
        Query(
            "60 * sum by (reason) "
            f'(rate(altershield_admission_requests_total{{decision="denied", {_OF_PODS}}}[$__rate_interval]))',
            "{{reason}}",
        ),
        unit="cpm",
    )


def _used() -> Object:
    return graph(
        "Used share of limits",
        "Used share of the limit, for the rule of each PodDeletionFlowControl with the largest share. At 100 %, "
        "further deletions are refused.",
        Query(f"max by (flow_control) (altershield_deletion_limit_used_ratio{{{OURS}}})", "{{flow_control}}"),
        unit="percentunit",
        steps=((None, GREEN), (0.8, ORANGE), (1, RED)),
    )


def _breakers() -> Object:
    state = 'max by (flow_control) (altershield_deletion_breaker{{state="{}", {}}})'
    return timeline(
        "Breakers",
        "The state of each breaker. open: every deletion that the PodDeletionFlowControl counts is refused, unless its "
        "mode is Warn. half open: a few deletions pass.",
        Query(f"2 * {state.format('Open', OURS)} + {state.format('HalfOpen', OURS)}", "{{flow_control}}"),
        values={"0": ("closed", GREEN), "1": ("half open", ORANGE), "2": ("open", RED)},
    )


def _evictions() -> Object:
    return graph(
        "Evictions",
        "Decisions on evictions. If some are refused for an hour without a pause, an alert fires: a drain may be "
        "blocked.",
        Query(
            "60 * sum by (decision, reason) "
            f"(rate(altershield_admission_requests_total{{{_EVICTIONS}}}[$__rate_interval]))",
            "{{decision}} {{reason}}",
        ),
        unit="cpm",
    )


def _admitted() -> Object:
    return graph(
        "Allowed disruptions by reason",
        "Deletions, evictions and changes of pods that passed. passed: no budget and no limit counts them. counted: "
        "within the limits. budget-warned: a budget of the mode Warn would refuse them.",
        Query(
            "60 * sum by (reason) "
            f'(rate(altershield_admission_requests_total{{decision="allowed", {_OF_PODS}}}[$__rate_interval]))',
            "{{reason}}",
        ),
        unit="cpm",
    )


def _unanswered() -> Object:
    return graph(
        "Passed because no gatekeeper answered",
        "Requests about pods and budgets that API servers let pass because failurePolicy is Ignore. The first such "
        "request of each API server is not counted.",
        Query(
            "60 * sum by (name) "
            f"(rate(apiserver_admission_webhook_fail_open_count{{{PROTECTING_HOOKS}}}[$__rate_interval]))",
            "{{name}}",
        ),
        unit="cpm",
        steps=((None, GREEN), (1, RED)),
    )
