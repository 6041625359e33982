"""Tries all mutants: `python -m tests.mutants [WORD ...]` takes the files whose paths contain a word."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from tests.mutants import SOURCES
from tests.mutants.mutant import Source
from tests.mutants.run import ROOT


def _survivors(source: Source) -> tuple[Source, float, list[str]]:
    began = time.monotonic()
    command = [sys.executable, "-m", "tests.mutants.run", source.file]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [*done.stdout.splitlines(), *done.stderr.splitlines()[-5:]]
    if done.returncode and not lines:
        lines = [f"{source.file}: the runner ended with {done.returncode}"]
    return source, time.monotonic() - began, lines


def main(words: Sequence[str]) -> int:
    """Print the mutants that survive, and how many were killed."""
    chosen = [each for each in SOURCES if not words or any(word in each.file for word in words)]
    began, survived = time.monotonic(), 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in as_completed([pool.submit(_survivors, each) for each in chosen]):
            source, seconds, lines = done.result()
            survived += len(lines)
            print(f"{source.file}: {len(source.mutants)} mutants, {len(lines)} survived, {seconds:.0f} s", flush=True)
            print(*(f"  {line}\n" for line in lines), sep="", end="", flush=True)
    count, equivalent = sum(len(each.mutants) for each in chosen), sum(len(each.equivalent) for each in chosen)
    print(
        f"{count - survived} of {count} mutants killed, {survived} survived, {equivalent} more are equivalent; "
        f"{time.monotonic() - began:.0f} s"
    )
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
