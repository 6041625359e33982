"""The fields of each request."""

from kube_sandbox.altershield_server.binding import Field, Type
from kube_sandbox.altershield_server.vocabulary import FEEDBACK_TYPES, Call, Stage

_BASE = (
    Field(name="tenantCode", not_blank=True),
    Field(name="changeSceneKey", not_blank=True, max_bytes=256),
    Field(name="bizExecOrderId", not_blank=True, max_bytes=128),
    Field(name="platform", not_blank=True, max_bytes=32),
)
_ORDER = (
    *_BASE,
    Field(name="changeTitle", not_blank=True, max_bytes=256),
    Field(name="changeUrl", max_bytes=512),
    Field(name="creator", not_blank=True, max_bytes=128),
    Field(name="changeScenarioCode", not_blank=True, default="00"),
    Field(name="changePhases", type=Type.TEXTS, not_null=True),
    Field(name="changeContents", type=Type.OBJECTS),
    Field(name="changeParamJson", not_blank=True),
    Field(name="changeApps", type=Type.TEXTS),
    Field(name="parentOrderInfo", type=Type.OBJECT),
    Field(name="trace", type=Type.OBJECT),
)
_EXECUTOR = Field(name="executor", not_blank=True, max_bytes=128)
_START_TIME = Field(name="startTime", type=Type.DATE)
_EXTENSION = Field(name="extensionInfo", type=Type.OBJECT)
_START = (
    *_BASE,
    _EXECUTOR,
    _START_TIME,
    Field(name="trace", type=Type.OBJECT),
    Field(name="emergency", type=Type.OPTIONAL_FLAG),
    Field(name="returnRuleWhenCheckFail", type=Type.FLAG, default=False),
    _EXTENSION,
)
_NODE = (*_BASE, Field(name="nodeId", not_blank=True))
_STAGE = Field(name="defenseStage", type=Type.CONSTANT, not_null=True, constants=frozenset(Stage))
_MESSAGE = Field(name="msg", max_bytes=16384)
_FINISH_TIME = Field(name="finishTime", type=Type.DATE)
_LOCATIONS = Field(name="effectiveTargetLocations", type=Type.TEXTS)
_RESULT = Field(name="changeResultJsn", is_json=True)
_FEEDBACK = (
    Field(name="ruleExeId", not_null=True),
    Field(name="feedbackTypeEnum", type=Type.CONSTANT, not_null=True, constants=FEEDBACK_TYPES),
    Field(name="operator", not_null=True),
    Field(name="skipComments", not_null=True, min_bytes=4, max_bytes=4096),
    Field(name="traceIgnore", type=Type.FLAG, default=False),
)

FIELDS: dict[Call, tuple[Field, ...]] = {
    Call.CREATE_ORDER: (*_ORDER, Field(name="planStartTime", type=Type.DATE)),
    Call.START_ORDER: _START,
    Call.START_BATCH: (
        *_START,
        Field(name="batchNo", type=Type.INTEGER, minimum=0, default=-1),
        Field(name="totalBatchNum", type=Type.INTEGER, minimum=0, default=-1),
        Field(name="totalBatchNumInChangePhase", type=Type.INTEGER, minimum=0, default=-1),
        Field(name="isLastBatchTag", not_blank=True, default="not_last"),
        Field(name="isLastBatchInChangePhaseTag", not_blank=True, default="not_last"),
        Field(name="changePhase", not_blank=True),
        Field(name="effectiveTargetType", not_blank=True),
        Field(name="effectiveTargetLocations", type=Type.TEXTS, not_null=True),
        Field(name="extInfo", type=Type.OBJECT),
    ),
    Call.START_ACTION: (
        *_START,
        Field(name="changeKey", not_blank=True),
        Field(name="changePhase", not_blank=True),
        Field(name="changeParamJson", not_blank=True),
        Field(name="effectiveTargetType", not_blank=True),
        Field(name="effectiveTargetLocations", type=Type.TEXTS, not_null=True),
    ),
    Call.FINISH: (
        *_NODE,
        Field(name="success", type=Type.FLAG, default=True),
        _MESSAGE,
        Field(name="serviceResult", is_json=True),
        _RESULT,
        _FINISH_TIME,
        Field(name="effectiveTargetType"),
        _LOCATIONS,
        _EXTENSION,
    ),
    Call.POLL: (*_NODE, _STAGE),
    Call.RESUBMIT: _NODE,
    Call.SKIP: (*_NODE, _STAGE, Field(name="feedbackVOList", type=Type.OBJECTS, fields=_FEEDBACK)),
    Call.CLOSE_ORDER: (*_BASE, Field(name="finishState", not_blank=True), _RESULT, _MESSAGE, _FINISH_TIME),
    Call.EVENT: (
        *_ORDER,
        _EXECUTOR,
        _START_TIME,
        Field(name="finishTime", type=Type.DATE, not_null=True),
        Field(name="checkTimeout", type=Type.INTEGER, default=0),
        _EXTENSION,
    ),
    Call.RULES: (*_NODE, _STAGE),
}
"""The fields of the calls that have a body."""
