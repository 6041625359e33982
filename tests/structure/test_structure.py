"""The structure stays within its bounds. tests/docs/test_walks.py has those of the walks."""

from tests.structure import bounds


def test_functions_are_short() -> None:
    assert bounds.long_functions() == []


def test_functions_are_simple() -> None:
    assert bounds.complex_functions() == []


def test_files_are_short() -> None:
    assert bounds.long_files() == []


def test_folders_are_small() -> None:
    assert bounds.large_folders() == []


def test_each_large_folder_needs_its_exception() -> None:
    sizes = {room.folder: room.files for room in bounds.rooms()}
    assert {folder: sizes.get(folder, 0) for folder in bounds.LARGE_FOLDERS} == bounds.LARGE_FOLDERS
