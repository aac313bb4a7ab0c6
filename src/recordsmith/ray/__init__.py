"""Ray: a cluster reads and writes datasets, and trains from them. Needs ray[data].

    import recordsmith.ray

    data = recordsmith.ray.read("s3://my-bucket/flowers", columns=["image/class/label"])
    recordsmith.ray.write(data, "s3://my-bucket/labels")

`reading` and `writing` are for Ray Data, `this_rank` for Ray Train.
"""

from recordsmith.loading import Rank
from recordsmith.support.errors import needs_extra

with needs_extra("ray", "ray", "pyarrow", "pandas"):
    from recordsmith.ray.reading import RecordsmithDatasource, read
    from recordsmith.ray.writing import RecordsmithDatasink, write

__all__ = ["RecordsmithDatasink", "RecordsmithDatasource", "read", "this_rank", "write"]


def this_rank() -> Rank:
    """Return rank and world_size of this worker of Ray Train: `Loader(..., **this_rank())`.

    Outside of a training function, rank 0 of 1.
    """
    from ray import train  # takes a second, and only training needs it

    try:
        context = train.get_context()
        return Rank(rank=context.get_world_rank(), world_size=context.get_world_size())
    except RuntimeError:  # not in a training function
        return Rank(rank=0, world_size=1)
