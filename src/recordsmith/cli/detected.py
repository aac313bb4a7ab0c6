"""Prints how a source is read, for the commands that take one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from recordsmith.cli import console
from recordsmith.cli.wording import option_in_shell
from recordsmith.errors import with_options

if TYPE_CHECKING:
    from recordsmith.sources import Detection, Source


def print_detected(detected: Detection, *, json: bool) -> Source:
    """Print what was detected, and return the source, which is not listed again."""
    if detected.given_format is not None:
        return detected.source
    from recordsmith.sources import ListedSource

    listing = detected.source.list_samples()
    if not json:
        described = with_options(detected.describe(listing))
        console.print_aside(f"Detected: {console.printable(described)}")
        shown = options_in_shell(detected.reading.format, detected.reading.options)
        console.print_aside(console.printable(shown))
        if hint := with_options(detected.reading.hint):
            console.print_aside(f"hint: {hint}")
    return ListedSource(detected.source, listing)


def options_in_shell(format: str, options: Mapping[str, Any]) -> str:
    """The options of `pack` that read a source in the same way."""
    given = {"format": format, **options}
    return " ".join(option_in_shell(name, repr(value)) for name, value in given.items())
