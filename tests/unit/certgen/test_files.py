"""Serving certificates as files."""

import stat
from pathlib import Path

import pytest

from certgen import files
from kube_base.errors import UsageError
from kube_base.pki import KeyPair

OLD, NEW = KeyPair(b"old certificate", b"old key"), KeyPair(b"new certificate", b"new key")


def read(directory: Path) -> KeyPair:
    return KeyPair((directory / "tls.crt").read_bytes(), (directory / "tls.key").read_bytes())


def test_files_contain_the_pair_and_only_their_owner_can_read_them(tmp_path: Path) -> None:
    assert files.write(tmp_path / "tls", OLD)
    assert read(tmp_path / "tls") == OLD
    for name in ("tls.crt", "tls.key"):
        assert stat.S_IMODE((tmp_path / "tls" / name).stat().st_mode) == 0o600


def test_same_pair_is_not_written_again(tmp_path: Path) -> None:
    assert files.write(tmp_path, OLD)
    assert not files.write(tmp_path, OLD)


def test_both_files_change_with_one_rename_and_the_old_files_are_deleted(tmp_path: Path) -> None:
    files.write(tmp_path, OLD)
    before = (tmp_path / "tls.crt").lstat().st_ino
    files.write(tmp_path, NEW)
    assert read(tmp_path) == NEW
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.is_symlink()) == ["..data", "tls.crt", "tls.key"]
    assert len(list(tmp_path.iterdir())) == 4
    assert (tmp_path / "tls.crt").readlink() == Path("..data/tls.crt")
    assert before


@pytest.mark.parametrize("left", ["..data.new", "..tls.crt.new", "tls.crt", "..data"])
def test_links_that_a_killed_writer_left_are_replaced(tmp_path: Path, left: str) -> None:
    (tmp_path / left).symlink_to("nowhere")
    files.write(tmp_path, NEW)
    assert read(tmp_path) == NEW


def test_missing_file_is_written_again(tmp_path: Path) -> None:
    files.write(tmp_path, OLD)
    (tmp_path / "tls.key").unlink()
    assert files.write(tmp_path, OLD)
    assert read(tmp_path) == OLD


def test_unwritable_directory_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot be written to .*/file: "):
        files.write(tmp_path / "file", OLD)
