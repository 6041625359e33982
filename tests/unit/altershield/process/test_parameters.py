"""The command-line arguments for another process."""

from dataclasses import dataclass, field

from altershield.process.parameters import arguments


@dataclass(frozen=True, kw_only=True)
class Options:
    some_seconds: float = 0.0
    limit: int = 0
    name: str | None = None
    flag: bool = False
    hosts: list[str] = field(default_factory=list)


def test_flag_has_no_value_and_a_zero_is_a_value() -> None:
    assert arguments(Options(), Options) == ["--some-seconds", "0.0", "--limit", "0"]
    given = Options(limit=1, name="", flag=True, hosts=["a", "b"])
    assert arguments(given, Options) == [
        *("--some-seconds", "0.0", "--limit", "1", "--name", ""),
        *("--flag", "--hosts", "a", "--hosts", "b"),
    ]
