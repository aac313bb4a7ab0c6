"""Layers: reading them in a loader, next to the same values inside the records, and adding one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from case import OURS, Case, Peer, Task
from inputs import EMBEDDING_SIZE, Inputs

_SETTING = "lance_python"


def _load(
    inputs: Inputs, name: str, features: Callable[[Any], dict[str, Any]], batch_size: int
) -> Task:
    import recordsmith as rs

    inputs.make(name)
    dataset = rs.open(inputs.path(name))
    loader = rs.Loader(dataset, features(rs), batch_size=batch_size, shuffle=True, threads=2)

    def run() -> float:
        return sum(float(batch["value"].sum()) for batch in loader)

    return Task(run, len(dataset), digest=lambda total: round(total, 1))


def _labels(rs: Any) -> dict[str, Any]:
    return {"image": rs.Image("image/encoded", (224, 224)), "value": rs.Scalar("new_label")}


def _embeddings(rs: Any) -> dict[str, Any]:
    value = rs.Tensor("embedding", (EMBEDDING_SIZE,))
    return {"image": rs.Image("image/encoded", (224, 224)), "value": value}


def _small(rs: Any) -> dict[str, Any]:
    return {
        "user": rs.Scalar("user"),
        "dense": rs.Tensor("dense", (13,)),
        "items": rs.Ragged("items"),
        "value": rs.Scalar("new_label"),
    }


def _loading(
    name: str, title: str, what: str, features: Any, batch_size: int, at_most: float | None
) -> Case:
    prepare = partial(_load, features=features, batch_size=batch_size)
    return Case(
        name=f"loader-layers-{name}",
        title=title,
        what=what,
        unit="record",
        peers=(
            Peer(OURS, partial(prepare, name=name)),
            Peer("inside the records", partial(prepare, name=f"{name}-inside"), at_most=at_most),
        ),
        inputs=(name, f"{name}-inside"),
        on_wall_too=True,
    )


def _recordsmith(inputs: Inputs, way: str) -> Task:
    import recordsmith as rs

    path, out, table = inputs.path("thumbnails"), inputs.out("labelled"), _table(inputs)

    def before() -> None:
        shutil.rmtree(out, ignore_errors=True)
        if way in ("id", "position=id"):
            shutil.copytree(path, out)

    def run() -> Any:
        if way in ("id", "position=id"):
            return rs.add_layer(out, table, name="labels", on=way)
        if way == "edit":
            return rs.edit(path, out, set={"label": f"{table}:label"}, on="id")
        return rs.reshard(path, out, shards=8)

    return Task(run, inputs.thumbnail_count, before)


def _table(inputs: Inputs) -> Path:
    return inputs.path("new-labels.csv")


def _lance(inputs: Inputs, *, by_key: bool) -> Task:
    import lance
    import pyarrow.csv
    import pyarrow.parquet as pq

    made, out = inputs.path("thumbnails.lance"), inputs.out("labelled.lance")
    if not made.exists():
        rows = pq.ParquetFile(inputs.path("thumbnails.parquet"))
        batches = rows.iter_batches(4096)
        partial_folder = made.with_name(f"{made.name}.partial")
        lance.write_dataset(batches, str(partial_folder), rows.schema_arrow, mode="overwrite")
        partial_folder.rename(made)

    def before() -> None:
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(made, out)

    def run() -> Any:
        labels = pyarrow.csv.read_csv(_table(inputs))
        dataset = lance.dataset(str(out))
        if by_key:
            dataset.merge(labels, "id")
        else:
            labels = labels.sort_by("id").select(["label"])
            dataset.add_columns(labels.to_reader(4096))
        return dataset.count_rows()

    return Task(run, inputs.thumbnail_count, before)


class _WithLabels:
    """A record of a folder of LitData with its label; pickled into its workers."""

    def __init__(self, folder: str, labels: Sequence[int]) -> None:
        self._folder, self._labels = folder, labels
        self._dataset: Any = None

    def __call__(self, number: int) -> Any:
        import litdata

        if self._dataset is None:
            self._dataset = litdata.StreamingDataset(self._folder)
        record = self._dataset[number]
        return {**record, "label": self._labels[record["id"]]}

    def __getstate__(self) -> Any:
        return {**vars(self), "_dataset": None}


class _Rows:
    def __init__(self, path: str) -> None:
        self._path = path
        self._columns: Any = None

    def __call__(self, number: int) -> Any:
        import pyarrow.parquet as pq

        if self._columns is None:
            self._columns = pq.read_table(self._path)
        return {"id": number, "image": self._columns["image"][number].as_py()}


def _litdata(inputs: Inputs) -> Task:
    import litdata
    import pyarrow.csv

    made, out = inputs.path("thumbnails.litdata"), inputs.out("labelled.litdata")
    count = inputs.thumbnail_count
    options = {"chunk_bytes": "64MB", "num_workers": 1}
    if not made.exists():
        rows = _Rows(str(inputs.path("thumbnails.parquet")))
        partial_folder = made.with_name(f"{made.name}.partial")
        litdata.optimize(rows, list(range(count)), str(partial_folder), **options)
        partial_folder.rename(made)

    def run() -> Any:
        labels = pyarrow.csv.read_csv(_table(inputs)).sort_by("id")["label"].to_pylist()
        changed = _WithLabels(str(made), labels)
        litdata.optimize(changed, list(range(count)), str(out), **options)

    return Task(run, count, lambda: shutil.rmtree(out, ignore_errors=True))


CASES = (
    _loading(
        "camera-labels",
        "Train from images with a layer of labels",
        "JPEG files of 500 by 375 pixels and 107 kB to shuffled batches of 32 images of 224 by 224 "
        "pixels, by two threads.",
        _labels,
        32,
        1.02,
    ),
    _loading(
        "camera-embeddings",
        "Train from images with a layer of embeddings",
        f"The same images with {EMBEDDING_SIZE:,} floats each.",
        _embeddings,
        32,
        1.10,
    ),
    _loading(
        "small-labels",
        "Train from small records with a layer of labels",
        "Small Examples of about 200 bytes to shuffled batches of 1,024, by two threads: what a "
        "layer costs where records cost little.",
        _small,
        1024,
        None,
    ),
    Case(
        name="layers-add",
        title="Add a column of labels",
        what="Labels in a CSV file, in another order, for images of 7 kB each. Lance and LitData "
        "have the images in their own formats; LitData has no columns, so all is written again.",
        unit="record",
        peers=(
            Peer(OURS, partial(_recordsmith, way="id")),
            Peer("recordsmith, by position", partial(_recordsmith, way="position=id")),
            Peer("`rs.edit`, all records", partial(_recordsmith, way="edit")),
            Peer("`rs.reshard`, which only copies", partial(_recordsmith, way="copy")),
            Peer("Lance, `merge` by key", partial(_lance, by_key=True), python_setting=_SETTING),
            Peer(
                "Lance, `add_columns` of sorted labels",
                partial(_lance, by_key=False),
                python_setting=_SETTING,
            ),
            Peer("LitData, `optimize`", _litdata, python_setting=_SETTING),
        ),
        inputs=("thumbnails", "thumbnails.parquet", "new-labels.csv"),
        on_wall_too=True,
    ),
)
