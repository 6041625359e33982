import subprocess
import sys

from tests.support.cpu_time import Cpu, report, used

_BUSY = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"


def test_time_of_a_process_counts_while_it_runs_and_after_its_end() -> None:
    before = used()
    with subprocess.Popen(
        [sys.executable, "-S", "-c", _BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert sum(used().minus(before)) >= 0.25
        process.communicate(b"\n")
    assert sum(used().minus(before)) >= 0.25


def test_report_has_the_total_and_the_most_expensive_files_first() -> None:
    files = {f"test_{number}.py": Cpu(number, 0.5) for number in range(20)}
    lines = report(Cpu(90, 30), files)
    assert lines[0].startswith("CPU time: 1.5 min user, 0.5 min system.")
    assert [line.split()[-1] for line in lines[1:]] == [f"test_{number}.py" for number in range(19, 9, -1)]
    assert lines[1].split() == ["19.5", "s", "test_19.py"]


def test_time_that_is_lost_with_an_orphan_is_not_negative() -> None:
    assert Cpu(1, 1).minus(Cpu(2, 0.5)) == (0, 0.5)
