"""Numbers of pods that may be given in percent, such as `maxSurge: 25%`."""


def share(value: int | str, of: int, *, round_up: bool) -> int:
    """A number of pods, or as many percent of `of` pods. (The API server admits nothing but digits and a percent
    sign.)"""
    if isinstance(value, int):
        return value
    percent = int(value.rstrip("%"))
    return -(-of * percent // 100) if round_up else of * percent // 100
