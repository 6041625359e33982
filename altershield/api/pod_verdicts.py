"""Pods under verification, and the verdicts on them."""

import enum
from typing import Annotated

import msgspec

from altershield.api.fields import Name, Text
from altershield.api.schema import doc

MAX_PODS = 10_000
"""The maximum number of pods in a list of a status."""


class Verdict(enum.StrEnum):
    """The verdict on a pod. A person may write any other word, which counts as `unpass`."""

    PASS = "pass"  # noqa: S105  (a verdict, not a password)
    UNPASS = "unpass"


class PodInfo(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A pod under verification. In results, also its verdict."""

    pod: Annotated[Name, doc("Its name.")]
    uid: Annotated[Name, doc("Its uid. A verdict is valid for the pod with this uid.")] = ""
    app: Annotated[Text, doc("The workload's name.")] = ""
    host_name: Annotated[Name, doc("The same as `pod`.")] = ""
    namespace: Annotated[Name, doc("Its namespace.")] = ""
    work_space: Annotated[Text, doc("Always `default`.")] = ""
    ip: Annotated[str, msgspec.Meta(max_length=45, description="Its IP address.")] = ""
    verdict: Annotated[
        str,
        msgspec.Meta(
            max_length=32, description="`pass`; any other value (`unpass`) is a failure; empty: no verdict yet."
        ),
    ] = ""
    message: Annotated[Text, doc("The reason for the verdict, as text.")] = ""
    by: Annotated[Text, doc("The user who gave the verdict, if a person gave it and said so.")] = ""


Pods = Annotated[tuple[PodInfo, ...], msgspec.Meta(max_length=MAX_PODS)]
