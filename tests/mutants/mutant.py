"""What a set of mutants consists of."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """The mutants of one file. A mutant is a text that occurs once in the file, and the text that replaces it."""

    file: str
    tests: tuple[str, ...]
    """The files of tests of which one must fail, the fastest first."""
    mutants: tuple[tuple[str, str], ...]
    equivalent: tuple[tuple[str, str, str], ...] = ()
    """Mutants that no test can tell from the code, with the reason. They are not run."""
    chosen: str = ""
    """Which of the tests to run, as pytest's `-k` takes it."""
