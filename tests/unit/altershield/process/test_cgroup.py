"""The memory of a container, read from the files of its cgroup."""

from pathlib import Path

import pytest

from altershield.process.cgroup import Memory, memory

V1 = "memory/memory"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"memory.current": "300", "memory.max": "1000", "memory.stat": "other_inactive_file 9\ninactive_file 40\n"},
            Memory(260, 1000),
        ),
        ({"memory.current": "300\n", "memory.max": "max\n", "memory.stat": ""}, Memory(0, 0)),
        ({"memory.current": "300", "memory.stat": "inactive_file 40"}, Memory(0, 0)),
        ({"memory.current": "300", "memory.max": "9", "memory.stat": "inactive_file 400"}, Memory(0, 9)),
        (
            {
                f"{V1}.usage_in_bytes": "300",
                f"{V1}.limit_in_bytes": "500",
                f"{V1}.stat": "inactive_file 9\ntotal_inactive_file 20",
            },
            Memory(280, 500),
        ),
        ({f"{V1}.usage_in_bytes": "300", f"{V1}.limit_in_bytes": "9223372036854771712"}, Memory(0, 0)),
        ({"memory.current": "many", "memory.max": "1000"}, Memory(0, 0)),
        ({}, Memory(0, 0)),
    ],
)
def test_working_set_and_limit_are_read_from_both_versions(
    tmp_path: Path, files: dict[str, str], expected: Memory
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    assert memory(tmp_path) == expected
