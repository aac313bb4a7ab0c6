"""Engines run the tasks of a job: in processes of this machine, or on a cluster.

A job takes one as `engine=`, the command line as `--engine`. The bytes are the same on all of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from recordsmith.support.explaining import unknown_word
from recordsmith.support.tasks import Engine

if TYPE_CHECKING:
    from recordsmith.engines.beam import Beam as Beam
    from recordsmith.engines.processes import Processes as Processes
    from recordsmith.engines.ray import Ray as Ray
    from recordsmith.engines.spark import Spark as Spark

_MODULES = {
    "Beam": "beam",
    "Processes": "processes",
    "Ray": "ray",
    "Spark": "spark",
}

__all__ = ["Beam", "Engine", "Processes", "Ray", "Spark", "parse_engine"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def parse_engine(text: str | None) -> Engine | None:
    """Return the engine for the text of an option: `processes:4`; None if there is none.

    Addresses with the name of an engine as their scheme stand alone: `spark://10.0.0.1:7077`.

    Raises:
        OptionError: there is no such engine, or its address is invalid.
    """
    if text is None:
        return None
    name, _, address = text.partition(":")
    if address.startswith("//"):
        address = text
    for kind, module in _MODULES.items():
        if module == name:
            engine: Engine = __getattr__(kind).parse(address)
            return engine
    raise unknown_word("engine", name, _MODULES.values())
