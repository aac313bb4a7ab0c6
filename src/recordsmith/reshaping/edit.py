"""`recordsmith.edit`: the same records with other features, in the same shards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from recordsmith.building import Shards
from recordsmith.dataset import DEFAULT_TEMPLATE
from recordsmith.dataset.locate import Paths
from recordsmith.errors import OptionError
from recordsmith.files import PathLike, Progress
from recordsmith.reshaping.contract import Selection
from recordsmith.reshaping.edits import Edits
from recordsmith.reshaping.options import ReshardOptions, selection_of
from recordsmith.reshaping.recode_table import TableLike
from recordsmith.reshaping.report import ReshardReport
from recordsmith.reshaping.reshard import reshard_by


def edit(
    paths: Paths,
    out: PathLike,
    *,
    drop: Iterable[str] = (),
    rename: Mapping[str, str] | None = None,
    add: Mapping[str, Any] | None = None,
    recode: Mapping[str, TableLike] | None = None,
    where: Selection | str | None = None,
    split: str | None = None,
    shards: Shards | None = None,
    shard_size_bytes: int | None = None,
    compression: str | None = None,
    shard_names: str = DEFAULT_TEMPLATE,
    overwrite: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ReshardReport:
    """Write a dataset once more with features dropped, renamed, added, or with other values.

    Records keep their order and their shards. What does not change in a record is copied as it is.
    `drop`, `rename`, `recode` and `where` speak of the features that the records have now; what is
    added comes last.

    Args:
        paths, out: as in `reshard`.
        drop: names of features, or patterns such as `image/object/*`.
        rename: new names by old ones.
        add: values by name, the same for every record, as in `encode_example`. Of a
            SequenceExample they become part of the context.
        recode: for each feature a table of new values by old ones: a dict, or the path of a CSV,
            TSV or JSON file with the columns old, new and perhaps name. A row whose old value is
            `*` speaks of all values without a row; new values `*` there leaves them as they are.
            The names of classes move with the labels.
        where: only these records go on; a condition such as "image/class/label in (1, 2)".
        split: only this one.
        shards, shard_size_bytes, shard_names: other shards than those that are there, as in
            `reshard`.
        compression: none, gzip or zlib; None: as the inputs are, if all are alike, else none.
        overwrite: replace a dataset that is there.
        threads: how many work at once; None: one for each processor, at most 8.
        progress: told the bytes done and in all.

    Returns:
        What was done.

    Raises:
        OptionError: nothing would change; no record has a feature that is named; a new name is
            taken; a table does not fit; and as `reshard`.
        CorruptDataError: a record has a value that is not in its table (feature-value-mismatch),
            is no Example, or is damaged. Nothing is left of the job.
        SourceError, FileAccessError: as `reshard`.
    """
    change = Edits(drop=drop, rename=rename, add=add, recode=recode)
    if change.is_empty:
        raise OptionError(
            "nothing is to be edited; say what to drop, rename, add or recode (for `where` alone, "
            "use reshard)"
        )
    is_told = (shards, shard_size_bytes, shard_names) != (None, None, DEFAULT_TEMPLATE)
    options = ReshardOptions(
        split=split,
        shards=shards,
        shard_size_bytes=shard_size_bytes,
        where=selection_of(where),
        change=change,
        compression=compression,
        shard_names=shard_names,
        keep_shards=not is_told,
    )
    return reshard_by(options, paths, out, overwrite=overwrite, threads=threads, progress=progress)
