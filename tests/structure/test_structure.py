"""The structure stays within its bounds. tests/docs/test_walks.py has those of the walks."""

from tests.structure import bounds
from tests.structure.measures import rooms


def test_functions_are_short() -> None:
    assert bounds.long_functions() == []


def test_functions_are_simple() -> None:
    assert bounds.complex_functions() == []


def test_files_are_short() -> None:
    assert bounds.long_files() == []


def test_folders_are_small() -> None:
    assert bounds.large_folders() == []


def test_each_large_folder_needs_its_exception() -> None:
    large = {room.folder for room in rooms() if room.files > bounds.FOLDER_FILES}
    assert [folder for folder in bounds.LARGE_FOLDERS if folder not in large] == []
