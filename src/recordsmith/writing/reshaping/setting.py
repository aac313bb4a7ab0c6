"""Values of tables for the records that a job reads: `recordsmith edit --set`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from recordsmith.dataset import (
    ArrowStream,
    Dataset,
    Shard,
    View,
    joined_shards,
)
from recordsmith.stores import PlaceLike, ScratchFolder, as_folder
from recordsmith.support.errors import OptionError, option
from recordsmith.support.work import WorkerPool
from recordsmith.writing.building.shards import schemas_by_split
from recordsmith.writing.layers.files import write_layer
from recordsmith.writing.layers.joining import TableValues, join_table
from recordsmith.writing.reshaping.inputs import Inputs

SetOption = Mapping[str, str | tuple[PlaceLike | ArrowStream, str]]


def values_of_option(
    given: SetOption, on: str | None, *, on_name: bool, allow_missing: bool, encoding: str
) -> list[TableValues]:
    """Return the tables of the option `set`, each with the columns that are read from it."""
    if not isinstance(given, Mapping):
        raise OptionError(option="set", value=given, expected="a dict with names of features")
    if on is None:
        raise OptionError(
            f"{option('set')} needs {option('on')}",
            option="on",
            remedy="Name the feature that says which row belongs to a record, such as "
            "image/filename=file.",
        )
    tables: dict[int | str, tuple[Any, dict[str, str]]] = {}
    for feature, source in given.items():
        if isinstance(source, str):
            path, colon, column = source.rpartition(":")
            if not (path and colon and column) or "/" in column or "\\" in column:
                raise OptionError(
                    option="set", value=source, expected="FILE:COLUMN, such as labels.csv:species"
                )
            table: Any = path
        else:
            table, column = source
        known = tables.setdefault(table if isinstance(table, str) else id(table), (table, {}))
        known[1][feature] = column
    return [
        TableValues(table, columns, on, on_name, allow_missing, encoding)
        for table, columns in tables.values()
    ]


def described(values: Sequence[TableValues]) -> dict[str, Any]:
    """Describe the values for the history of a dataset."""
    named = {
        feature: f"{one.location.name}:{column}"
        for one in values
        for feature, column in (one.features or {}).items()
    }
    return {"set": named, "on": values[0].on}


def with_values(
    inputs: Inputs, values: Sequence[TableValues], workers: WorkerPool
) -> tuple[Inputs, ScratchFolder]:
    """Return the inputs of a job with values of tables in their records.

    The values are layers in a folder of temporary files, which must be kept during the job.
    """
    scratch = ScratchFolder()
    for number, one in enumerate(values):
        view = View(joined_shards(inputs.shards), inputs.schema, inputs.schema, inputs.class_names)
        joined = join_table(Dataset(view), one)
        target = as_folder(scratch.path) / str(number)
        files = [f"{shard}.tfrecord" for shard in range(len(inputs.shards))]
        written = write_layer(target, files, inputs.shards, joined, workers)
        covering = schemas_by_split(inputs.shards, (schema for _, schema in written))
        for shard, (entry, _) in zip(inputs.shards, written, strict=True):
            layer = Shard(target / entry.file, shard.split, entry=entry, compression="none")
            layer.features = frozenset(joined.features)
            shard.layers += (layer,)
        inputs = dataclasses.replace(
            inputs,
            schemas={
                split: schema.covered(covering[split]) for split, schema in inputs.schemas.items()
            },
            class_names=joined.class_names,
            notices=(*inputs.notices, *joined.notices),
            arrow_schema=None,
        )
    return inputs, scratch
