"""Expected errors by their fields: `with raises(OptionError, option="shards", value=0): ...`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from recordsmith.support.errors import OptionError


@contextmanager
def raises(
    kind: type[Exception], *, match: str | None = None, **fields: Any
) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Expect an exception of a class, with fields of these values.

    Args:
        match: a few characters of the message, where the fields do not tell two faults apart.
        fields: name -> expected value; paths may be `Path` or `Location`, the value of an
            option is as passed.
    """
    with pytest.raises(kind, match=match) as caught:
        yield caught
    expected = {name: _shown(caught.value, name, value) for name, value in fields.items()}
    found = {name: getattr(caught.value, name) for name in fields}
    assert found == expected, str(caught.value)


def _shown(error: Exception, name: str, value: Any) -> Any:
    """A field as the error holds it."""
    if name == "value" and isinstance(error, OptionError):
        return OptionError(value=str(value) if isinstance(value, os.PathLike) else value).value
    return str(value) if isinstance(value, os.PathLike) else value


def places(problems: Iterable[str]) -> list[str]:
    """Where each problem or note is: its text up to the first colon."""
    return [problem.partition(": ")[0] for problem in problems]
