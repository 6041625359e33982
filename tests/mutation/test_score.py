"""The sample and the score of mutants."""

from tests.mutation.score import Score, is_missed, sample

MUTANTS = [f"module.function__mutmut_{number}" for number in range(100)]


def test_sample_follows_from_the_seed_and_keeps_its_mutants_when_others_come_or_go() -> None:
    first = sample(MUTANTS, 10, "0")
    assert len(first) == 10
    assert sample(reversed(MUTANTS), 10, "0") == first
    assert sample([each for each in MUTANTS if each != first[3]], 10, "0")[:9] == [*first[:3], *first[4:]]
    assert set(sample(MUTANTS, 10, "1")) != set(first)
    assert sorted(sample(MUTANTS, 0, "0")) == sorted(MUTANTS)


def test_score_leaves_out_mutants_that_the_type_checker_rejects() -> None:
    score = Score.of(["killed", "killed", "timeout", "survived", "caught by type check"])
    assert score == Score(noticed=3, missed=1, types=1)
    assert score.percent == 75.0
    assert Score.of([]).percent == 100.0


def test_status_that_is_not_known_counts_as_missed() -> None:
    missed = {"survived", "no tests", "suspicious", "not checked", "skipped"}
    assert {each for each in (*missed, "killed", "timeout", "caught by type check") if is_missed(each)} == missed
    assert Score.of(missed).missed == len(missed)
