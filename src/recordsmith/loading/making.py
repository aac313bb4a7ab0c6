"""Creates the BatchMaker of a loader: resolves its features against the schema."""

from __future__ import annotations

from collections.abc import Mapping

from recordsmith.dataset import Dataset, preview_schema, records_of
from recordsmith.errors import OptionError
from recordsmith.loading.batches import BatchMaker
from recordsmith.loading.declaring import declare_features
from recordsmith.loading.features import Feature
from recordsmith.loading.functions import Changes
from recordsmith.loading.mix import Mix
from recordsmith.loading.requests import merged_schema, resolve_for_all

_PREVIEW_COUNT = 64  # records read to infer an unknown schema


def check_dataset(dataset: object) -> None:
    """Raise OptionError unless the argument is a Dataset or a Mix."""
    if not isinstance(dataset, (Dataset, Mix)):
        raise OptionError(
            option="dataset",
            value=dataset,
            expected="a Dataset, as recordsmith.open() returns it, or a Mix",
        )


def batch_maker(
    dataset: Dataset | Mix,
    features: Mapping[str, Feature | str] | None,
    *,
    seed: int,
    changes: Changes,
    may_skip: bool = False,
) -> BatchMaker:
    """Return a BatchMaker for these features. Reads only the schema, or the first records.

    Raises:
        OptionError: as of `declare_features`; or the records lack what is declared.
    """
    datasets = dataset.datasets if isinstance(dataset, Mix) else (dataset,)
    previews = [preview_schema(one, _PREVIEW_COUNT) for one in datasets]
    schema, is_complete = merged_schema(previews)
    declared = declare_features(features, schema, is_complete=is_complete)
    return BatchMaker(
        dataset if isinstance(dataset, Mix) else records_of(dataset),
        declared,
        resolve_for_all(declared, previews, may_skip=may_skip),
        seed=seed,
        changes=changes,
        may_skip=may_skip,
    )
