"""The names of the open API: calls, stages, node states, result codes."""

from enum import StrEnum


class Call(StrEnum):
    """A call of the API. The value is the name in scripts and in recorded calls; `path` is the wire path."""

    CREATE_ORDER = "create_order"
    START_ORDER = "start_order"
    START_BATCH = "start_batch"
    START_ACTION = "start_action"
    FINISH = "finish"
    POLL = "poll"
    RESUBMIT = "resubmit"
    SKIP = "skip"
    CLOSE_ORDER = "close_order"
    EVENT = "event"
    RULES = "rules"
    HEARTBEAT = "heartbeat"

    @property
    def path(self) -> str:
        return _PATHS[self]


_PATHS = {
    Call.CREATE_ORDER: "/openapi/v1/exe/submitChangeExecOrder",
    Call.START_ORDER: "/openapi/v1/exe/submitChangeExecOrderStartNotify",
    Call.START_BATCH: "/openapi/v1/exe/submitChangeExecBatchStartNotify",
    Call.START_ACTION: "/openapi/v1/exe/submitChangeActionStartStartNotify",  # two times "Start", as in the server
    Call.FINISH: "/openapi/v1/exe/submitChangeFinishNotify",
    Call.POLL: "/openapi/v1/exe/retrieveChangeCheck",
    Call.RESUBMIT: "/openapi/v1/exe/resubmitChangeStartNotifyAction",
    Call.SKIP: "/openapi/v1/exe/skipChangeCheckAction",
    Call.CLOSE_ORDER: "/openapi/v1/exe/finishChangeExecOrderAction",
    Call.EVENT: "/openapi/v1/exe/submitChangeEventAction",
    Call.RULES: "/openapi/v1/risk/queryRiskDefenseCheckRuleAction",
    Call.HEARTBEAT: "/openapi/v1/heartbeat/config",
}


class Code(StrEnum):
    """Result codes of the envelope."""

    OK = "000"
    ILLEGAL_ARGUMENT = "101"
    PERMISSION_DENIED = "102"
    NOT_SUPPORTED = "103"
    DUPLICATE_ORDER = "106"
    SERVER_ERROR = "901"


class Stage(StrEnum):
    PRE = "PRE"
    POST = "POST"


class NodeState(StrEnum):
    PRE_AOP_SUBMIT = "PRE_AOP_SUBMIT"
    PRE_AOP = "PRE_AOP"
    PRE_AOP_FINISH = "PRE_AOP_FINISH"
    PRE_AOP_TIMEOUT = "PRE_AOP_TIMEOUT"
    PRE_AOP_FAIL = "PRE_AOP_FAIL"
    PRE_AOP_IGNORE = "PRE_AOP_IGNORE"
    POST_AOP_SUBMIT = "POST_AOP_SUBMIT"
    POST_AOP = "POST_AOP"
    POST_AOP_FINISH = "POST_AOP_FINISH"
    POST_AOP_TIMEOUT = "POST_AOP_TIMEOUT"
    POST_AOP_FAIL = "POST_AOP_FAIL"
    POST_AOP_IGNORE = "POST_AOP_IGNORE"


class NodeKind(StrEnum):
    """The kind of change that a node checks: `changeCheckType` of callbacks."""

    ORDER = "CHANGE_ORDER"
    BATCH = "CHANGE_BATCH"
    ACTION = "CHANGE_ACTION"


PHASES = frozenset({"dev_phase", "sim_phase", "pre_phase", "gray_phase", "prod_beta_phase", "prod_phase"})
"""Values of `changePhases`; upper and lower case are equal."""

SCENARIOS = frozenset({"XX", "00", "01", "10", "12", "13", "30"})
EMERGENCY_SCENARIO = "01"
FINISH_STATES = frozenset({"SUCCESS", "ROLLBACK", "CANCEL"})
FEEDBACK_TYPES = frozenset({"UNREASONABLE_RULE", "MALFORM_RULE", "FAULT_INJECT", "EXCEPTION", "REAL_FAULT"})
PLATFORM = "kubernetes"
SCENE = "com.alipay.altershield.kubernetes.rollingupdate"
