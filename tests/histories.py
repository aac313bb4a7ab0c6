"""Random changes of datasets, with kills between, and a model of them in plain Python."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import read_manifest
from recordsmith.format.example import SchemaSurvey
from recordsmith.stores import PlaceLike
from recordsmith.writing.layers.adding import add_layer, remove_layer

from .killed_jobs import killed_before
from .layered import layer_files, listed_files, merged_payloads

Row = dict[str, Any]


class Model(NamedTuple):
    """What a dataset is.

    base: the records of each split without layers.
    layers: by name and id of a record, the features that the layer gives it; ordered.
    """

    base: dict[str, list[Row]]
    layers: dict[str, dict[int, Row]]

    @property
    def rows(self) -> dict[str, list[Row]]:
        """The records with their layers."""
        return {split: [self.merged(row) for row in rows] for split, rows in self.base.items()}

    @property
    def listed(self) -> list[Row]:
        return [row for rows in self.rows.values() for row in rows]

    def merged(self, row: Row) -> Row:
        for layer in self.layers.values():
            row = {**row, **layer.get(row["id"], {})}
        return row

    def filtered(self, keeps: Callable[[Row], bool]) -> Model:
        kept = {
            split: [row for row in rows if keeps(self.merged(row))]
            for split, rows in self.base.items()
        }
        return self._replace(base=kept)

    def flat(self) -> Model:
        """The same records, without layers."""
        return Model(self.rows, {})


class Change(NamedTuple):
    """A job, the model after it, and whether it changes the dataset in its folder."""

    job: Callable[[], object]
    after: Model
    is_in_place: bool = True


def run_history(root: Path, seed: int, length: int, every: int = 1) -> None:
    """`every`: after how many changes TensorFlow reads, too."""
    rng = np.random.default_rng(seed)
    out = root / "out"
    model = Model({"train": _rows(rng, 0, 12), "test": _rows(rng, 100, 5)}, {})
    _pack(model, out, rng)
    for step in range(length):
        job, expected, is_in_place = _next_change(rng, out, root / f"new{step}", model, step)
        if rng.random() < 0.5 and hasattr(os, "fork"):
            killed_before(int(rng.integers(1, 40)), job)
            was_begun = not (out / "dataset.json").exists()
            if was_begun and is_in_place:
                assert rs.recover(out).outcome == "finished"
                assert read(out) == expected.rows
            elif was_begun or not is_in_place or not is_model(out, expected):
                assert was_begun or is_model(out, model) or is_model(out, expected)
                job()
        else:
            job()
        model = expected
        assert is_model(out, model)
        rs.recover(out)  # removes what a killed job has left
        assert layer_files(out) == listed_files(out)
        assert step % every != every - 1 or read_by_tensorflow(out) == model.rows
        assert_is_whole(out)


def _rows(rng: np.random.Generator, first: int, count: int) -> list[Row]:
    return [
        {
            "id": n,
            "label": int(rng.integers(3)),
            "v": rng.integers(9, size=rng.integers(4)).tolist(),
        }
        for n in range(first, first + count)
    ]


def _pack_rows(rows: list[Row], out: Path, **options: Any) -> None:
    kinds = {"v": "int64"}
    rs.pack(rs.Rows(rows, kinds=kinds), out, **{"shuffle": False, **options})  # type: ignore[arg-type]


def _pack(model: Model, out: Path, rng: np.random.Generator) -> None:
    parts = []
    for split, rows in model.base.items():
        part = out.parent / f"{out.name}-{split}"
        _pack_rows(rows, part, shards=1)
        shard = next(part.glob("*.tfrecord"))
        parts.append(shard.rename(part / f"{split}-00000-of-00001.tfrecord"))
        (part / "dataset.json").unlink()
    rs.reshard(parts, out, shards=int(rng.integers(1, 4)))


KINDS = ["remove", "where", "replace", "append", "reshard", "add", "add", "drop", "set"]


def _next_change(rng: np.random.Generator, out: Path, new: Path, model: Model, step: int) -> Change:
    listed = model.listed
    kind = rng.choice(KINDS) if len(listed) > 6 else "append"
    if kind == "remove":
        gone = rng.choice(len(listed), rng.integers(0, min(4, len(listed))), replace=False)
        ids = {listed[n]["id"] for n in gone}
        return Change(
            lambda: rs.edit_in_place(out, without=gone, threads=1, allow_empty=True, again=True),
            model.filtered(lambda row: row["id"] not in ids),
        )
    if kind == "where":
        value, label = int(rng.integers(9)), int(rng.integers(3, 12))
        where = f"id not in ({value}, {value + 100}) and label != {label}"
        return Change(
            lambda: rs.edit_in_place(out, where=where, threads=1, allow_empty=True),
            model.filtered(
                lambda row: row["id"] not in (value, value + 100) and row["label"] != label
            ),
        )
    if kind == "replace":
        return _replacement(rng, out, new, model, step)
    if kind == "append":
        more = _rows(rng, 1000 * (step + 1), 3)
        _pack_rows(more, new)
        base = {**model.base, "train": [*model.base["train"], *more]}
        return Change(
            lambda: rs.append(new, out, split="train", threads=1, allow_missing=True),
            model._replace(base=base),
        )
    if kind == "add":
        return _layer(rng, out, new, model, step)
    if kind == "drop" and model.layers:
        name = str(rng.choice([*model.layers]))
        layers = {other: rows for other, rows in model.layers.items() if other != name}
        return Change(lambda: remove_layer(out, name), model._replace(layers=layers))
    if kind == "set":
        labels = {row["id"]: int(rng.integers(3, 6)) for row in listed if rng.random() < 0.7}
        if labels:
            _table(new.with_suffix(".csv"), [{"id": n, "x": x} for n, x in labels.items()])
            source = f"{new.with_suffix('.csv')}:x"
            rs.edit(out, new, set={"label": source}, on="id", allow_missing=True)
            rows = {
                split: [{**row, "label": labels.get(row["id"], row["label"])} for row in rows]
                for split, rows in model.rows.items()
            }
            return _over(out, new, Model(rows, {}), step)
    rs.reshard(out, new, shards=2)
    return _over(out, new, model.flat(), step)


def _over(out: Path, new: Path, model: Model, step: int) -> Change:
    def reshard() -> None:
        rs.reshard(new, out, shards=step % 2 + 1, overwrite=True, threads=1)

    return Change(reshard, model, is_in_place=False)


def _replacement(rng: np.random.Generator, out: Path, new: Path, model: Model, step: int) -> Change:
    """Records with all features that they had, some of other values."""
    chosen = rng.choice(len(model.listed), 2, replace=False)
    rows = {
        row["id"]: {**row, "v": [7] * int(rng.integers(6)), "label": 20 + step}
        for row in (model.listed[n] for n in chosen)
    }
    if len({*map(frozenset, rows.values())}) > 1:  # lacks a feature that others have
        return Change(lambda: None, model)
    _pack_rows([*rows.values()], new)
    base = {split: [rows.get(row["id"], row) for row in part] for split, part in model.base.items()}
    layers = {
        name: {
            n: {key: rows[n][key] for key in given} if n in rows else given
            for n, given in layer.items()
        }
        for name, layer in model.layers.items()
    }
    return Change(
        lambda: rs.edit_in_place(out, replace=new, on="id", threads=1), Model(base, layers)
    )


def _layer(rng: np.random.Generator, out: Path, new: Path, model: Model, step: int) -> Change:
    """Values of some records or of all, by key or by position, of new features or old ones."""
    replaced = str(rng.choice([*model.layers])) if model.layers and rng.random() < 0.3 else ""
    name = replaced or f"layer{step}"
    keys = [["label"], [f"n{step}"], ["label", "v2"], ["n0"]][int(rng.integers(4))]
    above = [*model.layers][[*model.layers].index(replaced) + 1 :] if replaced else []
    held = {key for other in above for row in model.layers[other].values() for key in row}
    if held.intersection(keys):  # refused
        replaced, name = "", f"layer{step}"
    by_position, share = rng.random() < 0.5, float(rng.choice([0.6, 1.0]))
    given = {
        row["id"]: {key: int(rng.integers(3, 12)) for key in keys}
        for row in model.listed
        if rng.random() < share
    }
    table = [
        {"key": position if by_position else row["id"], **given[row["id"]]}
        for position, row in enumerate(model.listed)
        if row["id"] in given
    ]
    _table(new.with_suffix(".csv"), [table[n] for n in rng.permutation(len(table))])
    kept = {  # a record without a row keeps what it has, also in the layer that is replaced
        row["id"]: given.get(row["id"], {key: row[key] for key in keys if key in row})
        for row in model.listed
    }
    change = lambda: add_layer(  # noqa: E731
        out,
        new.with_suffix(".csv"),
        name=name,
        on="position=key" if by_position else "id=key",
        overwrite=bool(replaced),
        allow_missing=True,
        threads=1,
    )
    return Change(change, model._replace(layers={**model.layers, name: kept}))  # in its place


def _table(path: Path, rows: list[Row]) -> None:
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def _plain(values: dict[str, list[Any]]) -> Row:
    return {
        key: value if key == "v" else value[0]
        for key, value in sorted(values.items())
        if key == "v" or value
    }


def read(out: Path) -> dict[str, Any]:
    """What a reader sees."""
    return {
        split: [_plain({key: [*value] for key, value in row.items()}) for row in rows]
        for split, rows in rs.open(out).splits.items()
    }


def is_model(out: Path, model: Model) -> bool:
    """Whether a reader sees the model, with its layers."""
    manifest = read_manifest(out)
    assert manifest is not None
    return [layer.name for layer in manifest.layers] == [*model.layers] and read(out) == model.rows


def read_by_tensorflow(out: Path) -> dict[str, Any]:
    """The records of the files, each followed by those of its layers, as TensorFlow reads them."""
    tf = pytest.importorskip("tensorflow")
    return {
        split: [
            _plain(
                {
                    key: list(feature.int64_list.value)
                    for key, feature in tf.train.Example.FromString(data).features.feature.items()
                }
            )
            for data in payloads
        ]
        for split, payloads in merged_payloads(out).items()
    }


def schema_of(dataset: rs.Dataset) -> Any:
    survey = SchemaSurvey()
    for shard in dataset.shards:
        for block in shard.blocks():
            survey.update(block.buffer, block.starts, block.lengths)
    return survey.finish()


def assert_is_whole(folder: PlaceLike) -> None:
    """Its manifest says of the records what one made from them would say."""
    dataset = rs.open(folder)
    assert rs.verify(folder, deep=True).is_good
    assert dataset.schema == schema_of(dataset)
    for name, split in dataset.splits.items():
        manifest = read_manifest(folder)
        assert manifest is not None
        assert manifest.schema_of(name) == schema_of(split)
        rows = [*split]
        keys = split.schema.columns if split.schema.payload == "Example" else ()
        for key in keys:  # alone, so that only the files that have it are read
            column = split.read_columns({key: rs.FeatureSpec(shape="ragged")})[key]
            assert [[*values] for values in column] == [[*row.get(key, ())] for row in rows]
