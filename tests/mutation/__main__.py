"""Prints the mutants of pure modules that no test notices, and the share of those that tests notice.

python -m tests.mutation [WORD ...]    the mutants of the files whose paths contain a word; without words of all
"""

import argparse
import os
import resource
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.mutation.areas import areas
from tests.mutation.score import Score, is_missed, sample
from tests.mutation.workspace import Workspace


def main(arguments: Sequence[str]) -> int:
    """Run the mutants subject by subject. Return 1 if tests notice a smaller share than they should."""
    options = _options(arguments)
    chosen = areas(options.words)
    statuses: list[str] = []
    with tempfile.TemporaryDirectory() as directory:
        workspaces = [Workspace(area, Path(directory)) for area in chosen]
        mutants = {mutant: workspace for workspace in workspaces for mutant in workspace.mutants()}
        picked = sample(mutants, options.sample, options.seed)
        print(f"{len(picked)} of {len(mutants)} mutants of {len(chosen)} subjects, seed {options.seed}", flush=True)
        for workspace in workspaces:
            own = [mutant for mutant in picked if mutants[mutant] is workspace]
            found = workspace.statuses(own, options.processes) if own else {}
            statuses += found.values()
            print(f"{workspace.area.folder}: {Score.of(found.values())}", flush=True)
            for mutant in (mutant for mutant, status in found.items() if is_missed(status)):
                print(f"  {mutant}: {found[mutant]}\n{workspace.difference(mutant)}", flush=True)
    score = Score.of(statuses)
    print(f"all: {score}; {_cpu_seconds():.0f} s of CPU")
    return int(score.percent < options.at_least)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.mutation")
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--sample", type=int, default=0, help="so many mutants instead of all")
    parser.add_argument("--seed", default="0", help="another sample")
    parser.add_argument("--at-least", type=float, default=95, help="the share that tests have to notice, in percent")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    return parser.parse_args(arguments)


def _cpu_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
