"""`recordsmith.edit`: rewrite a dataset with changed features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from recordsmith.building import ShardCounts
from recordsmith.dataset import DEFAULT_TEMPLATE, Dataset
from recordsmith.dataset.locate import Paths
from recordsmith.errors import OptionError, option
from recordsmith.reshaping.editing.edits import Edits
from recordsmith.reshaping.editing.recode_table import TableLike
from recordsmith.reshaping.resharding.reshard import reshard_from_options
from recordsmith.reshaping.resharding.reshard_options import ReshardOptions
from recordsmith.reshaping.resharding.reshard_report import ReshardReport
from recordsmith.stores import PlaceLike
from recordsmith.tasks import Engine
from recordsmith.where import parse_where
from recordsmith.work import Progress


def edit(
    paths_or_dataset: Paths | Dataset,
    out: PlaceLike,
    *,
    drop: Iterable[str] = (),
    rename: Mapping[str, str] | None = None,
    add: Mapping[str, Any] | None = None,
    recode: Mapping[str, TableLike] | None = None,
    where: str | None = None,
    split: str | None = None,
    shards: ShardCounts | None = None,
    shard_size_bytes: int | None = None,
    compression: str | None = None,
    shard_names: str = DEFAULT_TEMPLATE,
    overwrite: bool = False,
    engine: Engine | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ReshardReport:
    """Rewrite a dataset with features dropped, renamed, added or recoded.

    Records keep their order and shards, and unchanged parts are copied byte for byte. `drop`,
    `rename`, `recode` and `where` use the features of the input; features are added last.

    Args:
        paths_or_dataset, out: as in `reshard`.
        drop: features to drop: names, or patterns such as `image/object/*`.
        rename: features to rename. New names by old ones.
        add: values by name, equal for all records, as in `encode_example`. In SequenceExamples they
            are added to the context.
        recode: a table of new values by old ones for each feature: a dict, or the path of a CSV,
            TSV or JSON file with the columns old, new and optionally name. The old value `*` is the
            default for values without a row; the new value `*` leaves those unchanged. Class names
            follow recoded labels.
        where: only records that match, such as "image/class/label in (1, 2)".
        split: only this split, or part of one: train, train[:80%]. None for all.
        shards: number of shards of each split; None for as many as before. A dict has a number for
            each split.
        shard_size_bytes: approximate size of a shard before compression, instead of `shards`.
        shard_names: pattern of the shard names, with {split}, {shard} and {shards}.
        compression: compression of the shards: none, gzip or zlib; None for that of the inputs if
            all are equal, else none.
        overwrite: replace an existing dataset.
        engine: what writes the shards, as in `reshard`.
        threads: number of threads; None for one per processor, at most 8.
        progress: called as `progress(done, total)` with bytes.

    Returns:
        A report.

    Raises:
        OptionError: nothing would change; no record has a given feature; a new name exists; a
            table does not fit; and as in `reshard`.
        CorruptDataError: a value is missing in its table (feature-value-mismatch), or a record is
            not an Example or is damaged. No output is left.
        SourceError, FileAccessError: as in `reshard`.

    Example:
        >>> recordsmith.edit("out", "smaller", drop=["image/object/*"])  # doctest: +SKIP
    """
    edits = Edits(drop=drop, rename=rename, add=add, recode=recode)
    if edits.is_empty:
        raise OptionError(
            "no edits",
            remedy=f"Pass {option('drop')}, {option('rename')}, {option('add')} or "
            f"{option('recode')}; to select records only, use `reshard` with {option('where')}.",
        )
    has_shard_options = (shards, shard_size_bytes, shard_names) != (None, None, DEFAULT_TEMPLATE)
    options = ReshardOptions(
        split=split,
        shards=shards,
        shard_size_bytes=shard_size_bytes,
        where=None if where is None else parse_where(where),
        edits=edits,
        compression=compression,
        shard_names=shard_names,
        keep_shards=not has_shard_options,
    )
    return reshard_from_options(
        options,
        paths_or_dataset,
        out,
        overwrite=overwrite,
        engine=engine,
        threads=threads,
        progress=progress,
    )
