"""Engines run the tasks of a job: in processes of this machine, or on a cluster.

A job takes one as `engine=`, the command line as `--engine`. The bytes are the same on all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recordsmith.support.explaining import check_word
from recordsmith.support.lazy import lazy_names
from recordsmith.support.tasks import Engine

if TYPE_CHECKING:
    from recordsmith.engines.beam import Beam as Beam
    from recordsmith.engines.processes import Processes as Processes
    from recordsmith.engines.ray import Ray as Ray
    from recordsmith.engines.spark import Spark as Spark

_NAMES = {"beam": "Beam", "processes": "Processes", "ray": "Ray", "spark": "Spark"}

__getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
__all__ += ["Engine", "parse_engine"]


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
    check_word("engine", name, _NAMES)
    engine: Engine = __getattr__(_NAMES[name]).parse(address)
    return engine
