"""What is kept of a ChangeWorkload: all but its long lists of pods, of which a digest tells whether they changed."""

import hashlib

import msgspec

from altershield.api.kinds import ChangeWorkload, ChangeWorkloadStatus, PodInfo


class Kept(ChangeWorkload, frozen=True, rename="camel"):
    """The lists of pods that passed, wait and are being verified are empty in `status`."""

    passed: int = 0
    """Pods in the list of those that passed."""
    digest: bytes = b""
    """Of the three lists."""


_decode = msgspec.json.Decoder(ChangeWorkload).decode


def read(data: bytes | msgspec.Raw) -> Kept:
    """A ChangeWorkload as the API server sent it; msgspec.DecodeError where it is none."""
    record = _decode(data)
    status = record.status
    return Kept(
        metadata=record.metadata,
        spec=record.spec,
        status=without_lists(status),
        api_version=record.api_version,
        kind=record.kind,
        passed=len(status.defense_check_pass_pods),
        digest=digest(status),
    )


def without_lists(status: ChangeWorkloadStatus) -> ChangeWorkloadStatus:
    return msgspec.structs.replace(
        status, defense_preparing_pods=(), defense_checking_pods=(), defense_check_pass_pods=()
    )


def digest(status: ChangeWorkloadStatus) -> bytes:
    """Empty where all three lists are."""
    lists = (status.defense_preparing_pods, status.defense_checking_pods, status.defense_check_pass_pods)
    if not any(lists):
        return b""
    found = hashlib.blake2b(digest_size=12)
    for pods in lists:
        for pod in pods:
            found.update(_line(pod))
        found.update(b"\x00")
    return found.digest()


def _line(pod: PodInfo) -> bytes:
    return f"{pod.pod}/{pod.uid}/{pod.verdict}/{pod.message}\n".encode()
