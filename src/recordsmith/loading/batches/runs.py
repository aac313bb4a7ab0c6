"""Splits steps at the borders of runs: records that are best read together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.loading.order.schedule import Step

Runs: TypeAlias = Callable[[int, Int64Array], "Int64Array | None"]
"""Called as `runs(epoch, places)`; returns the number of the run of each place, None if there are
no runs."""


class StepPart(NamedTuple):
    """The records begin:end of a step, which are in one run."""

    step: Step
    begin: int
    end: int
    run: object

    @property
    def positions(self) -> Int64Array:
        """The positions of its records."""
        return self.step.positions[self.begin : self.end]

    @property
    def completes_step(self) -> bool:
        """Whether it is the last part of its step."""
        return self.end == len(self.step.positions)


def step_parts(steps: Iterable[Step], runs: Runs) -> Iterator[StepPart]:
    """Yield the parts of steps, in order; without runs, each step is one part."""
    run: object = None
    for number, step in enumerate(steps):
        of_places = runs(step.epoch, step.places)
        if of_places is None or not len(of_places):
            run = run if of_places is not None else number
            yield StepPart(step, 0, len(step.positions), run)
            continue
        cuts = [0, *(np.flatnonzero(np.diff(of_places)) + 1).tolist(), len(of_places)]
        for begin, end in pairwise(cuts):
            run = (step.epoch, int(of_places[begin]))
            yield StepPart(step, begin, end, run)
