"""Leaves records out of a dataset: by position, or those that a file of findings chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from recordsmith.dataset import (
    Dataset,
    FindingsFile,
    RecordPositions,
    chosen,
    integer_positions,
    read_findings,
)
from recordsmith.support.errors import OptionError, option
from recordsmith.support.explaining import check_option

if TYPE_CHECKING:
    from recordsmith.support.buffers import Int64Array

Without: TypeAlias = str | Sequence[int]
"""Positions, or a file of findings: `@findings.jsonl`."""


def select_without(
    dataset: Dataset, without: Without, checks: str | Sequence[str] = (), keep: str = "first"
) -> Dataset:
    """Return a dataset without some records; arguments as in `reshard`.

    Raises:
        OptionError: the file is invalid or about another state of the dataset, or no record is
            left.
    """
    if isinstance(without, str):
        expected = "positions, or a file: @findings.jsonl"
        check_option(without.startswith("@"), "without", without, expected)
        findings = read_findings(without, "without")
        whole = RecordPositions.of(dataset)
        findings.check_dataset(whole.digest)
        removed = found_positions(findings, len(whole), checks, keep)
        is_removed = np.isin(whole.in_dataset(dataset), removed)
    else:
        check_findings_options(without, checks, keep)
        is_removed = np.zeros(len(dataset), bool)
        try:
            is_removed[integer_positions(without, len(dataset))] = True
        except IndexError as error:
            raise OptionError(
                str(error), option="without", expected=f"positions below {len(dataset):,}"
            ) from None
    if is_removed.all():
        raise OptionError(f"{option('without')} leaves no record", option="without")
    return dataset.select(np.flatnonzero(~is_removed)) if is_removed.any() else dataset


def check_findings_options(without: Without | None, checks: str | Sequence[str], keep: str) -> None:
    """Raise OptionError for an option of findings without them."""
    for name, is_given in (("checks", bool(checks)), ("keep", keep != "first")):
        if is_given and not isinstance(without, str):
            raise OptionError(
                f"{option(name)} needs a file of findings",
                option=name,
                remedy=f"Pass {option('without', '@findings.jsonl')}.",
            )


def found_positions(
    findings: FindingsFile, count: int, checks: str | Sequence[str], keep: str
) -> Int64Array:
    """Return the positions of the records that a file of findings chooses: ascending, each once.

    Args:
        count: of the records of the dataset, whose digest was compared.

    Raises:
        OptionError: a position is beyond the end, or as in `chosen`.
    """
    positions = set[int]()
    for number, place in chosen(findings, checks, keep):
        if place.position is not None:
            if place.position >= count:
                raise findings.line_error(
                    number, f"position {place.position:,}", f"below {count:,}, as the dataset has"
                )
            positions.add(place.position)
    return np.array(sorted(positions), np.int64)
