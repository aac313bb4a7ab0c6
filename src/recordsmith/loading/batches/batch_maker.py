"""Creates the BatchMaker of a loader: resolves its features against the schema."""

from __future__ import annotations

from collections.abc import Mapping

from recordsmith.dataset import Dataset
from recordsmith.loading.batches.batch import BatchMaker
from recordsmith.loading.batches.user_functions import UserFunctions
from recordsmith.loading.features import Feature
from recordsmith.loading.features.declaration import declare_features
from recordsmith.loading.features.requests import merged_glance, resolve_for_all
from recordsmith.loading.order.mix import Mix

_GLANCE_COUNT = 64  # records read to infer an unknown schema


def batch_maker(
    dataset: Dataset | Mix,
    features: Mapping[str, Feature | str] | None,
    *,
    seed: int,
    functions: UserFunctions,
    may_skip: bool = False,
) -> BatchMaker:
    """Return a BatchMaker for these features. Reads only the schema, or the first records.

    Raises:
        OptionError: as of `declare_features`; or the records lack what is declared.
    """
    datasets = dataset.datasets if isinstance(dataset, Mix) else (dataset,)
    glances = [one.glance(_GLANCE_COUNT) for one in datasets]
    schema, is_complete = merged_glance(glances)
    declared = declare_features(features, schema, is_complete=is_complete)
    return BatchMaker(
        dataset,
        declared,
        resolve_for_all(declared, glances, may_skip=may_skip),
        seed=seed,
        functions=functions,
        may_skip=may_skip,
    )
