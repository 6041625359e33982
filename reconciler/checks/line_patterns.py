"""Regular expressions whose search takes a time that grows only with the text, whatever the expression is.

The module `re` tries alternatives one after the other. With some expressions that takes a time which doubles with each
character, and no other code runs meanwhile. Here, the expression becomes an automaton that reads each character once.
So there are no backreferences and no lookarounds. What is there has the same meaning as in `re` and RE2: `|`, `*`, `+`,
`?`, `{m,n}`, groups, classes, `.`, `^`, `$`, `\\d`, `\\w`, `\\s`, and `(?i)` at the beginning.
"""

from dataclasses import dataclass, field

MAX_PATTERN = 256
"""The maximum number of characters of an expression."""

_MAX_REPEAT = 100
_MAX_STATES = 256  # of the automaton as it is written
_MAX_MOVES = 20_000  # that are computed for one text; a usual expression has some hundreds
_MAX_DEPTH = 32

_SPACES = " \t\n\r\f\v"
_CLASSES = {"d": (("0", "9"),), "w": (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))} | {
    "s": tuple((each, each) for each in _SPACES)
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}


class PatternError(ValueError):
    """The expression is not valid, or not one of these."""


class TooManyStatesError(Exception):
    """The search would take too long."""


@dataclass(frozen=True, slots=True)
class _Chars:
    """One character of a set."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False

    def has(self, char: str, *, ignore_case: bool) -> bool:
        forms = {char, char.lower(), char.upper()} if ignore_case else {char}
        return self.negated != any(first <= each <= last for each in forms for first, last in self.ranges)


@dataclass(frozen=True, slots=True)
class _Sequence:
    parts: "tuple[_Node, ...]"


@dataclass(frozen=True, slots=True)
class _Either:
    parts: "tuple[_Node, ...]"


@dataclass(frozen=True, slots=True)
class _Repeat:
    part: "_Node"
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class _Begin:
    """The begin of the text."""


@dataclass(frozen=True, slots=True)
class _End:
    """Its end."""


_Node = _Chars | _Sequence | _Either | _Repeat | _Begin | _End

_ANY = _Chars((("\n", "\n"),), negated=True)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    @property
    def next(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        found = self.next
        if not found:
            raise PatternError("it ends too early")
        self.at += 1
        return found

    def skip(self, text: str) -> bool:
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def whole(self) -> _Node:
        found = self.either()
        if self.next:
            raise PatternError("a ) has no (")
        return found

    def either(self) -> _Node:
        parts = [self.sequence()]
        while self.skip("|"):
            parts.append(self.sequence())
        return _Either(tuple(parts))

    def sequence(self) -> _Node:
        parts: list[_Node] = []
        while self.next not in ("", "|", ")"):
            parts.append(self.repeated(self.atom()))
        return _Sequence(tuple(parts))

    def repeated(self, part: _Node) -> _Node:
        bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self.next)
        if bounds is not None:
            self.at += 1
        elif self.next == "{":
            bounds = self.counts()
        else:
            return part
        self.skip("?")  # whether a text matches does not depend on how much a repetition takes
        if self.next and self.next in "*+?{":
            raise PatternError("a repetition is repeated")
        if isinstance(part, _Begin | _End):
            raise PatternError("^ and $ cannot be repeated")
        return _Repeat(part, *bounds)

    def counts(self) -> tuple[int, int | None]:
        end = self.text.find("}", self.at)
        first, comma, last = self.text[self.at + 1 : end if end >= 0 else None].partition(",")
        numbers = [int(each) for each in (first, last) if each.isascii() and each.isdigit() and len(each) <= 3]
        if end < 0 or len(numbers) != 1 + bool(last) or not first or (numbers[-1] < numbers[0]):
            raise PatternError("{ begins no repetition such as {2,5}: write \\{ for the character")
        if numbers[-1] > _MAX_REPEAT:
            raise PatternError(f"a repetition has more than {_MAX_REPEAT} times")
        self.at = end + 1
        return numbers[0], numbers[-1] if last or not comma else None

    def atom(self) -> _Node:
        match self.take():
            case "(":
                return self.group()
            case "[":
                return self.chars()
            case ".":
                return _ANY
            case "^":
                return _Begin()
            case "$":
                return _End()
            case "\\":
                return self.escaped()
            case "*" | "+" | "?" | "{":
                raise PatternError("a repetition repeats nothing")
            case char:
                return _Chars(((char, char),))

    def group(self) -> _Node:
        if self.skip("?") and not self.skip(":"):
            raise PatternError("lookarounds, named groups and flags inside are not supported: write (?:…)")
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise PatternError(f"it has more than {_MAX_DEPTH} groups in each other")
        found = self.either()
        if not self.skip(")"):
            raise PatternError("a ( has no )")
        self.depth -= 1
        return found

    def escaped(self) -> _Chars:
        char = self.take()
        if char in _CONTROLS:
            return _Chars(((_CONTROLS[char], _CONTROLS[char]),))
        if char.lower() in _CLASSES:
            return _Chars(_CLASSES[char.lower()], negated=char.isupper())
        if char.isalnum():
            raise PatternError(f"\\{char} is not supported")
        return _Chars(((char, char),))

    def chars(self) -> _Chars:
        negated, ranges, first = self.skip("^"), list[tuple[str, str]](), True
        while first or self.next != "]":
            first = False
            low = self.member()
            if isinstance(low, tuple):
                ranges += low
                continue
            high: str | tuple[tuple[str, str], ...] = low
            if self.next == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self.member()
            if isinstance(high, tuple) or high < low:
                raise PatternError("a range in [ ] has no end after its begin")
            ranges.append((low, high))
        self.take()
        return _Chars(tuple(ranges), negated)

    def member(self) -> str | tuple[tuple[str, str], ...]:
        """A character in [ ], or the ranges of a class."""
        char = self.take()
        if char != "\\":
            return char
        found = self.escaped()
        if found.negated:
            raise PatternError("a class such as \\D in [ ] is not supported")
        return found.ranges if self.text[self.at - 1] in _CLASSES else found.ranges[0][0]


@dataclass(slots=True)
class _State:
    """A state of the automaton. `chars` is None: it leads to `targets` without a character."""

    chars: _Chars | _Begin | _End | None
    targets: list[int]


@dataclass(slots=True)
class _Set:
    """The states in which the automaton can be after the same characters."""

    members: frozenset[int]
    matches: bool
    matches_at_end: bool
    moves: "dict[str, _Set]" = field(default_factory=dict)


_MATCH = 0


class LinePattern:
    """A compiled expression. PatternError: it is none."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > MAX_PATTERN:
            raise PatternError(f"it has more than {MAX_PATTERN} characters")
        self._ignore_case = pattern.startswith("(?i)")
        self._states = [_State(None, [])]
        self._begin = self._compile(_Parser(pattern.removeprefix("(?i)")).whole(), _MATCH)
        self._sets: dict[frozenset[int], _Set] = {}
        self._moves_left = _MAX_MOVES
        self._anywhere = self._closure([self._begin])
        first = self._closure([self._begin], at_begin=True)
        at_end = self._closure([self._begin], at_begin=True, at_end=True)
        self._first = _Set(first, _MATCH in first, _MATCH in at_end)

    def search(self, text: str) -> bool:
        """Whether any part of the text matches. TooManyStatesError: all searches together took too long."""
        now = self._first
        if now.matches:
            return True
        for char in text:
            following = now.moves.get(char)
            if following is None:
                following = now.moves[char] = self._move(now, char)
            if following.matches:
                return True
            now = following
        return now.matches_at_end

    def _add(self, chars: _Chars | _Begin | _End | None, *targets: int) -> int:
        if len(self._states) >= _MAX_STATES:
            raise PatternError("it is too long with its repetitions written out")
        self._states.append(_State(chars, list(targets)))
        return len(self._states) - 1

    def _compile(self, node: _Node, following: int) -> int:
        """The first state of a part of the expression that is followed by this state."""
        match node:
            case _Chars() | _Begin() | _End():
                return self._add(node, following)
            case _Sequence(parts):
                for part in reversed(parts):
                    following = self._compile(part, following)
                return following
            case _Either(parts):
                return self._add(None, *(self._compile(part, following) for part in parts))
            case _Repeat(part, least, most):
                last = following
                if most is None:
                    last = self._add(None, following)
                    self._states[last].targets.append(self._compile(part, last))
                for _ in range((most or least) - least):
                    last = self._add(None, self._compile(part, last), following)
                for _ in range(least):
                    last = self._compile(part, last)
                return last

    def _closure(self, begin: list[int], *, at_begin: bool = False, at_end: bool = False) -> frozenset[int]:
        """The states that are reached without a character."""
        found, left = set[int](), begin
        while left:
            number = left.pop()
            if number in found:
                continue
            found.add(number)
            state = self._states[number]
            passes = {_Begin: at_begin, _End: at_end, type(None): True}
            if passes.get(type(state.chars), False):
                left += state.targets
        return frozenset(found)

    def _set(self, members: frozenset[int]) -> _Set:
        found = self._sets.get(members)
        if found is None:
            at_end = self._closure(list(members), at_end=True)
            found = self._sets[members] = _Set(members, _MATCH in members, _MATCH in at_end)
        return found

    def _move(self, now: _Set, char: str) -> _Set:
        self._moves_left -= 1
        if self._moves_left < 0:
            raise TooManyStatesError
        reached = list[int]()
        for number in now.members:
            state = self._states[number]
            if isinstance(state.chars, _Chars) and state.chars.has(char, ignore_case=self._ignore_case):
                reached += state.targets
        return self._set(self._closure(reached) | self._anywhere)


def problem(pattern: str) -> str:
    """Why an expression is none of these, as the end of a sentence; empty if it is one."""
    try:
        LinePattern(pattern)
    except PatternError as error:
        return str(error)
    return ""
