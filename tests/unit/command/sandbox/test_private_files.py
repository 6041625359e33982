"""The files that the command `sandbox` writes."""

from pathlib import Path

import pytest

from command.sandbox.server import private_file
from kube_base.errors import UsageError


@pytest.mark.parametrize(
    ("output", "reason"), [("none/kubeconfig", "No such file or directory"), (".", "Is a directory")]
)
def test_private_file_that_cannot_be_written_is_a_usage_error(tmp_path: Path, output: str, reason: str) -> None:
    with pytest.raises(UsageError, match=rf"^cannot write .*: {reason}$"), private_file(tmp_path / output, "text"):
        pass
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_private_file_is_readable_by_this_user_only_even_if_it_existed(tmp_path: Path) -> None:
    output = tmp_path / "kubeconfig"
    output.write_text("an older and longer kubeconfig")
    output.chmod(0o644)
    with private_file(output, "apiVersion: v1"):
        assert output.read_text() == "apiVersion: v1"
        assert output.stat().st_mode & 0o777 == 0o600
    assert not output.exists()
