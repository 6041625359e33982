"""The kind OpsConfigInfo: one setting of the operator. The CRD is generated from these types.

`ops_config.py` says which settings there are.
"""

from typing import Annotated

import msgspec

from altershield.api.announcements import Announcements
from altershield.api.fields import Conditions, Generation, Text
from altershield.api.kinds import AGE, NOT_PROCESSED, Column, Kind
from altershield.api.resources import API_VERSION, OPS_CONFIG_INFOS
from altershield.api.schema import doc, extra
from kube_base.meta import ObjectMeta


class OpsConfigInfoSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The setting."""

    type: Annotated[
        Text,
        doc(
            "`isBlockingUp` for `blocking`, `isBranch` for `branch`, `isRollback` for `rollback`, "
            "`isRollout` for `rollout`."
        ),
    ]
    enable: Annotated[bool, doc("Whether it is on."), extra(default=False)] = msgspec.field(default_factory=bool)
    content: Annotated[
        Text,
        doc(
            "For `branch`: pods in a batch, a number (`10`) or a share of the replicas (`10%`). "
            "For `rollback`: how many of a version's pods must be overdue, in the same form."
        ),
    ] = ""
    remark: Annotated[Text, doc("A remark for people.")] = ""


class OpsConfigInfoStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The values in effect: those that were accepted last."""

    enable: Annotated[bool | None, doc("Whether it is on.")] = None
    content: Annotated[Text, doc("The content in effect.")] = ""
    announcements: Announcements = ()
    conditions: Conditions = ()
    observed_generation: Annotated[Generation, doc("The generation of the spec that this status describes.")] = 0


class OpsConfigInfo(msgspec.Struct, frozen=True, rename="camel"):
    """One setting of the operator."""

    metadata: ObjectMeta
    spec: OpsConfigInfoSpec
    status: OpsConfigInfoStatus = OpsConfigInfoStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: OPS_CONFIG_INFOS.kind)


KIND = Kind(
    resource=OPS_CONFIG_INFOS,
    type=OpsConfigInfo,
    short_name="oci",
    title="Setting",
    summary="The settings `blocking`, `branch`, `rollback` and `rollout`",
    columns=(
        AGE,
        Column("TYPE", "string", ".spec.type", wide=True),
        Column("ENABLE", "boolean", ".spec.enable", wide=True),
        Column("CONTENT", "string", ".spec.content", wide=True),
        Column("ACCEPTED", "string", '.status.conditions[?(@.type=="Accepted")].status', wide=True),
    ),
    status={"conditions": NOT_PROCESSED},
)
