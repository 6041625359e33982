"""Shell completion for `kubectl altershield`: kubectl runs `kubectl_complete-altershield` with the words typed so far.

kubectl expects one completion per line and a directive of Cobra at the end.
"""

import contextlib
import io
import os
import shlex
import sys

from command.app import command_line

_PROGRAM = "altershield"
_NO_FILES = ":4"  # Cobra's ShellCompDirectiveNoFileComp


def main() -> None:
    """The entry point. The last argument is the word to complete, which may be empty."""
    words = sys.argv[1:] or [""]
    os.environ["COMP_WORDS"] = shlex.join([_PROGRAM, *words])
    os.environ["COMP_CWORD"] = str(len(words))
    os.environ[f"_{_PROGRAM.upper()}_COMPLETE"] = "complete_bash"
    proposed = io.StringIO()
    try:
        with contextlib.redirect_stdout(proposed):
            # typer reads the variables, prints the completions and exits
            command_line(words[:-1])(args=[], prog_name=_PROGRAM)
    finally:
        print(*filter(None, proposed.getvalue().splitlines()), _NO_FILES, sep="\n", flush=True)


if __name__ == "__main__":
    main()
