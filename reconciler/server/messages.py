"""The bodies of requests to an AlterShield server, in the form of AlterShield's open API.

The server ignores fields that it does not know, so a misspelt field is no error there. Dates are in milliseconds. Texts
are cut to the limits of the open API.
"""

import enum
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from altershield.texts import cut
from reconciler.server import texts
from reconciler.server.server_settings import Settings

EXECUTOR = "altershield"
"""The executor of batches, and the creator of an order without a known one."""

_TARGET_TYPE = "paas.pod"
_EMERGENCY = "01"  # a scenario code; without a code, the server's code takes `00`, daily
_FEEDBACK = "UNREASONABLE_RULE"

Body = dict[str, Any]


class Stage(enum.StrEnum):
    """A check of a node: before or after the batch is released."""

    PRE = "PRE"
    POST = "POST"


class FinishState(enum.StrEnum):
    """How a release ended."""

    SUCCESS = "SUCCESS"
    ROLLBACK = "ROLLBACK"
    CANCEL = "CANCEL"


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """The workload of a release. Without `app`, its name is the application."""

    namespace: str
    kind: str
    name: str
    app: str = ""


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """A pod of a batch."""

    namespace: str
    pod: str
    ip: str = ""
    host: str = ""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A release."""

    id: str
    """Unique on the platform. An id of more than 128 bytes is shortened, see `texts.order_id`."""
    title: str
    creator: str
    workload: Workload
    params: Mapping[str, Any] = {}
    """For rules: JSON values. The workload is added."""
    url: str = ""
    """Where people can read about the release."""
    parent: str = ""
    """The id of the order that this release reverts or repairs."""
    emergency: bool = False
    """The checks of all nodes pass at once."""


class BatchStart(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a batch."""

    order: str
    """The order's id."""
    workload: Workload
    number: int
    """From 1, as in the ChangePod's name."""
    total: int
    """The expected number of batches of the order."""
    last: bool
    pods: Sequence[Location]
    start_time: float | None = None
    """Unix seconds. None: the time at which the server receives the call. Rules on metrics begin here."""
    emergency: bool = False
    """The checks of this node pass at once."""


class BatchFinish(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a batch: its pods are up, or failed."""

    order: str
    node: str
    workload: Workload
    success: bool
    message: str
    finish_time: float
    """Unix seconds."""


def order_body(settings: Settings, order: Order) -> Body:
    """`submitChangeExecOrder`."""
    workload = order.workload
    body = _base(settings, order.id) | {
        "changeTitle": cut(order.title, texts.TITLE) or texts.order_id(order.id),
        "creator": texts.shortened(order.creator, texts.CREATOR, digits=16) or EXECUTOR,
        "changePhases": [settings.phase],
        "changeContents": [
            {"contentType": {"typeName": _TARGET_TYPE}, "instanceName": f"{workload.namespace}/{workload.name}"}
        ],
        "changeParamJson": _json({**order.params, **_names(workload)}),
        "changeApps": [workload.app or workload.name],
    }
    if order.url and len(order.url.encode(errors="replace")) <= texts.URL:  # a cut URL is of no use
        body["changeUrl"] = order.url
    if order.parent:
        parent = texts.order_id(order.parent)
        body["parentOrderInfo"] = {"orderId": parent, "orderTitle": parent, "orderUrl": ""}
    if order.emergency:
        body["changeScenarioCode"] = _EMERGENCY
    return body


def start_body(settings: Settings, start: BatchStart) -> Body:
    """`submitChangeExecBatchStartNotify`."""
    tag = "last" if start.last else "not_last"
    body = _base(settings, start.order) | {
        "executor": EXECUTOR,
        "batchNo": start.number - 1,
        "totalBatchNum": max(start.total, start.number),
        "totalBatchNumInChangePhase": max(start.total, start.number),
        "isLastBatchTag": tag,  # a text, although the documentation of the open API says boolean
        "isLastBatchInChangePhaseTag": tag,
        "changePhase": settings.phase,
        "effectiveTargetType": _TARGET_TYPE,
        "effectiveTargetLocations": _locations(start.workload, start.pods),
        "extensionInfo": _lists(start.workload),
        "extInfo": _names(start.workload),
    }
    if start.start_time is not None:
        body["startTime"] = milliseconds(start.start_time)
    if start.emergency:
        body["emergency"] = True
    return body


def finish_body(settings: Settings, finish: BatchFinish) -> Body:
    """`submitChangeFinishNotify`. Always with the time: without it, the server's rules on metrics fail."""
    return _base(settings, finish.order) | {
        "nodeId": finish.node,
        "success": finish.success,
        "msg": cut(finish.message, texts.MESSAGE),
        "finishTime": milliseconds(finish.finish_time),
        "extensionInfo": _lists(finish.workload),
    }


def node_body(settings: Settings, order: str, node: str) -> Body:
    """`resubmitChangeStartNotifyAction`."""
    return _base(settings, order) | {"nodeId": node}


def poll_body(settings: Settings, order: str, node: str, stage: Stage) -> Body:
    """`retrieveChangeCheck`."""
    return node_body(settings, order, node) | {"defenseStage": stage.value}


def skip_body(
    settings: Settings, order: str, node: str, stage: Stage, rules: Sequence[str], operator: str, comment: str
) -> Body:
    """`skipChangeCheckAction`. `rules` are ids of executed rules (`ruleExeId`)."""
    if len(comment.strip()) < texts.MIN_COMMENT:
        comment = f"skipped: {comment}"
    feedback = {
        "feedbackTypeEnum": _FEEDBACK,
        "operator": operator,
        "skipComments": cut(comment, texts.COMMENT),
        "traceIgnore": False,
    }
    return poll_body(settings, order, node, stage) | {
        "feedbackVOList": [{"ruleExeId": rule} | feedback for rule in rules]
    }


def close_body(settings: Settings, order: str, state: FinishState, message: str, finish_time: float) -> Body:
    """`finishChangeExecOrderAction`. `finish_time` is in Unix seconds."""
    return _base(settings, order) | {
        "finishState": state.value,
        "msg": cut(message, texts.MESSAGE),
        "finishTime": milliseconds(finish_time),
    }


def milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _base(settings: Settings, order: str) -> Body:
    """The fields that every request must have."""
    return {
        "tenantCode": settings.tenant,
        "changeSceneKey": settings.scene,
        "bizExecOrderId": texts.order_id(order),
        "platform": settings.platform,
    }


def _names(workload: Workload) -> dict[str, str]:
    """The names of the workload under the keys that the server's metric plugin reads."""
    return {"namespace": workload.namespace, "workloadType": workload.kind, "workloadName": workload.name}


def _lists(workload: Workload) -> dict[str, list[str]]:
    return {key: [value] for key, value in _names(workload).items()}


def _locations(workload: Workload, pods: Sequence[Location]) -> list[str]:
    """The pods, with the keys of the published Go operator, so that existing rules can read them. The server reads the
    list as a set."""
    described = (
        {
            "app": workload.app or workload.name,
            "hostName": pod.host,
            "workSpace": "default",
            "pod": pod.pod,
            "ip": pod.ip,
            "namespace": pod.namespace,
        }
        for pod in pods
    )
    return list(dict.fromkeys(map(_json, described)))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=str)
