"""Ray: a cluster reads and writes datasets, and trains from them. Needs ray[data].

    import recordsmith.ray

    data = recordsmith.ray.read("s3://my-bucket/flowers", columns=["image/class/label"])
    recordsmith.ray.write(data, "s3://my-bucket/labels")

`reading` and `writing` are for Ray Data, `training` for Ray Train.
"""

try:
    from recordsmith.ray.reading import RecordsmithDatasource, read
    from recordsmith.ray.training import this_rank, to_loader
    from recordsmith.ray.writing import RecordsmithDatasink, write
except ModuleNotFoundError as error:
    from recordsmith.errors import MissingExtraError

    if error.name is None or error.name.partition(".")[0] not in ("ray", "pyarrow", "pandas"):
        raise
    raise MissingExtraError("ray", error.name) from error

__all__ = [
    "RecordsmithDatasink",
    "RecordsmithDatasource",
    "read",
    "this_rank",
    "to_loader",
    "write",
]
