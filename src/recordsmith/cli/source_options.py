"""The options that say what a source is, for every command that takes a SOURCE."""

from __future__ import annotations

import functools
import inspect as introspection
from collections.abc import Callable
from typing import Any

from recordsmith.cli.pack import SOURCE_PANEL, pack


def takes_source_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `pack` about the source; it receives the given ones as a dict.

    The dict is `source_options`, the keyword arguments of `rs.detect`.
    """
    known = {
        name: parameter
        for name, parameter in introspection.signature(pack, eval_str=True).parameters.items()
        if any(
            getattr(part, "rich_help_panel", None) == SOURCE_PANEL
            for part in getattr(parameter.annotation, "__metadata__", ())
        )
    }

    @functools.wraps(command)
    def run(**given: Any) -> None:
        options = {name: given.pop(name) for name in known}
        options["format"] = options.pop("kind")
        command(**given, source_options={k: v for k, v in options.items() if v is not None})

    signature = introspection.signature(command, eval_str=True)
    own = [each for name, each in signature.parameters.items() if name != "source_options"]
    first = [each for each in own if each.default is each.empty]
    rest = [each for each in own if each.default is not each.empty]
    parameters = [*first, *known.values(), *rest]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run
