"""Explains invalid calls: unknown words and options, names of other libraries, and warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from recordsmith.support.errors import OptionError
from recordsmith.support.words import did_you_mean

_Function = TypeVar("_Function", bound=Callable[..., Any])
_PACKAGE = __name__.partition(".")[0] + "."


def check_word(name: str, value: object, allowed: Iterable[str]) -> None:
    """Raise OptionError if a value is not one of the allowed strings."""
    allowed = list(allowed)
    if not (isinstance(value, str) and value in allowed):
        raise unknown_word(name, value, allowed)


def check_option(
    is_right: object, name: str, value: object, expected: str, remedy: str = ""
) -> None:
    """Raise OptionError if the value of an option is not right."""
    if not is_right:
        raise OptionError(option=name, value=value, expected=expected, remedy=remedy)


def unknown_word(
    name: str, value: object, allowed: Iterable[str], problem: str = ""
) -> OptionError:
    """Return the error for a value of an option that is not one of the allowed strings."""
    allowed = list(allowed)
    return OptionError(
        problem,
        option=name,
        value=value,
        expected=f"one of {', '.join(allowed)}",
        remedy=did_you_mean(str(value), allowed),
    )


def explain_unknown(explained: Mapping[str, str]) -> Callable[[_Function], _Function]:
    """Decorate a function or class: OptionError names the right option for an unknown one.

    Args:
        explained: what to do instead, by names of other libraries with spaces between them.
    """
    remedies = {name: remedy for names, remedy in explained.items() for name in names.split()}

    def decorate(function: _Function) -> _Function:
        if isinstance(function, type):
            cast("Any", function).__init__ = decorate(cast("Any", function).__init__)
            return function
        code = function.__code__
        known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        by_name = known[code.co_argcount :]

        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            called = function.__qualname__.removesuffix(".__init__")
            if len(args) > code.co_argcount and by_name:
                raise OptionError(
                    f"{called} has too many arguments without a name",
                    remedy=f"Pass them by name, such as {by_name[0]}=….",
                )
            for name in options:
                if name not in known:
                    raise OptionError(
                        f"{called} has no option {name!r}",
                        option=name,
                        remedy=remedies.get(name) or did_you_mean(name, known),
                    )
            return function(*args, **options)

        return cast("_Function", call)

    return decorate


class LeftOutWarning(UserWarning):
    """Something that belongs to a dataset is not read. Commands print it, too."""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside of this package that called it."""
    frame, level = sys._getframe(), 1  # noqa: SLF001 - the `inspect` module is slow to import
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
