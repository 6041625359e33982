"""Numbers of pods that may be percentages, such as `maxSurge: 25%`."""


def share(value: int | str, of: int, *, round_up: bool) -> int:
    """The number of pods that `value` means; a percentage refers to `of` pods. The API server accepts
    only integers, and texts of digits with a percent sign."""
    if isinstance(value, int):
        return value
    percent = int(value.rstrip("%"))
    return -(-of * percent // 100) if round_up else of * percent // 100
