"""The type of the mutants of one file."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """The mutants of one file. A mutant is a text that occurs once in the file, and the text that replaces it."""

    file: str
    tests: tuple[str, ...]
    """The test files. A test in them must fail for each mutant. The fastest file comes first."""
    mutants: tuple[tuple[str, str], ...]
    equivalent: tuple[tuple[str, str, str], ...] = ()
    """Mutants that behave like the code, with the reason. They are not run."""
    chosen: str = ""
    """The tests to run, as an expression for pytest's `-k`; empty for all."""
