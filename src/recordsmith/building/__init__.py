"""From finished shards to a dataset: whole under its names, or not there at all.

What every job shares that writes a dataset: a folder that it holds, notes of what is done, and the
moment in which everything gets its name. Knows nothing of where records come from.
"""

from recordsmith.building.finished import (
    Noted,
    ShardResult,
    Versions,
    complete_result,
    complete_shards,
    done_path,
    keep_result,
    partial_path,
)
from recordsmith.building.folder import earlier_dataset, working_in
from recordsmith.building.proving import read_back
from recordsmith.building.publishing import (
    clean_up,
    publish_dataset,
    replaced_names,
)

__all__ = [
    "Noted",
    "ShardResult",
    "Versions",
    "clean_up",
    "complete_result",
    "complete_shards",
    "done_path",
    "earlier_dataset",
    "keep_result",
    "partial_path",
    "publish_dataset",
    "read_back",
    "replaced_names",
    "working_in",
]
