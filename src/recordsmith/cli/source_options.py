"""The options that describe a source, for every command that takes one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from recordsmith.cli.pack import SOURCE_PANEL, pack


def with_source_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `source_options` of a command by the options of `pack`.

    The command receives them as one dict, the arguments of `make_source` after the path.
    """
    options = {
        name: parameter
        for name, parameter in inspect.signature(pack, eval_str=True).parameters.items()
        if _panel_of(parameter) == SOURCE_PANEL
    }

    @functools.wraps(command)
    def run(**given: Any) -> None:
        own = {name: value for name, value in given.items() if name not in options}
        command(**own, source_options={name: given[name] for name in options})

    signature = inspect.signature(command, eval_str=True)
    parameters = [
        each
        for name, parameter in signature.parameters.items()
        for each in (options.values() if name == "source_options" else [parameter])
    ]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def _panel_of(parameter: inspect.Parameter) -> Any:
    metadata = getattr(parameter.annotation, "__metadata__", ())
    return next((getattr(each, "rich_help_panel", None) for each in metadata), None)
