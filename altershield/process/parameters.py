"""Makes a typer command from a function with one dataclass parameter: each field is an option.

    @dataclass(frozen=True, kw_only=True)
    class Options:
        port: Annotated[int, typer.Option("--port")] = 9443

    app.command()(with_options(Options)(serve))  # serve(options: Options) -> None

Fields of a base class are options too, so several commands can share the declaration of an option.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")


def with_options(type_: type[T]) -> Callable[[Callable[[T], None]], Callable[..., None]]:
    """A decorator that replaces the parameter of a function by the fields of the dataclass `type_`."""
    hints = get_type_hints(type_, include_extras=True)
    parameters = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=_default(field), annotation=hints[field.name]
        )
        for field in dataclasses.fields(type_)  # type: ignore[arg-type]  # the type of dataclasses has no public name
    ]

    def decorated(function: Callable[[T], None]) -> Callable[..., None]:
        @functools.wraps(function)
        def command(**values: Any) -> None:
            function(type_(**values))

        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
        return command

    return decorated


def arguments(options: object, declared: type[Any]) -> list[str]:
    """The command-line arguments that give another process these options: the fields of the dataclass `declared`,
    without the fields that are None or False. An option with several values is repeated. A flag has no value."""
    return [
        argument
        for field in dataclasses.fields(declared)
        if (values := getattr(options, field.name)) is not None and values is not False
        for value in (values if isinstance(values, list) else (values,))
        for argument in (f"--{field.name.replace('_', '-')}", *(() if value is True else (str(value),)))
    ]


def _default(field: "dataclasses.Field[Any]") -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
