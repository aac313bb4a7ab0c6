"""`recordsmith.add_layer` and `remove_layer`: features of all records, without writing them again.

The files of a layer are written first, under names that nothing else has; the manifest, which is
replaced last, lists them. Files that it does not list any more are removed afterwards.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any

from recordsmith.dataset import (
    LABEL_MAP_NAME,
    MANIFEST_NAME,
    ArrowStream,
    Dataset,
    Layer,
    Manifest,
    Shard,
    ShardEntry,
    is_valid_file_name,
    open_packed,
    read_begun_note,
)
from recordsmith.format.example import Schema
from recordsmith.format.example.keys import is_class_key
from recordsmith.sources import join_names
from recordsmith.stores import NOTE_BYTES, Location, PlaceLike, as_folder, read_document
from recordsmith.support.errors import FileAccessError, OptionError, option
from recordsmith.support.summaries import Report
from recordsmith.support.work import Progress, WorkerPool, thread_count
from recordsmith.writing.building import publishing
from recordsmith.writing.building.fingerprints import fingerprint, fingerprint_bytes
from recordsmith.writing.building.shards import schemas_by_split, survey_shard
from recordsmith.writing.layers.files import check_apart, layer_file, write_layer
from recordsmith.writing.layers.joining import JoinedRows, TableValues, join_table

_LONGEST_NAME = 200  # bytes, of a folder
_VERSION = 1  # changes if the same command gives other bytes


@dataclass(repr=False)
class LayerReport(Report):
    """The report of `add_layer` and `remove_layer`.

    folder: the dataset.
    name: of the layer.
    features: what the layer has.
    record_count: number of records of the dataset.
    missing_count: number of records for which the table has no value.
    size_bytes: of the files of the layer.
    notices: about the table.
    is_new: False if nothing had to be changed.
    """

    folder: Location
    name: str
    features: tuple[str, ...] = ()
    record_count: int = 0
    missing_count: int = 0
    size_bytes: int = 0
    notices: tuple[str, ...] = ()
    is_new: bool = True

    @classmethod
    def from_manifest(cls, folder: Location, name: str, manifest: Manifest) -> LayerReport:
        """Return the report of the last change of a dataset."""
        step = manifest.changes[-1]
        return cls(
            folder,
            name,
            tuple(step["features"]),
            manifest.record_count,
            int(step.get("missing", 0)),
            sum(layer.size_bytes for layer in manifest.layers if layer.name == name),
            tuple(step.get("notices", ())),
        )


@dataclass(repr=False)
class LayersReport(Report):
    """The layers of a dataset.

    folder: the dataset.
    layers: for each, in the order in which they are read: name, features, hidden (those that the
        records had without it), and the number and size_bytes of its shards.
    """

    folder: Location
    layers: list[dict[str, Any]]


def add_layer(
    path: PlaceLike,
    table: PlaceLike | ArrowStream,
    *,
    name: str,
    on: str,
    features: Mapping[str, str] | None = None,
    on_name: bool = False,
    allow_missing: bool = False,
    encoding: str = "utf-8",
    overwrite: bool = False,
    lock: bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
) -> LayerReport:
    """Give the records of a dataset features of a table, without writing the records again.

    Writes a file for each shard to `layers/NAME/` in the folder of the dataset. Whatever reads the
    dataset by its folder sees the features as if they were in the records; a feature that the
    records have already gets the new values everywhere. `reshard` makes them part of the records.

    Args:
        path: the folder of a dataset with a manifest.
        table: a file (CSV, TSV, JSON Lines, Parquet, Feather, Arrow), or a table of pyarrow,
            Polars, pandas or DuckDB.
        name: of the layer, and of its folder.
        on: which row belongs to which record: a feature that has the values of the column of the
            same name; FEATURE=COLUMN for another one; position=COLUMN for numbers of records.
        features: the column for each feature; None for all columns but that of `on`, by their
            names.
        on_name: compare only what is behind the last slash, on both sides.
        allow_missing: allow records without a row or value, which keep what they have, and rows
            without a record.
        encoding: of text files.
        overwrite: replace a layer of that name, in its place. Records without a new value keep
            what they have in the old one. Not if a layer that was added later has a feature of
            it, too.
        lock: fail on file systems without locks. With False, make sure that no other job changes
            the dataset.
        threads: number of threads; None for one per processor, at most 8.
        progress: called as `progress(done, total)` with the records whose keys are read.

    Returns:
        A report.

    Raises:
        OptionError: there is no manifest, or a layer of that name; a column or feature does not
            exist; values of `on` occur twice, or are of different kinds; records or rows have no
            partner; a kind differs from that of the feature in the records.
        SourceError: the table cannot be read.
        CorruptDataError: a shard is damaged. The dataset is unchanged.
        FileAccessError: a file cannot be read or written, or the disk is full.

    Example:
        rs.add_layer("out", "scores.csv", name="scores", on="image/filename=file")
        print(rs.open("out").filter("score > 0.4"))
    """
    folder = _checked_folder(path)
    is_name = is_valid_file_name(name) and name.isprintable()
    if not is_name or len(name.encode()) > _LONGEST_NAME:
        raise OptionError(option="name", value=name, expected="a name without special characters")
    values = TableValues(table, features, on, on_name, allow_missing, encoding)
    most = thread_count(threads, most=publishing.WRITING_THREADS)
    with publishing.locked_folder(folder, needs_lock=lock) as notices:
        change = _Change(folder, name, WorkerPool(most, None))
        report = change.add(values, progress, overwrite=overwrite)
    report.notices += notices
    return report


def remove_layer(path: PlaceLike, name: str, *, lock: bool = True) -> LayerReport:
    """Remove a layer of a dataset: its records are again what they were without it.

    Args:
        path: the folder of a dataset with a manifest.
        name: of the layer.
        lock: as in `add_layer`.

    Raises:
        OptionError: there is no manifest, or no layer of that name.
        FileAccessError: a file cannot be read or written.

    Example:
        rs.add_layer("out", "scores.csv", name="scores", on="image/filename=file")
        rs.remove_layer("out", "scores")
    """
    folder = _checked_folder(path)
    with publishing.locked_folder(folder, needs_lock=lock) as notices:
        report = _Change(folder, name, WorkerPool(1, None)).remove()
    report.notices += notices
    return report


def list_layers(path: PlaceLike) -> LayersReport:
    """Return the layers of a dataset."""
    folder = _checked_folder(path)
    manifest, _ = _manifest_of(folder)
    layers = [
        {
            "name": layer.name,
            "features": list(layer.features),
            "hidden": list(layer.hidden),
            "shards": len(layer.shards),
            "size_bytes": layer.size_bytes,
        }
        for layer in manifest.layers
    ]
    return LayersReport(folder, layers)


def _manifest_of(folder: Location) -> tuple[Manifest, str]:
    """Return the manifest of a dataset, and its digest."""
    manifest = publishing.packed_manifest(folder)
    return manifest, fingerprint_bytes(read_document(folder / MANIFEST_NAME, NOTE_BYTES))


def _checked_folder(path: PlaceLike) -> Location:
    folder = as_folder(path)
    publishing.check_folder(folder)
    if not folder.is_folder():
        raise OptionError(f"no such folder: {folder}", option="path", value=str(folder))
    return folder


@dataclass
class _Change:
    """A change of one layer, with the folder locked."""

    folder: Location
    name: str
    workers: WorkerPool
    command: Any = None  # what else it was asked for

    def add(
        self, values: TableValues, progress: Progress | None, *, overwrite: bool
    ) -> LayerReport:
        options = [values.on, values.on_name, values.allow_missing, values.encoding, overwrite]
        columns = None if values.features is None else sorted(values.features.items())
        table: list[Any] = [id(values.table)]  # of no other process
        with suppress(FileAccessError):  # a table in memory, or one that cannot be read below
            info = values.location.info()
            table = [values.location.name, info.size_bytes, info.version]
        self.command = [columns, options, table]
        if (finished := self._finish_interrupted()) is not None:
            return LayerReport.from_manifest(self.folder, self.name, finished)
        manifest, base = _manifest_of(self.folder)
        earlier, old = manifest, self._find(manifest)
        place = len(manifest.layers)
        if old is not None:
            if not overwrite:
                raise OptionError(
                    f"{self.folder} has a layer {self.name!r}",
                    option="name",
                    value=self.name,
                    remedy=f"Choose another name, or pass {option('overwrite', True)}.",
                )
            manifest, place = self._without(manifest), manifest.layers.index(old)
        self._check_name(manifest)
        dataset = open_packed(self.folder, earlier)  # what has no new value keeps that of `old`
        joined = join_table(dataset, values, progress)
        above = manifest.layers[place:]
        self._check_place(joined.features, above)
        gone = [] if old is None else sorted({*old.features} - {*joined.features})
        notices = [
            *joined.notices,
            *([f"the layer no longer has {join_names(gone)}"] if gone else []),
        ]
        job = fingerprint([_VERSION, base, self.name, joined.identity])
        step: dict[str, Any] = {
            "command": "layers add",
            "fingerprint": job,
            "base": base,
            "layer": self.name,
            "features": list(joined.features),
            "table": values.location.name,
            "on": values.on,
            "missing": joined.missing_count,
            "notices": notices,
        }
        with self._claimed(job, earlier, base) as claimed:
            layer, schemas = self._write(claimed, dataset, joined, job, manifest.schema)
            made = manifest.changed(
                step,
                layers=(*manifest.layers[:place], layer, *above),
                schema=manifest.schema.covered(Schema.merged(schemas.values())),
                schemas={
                    split: schema.covered(schemas[split])
                    for split, schema in manifest.schemas.items()
                },
                class_names=joined.class_names,
                arrow_schema=None,
            )
            self._publish(claimed, made, base)
        return LayerReport.from_manifest(self.folder, self.name, made)

    def remove(self) -> LayerReport:
        if (finished := self._finish_interrupted()) is not None:
            return LayerReport.from_manifest(self.folder, self.name, finished)
        manifest, base = _manifest_of(self.folder)
        layer = self._find(manifest)
        if layer is None:
            names = [layer.name for layer in manifest.layers]
            raise OptionError(
                f"{self.folder} has no layer {self.name!r}",
                option="name",
                value=self.name,
                expected=f"one of {', '.join(names)}" if names else "a dataset with layers",
            )
        made = self._without(manifest)
        step = {
            "command": "layers remove",
            "fingerprint": self._identity(base),
            "base": base,
            "layer": self.name,
            "features": list(layer.features),
            "notices": _removed_notices(layer, made),
        }
        made = made.changed(step)
        with self._claimed(made.last_fingerprint, manifest, base) as claimed:
            self._publish(claimed, made, base)
        return LayerReport.from_manifest(self.folder, self.name, made)

    def _identity(self, base: str) -> str:
        """Identify the command, so that it is known again if it was interrupted."""
        return fingerprint([_VERSION, base, self.name, self.command])

    def _claimed(self, job: str, earlier: Manifest, base: str) -> AbstractContextManager[Location]:
        command = self._identity(base)
        return publishing.claimed_folder(
            self.folder, job, [], earlier=earlier, base=base, command=command
        )

    def _finish_interrupted(self) -> Manifest | None:
        """Finish this command if it was killed while it published the manifest."""
        note = read_begun_note(self.folder)
        if note is None or not note.base or not publishing.is_publishing(self.folder, note):
            return None
        if note.command != self._identity(note.base):
            raise publishing.interrupted_error(self.folder)
        return publishing.finish_interrupted(self.folder, note)

    def _find(self, manifest: Manifest) -> Layer | None:
        return next((layer for layer in manifest.layers if layer.name == self.name), None)

    def _check_name(self, manifest: Manifest) -> None:
        """Check that another layer can have the name."""
        names = {layer.name.casefold(): layer.name for layer in manifest.layers}
        if (other := names.get(self.name.casefold())) is not None:
            raise OptionError(
                f"the layer {other!r} of {self.folder} has the same name on some file systems",
                option="name",
                value=self.name,
            )
        if len(names) >= Layer.most:
            raise OptionError(
                f"{self.folder} has {len(names):,} layers",
                option="name",
                value=self.name,
                expected=f"at most {Layer.most:,} layers",
                remedy="Make them part of the records with `recordsmith reshard`.",
            )

    def _check_place(self, features: Sequence[str], above: Sequence[Layer]) -> None:
        """Check that the layer has no feature of those that are read after it.

        Where these lack a value, one of an earlier layer would count for some readers only.
        """
        for layer in above:
            if shared := sorted({*layer.features} & {*features}):
                raise OptionError(
                    f"layer {layer.name!r}, which was added after {self.name!r}, has "
                    f"{join_names(shared)}, too, and is read last",
                    option="name",
                    value=self.name,
                    remedy=f"Choose another name, or {layer.name!r} to replace its values.",
                )

    def _without(self, manifest: Manifest) -> Manifest:
        """Return the manifest without the layer; reads the shards if it hid features of theirs."""
        gone = self._find(manifest)
        assert gone is not None
        left = dataclasses.replace(
            manifest, layers=tuple(layer for layer in manifest.layers if layer is not gone)
        )
        others = {key for layer in left.layers for key in layer.features}
        if gone.hidden or others.intersection(gone.features):
            dataset = open_packed(self.folder, left)
            surveyed = self.workers.each(survey_shard, dataset.shards)
            schemas = schemas_by_split(dataset.shards, surveyed, dataset.splits)
            return dataclasses.replace(
                left, schema=Schema.merged(schemas.values()), schemas=schemas
            )
        return dataclasses.replace(
            left,
            schema=left.schema.without(gone.features),
            schemas={
                split: schema.without(gone.features) for split, schema in left.schemas.items()
            },
        )

    def _write(
        self, folder: Location, dataset: Dataset, joined: JoinedRows, job: str, without: Schema
    ) -> tuple[Layer, dict[str, Schema]]:
        """Write the files of the layer; return it, and the schema of its records by split.

        `without`: of the records of the dataset without it.
        """
        layer = Layer(
            self.name,
            joined.features,
            tuple(key for key in joined.features if key in without.columns),
            {},
        )
        entries = [_entry(shard) for shard in dataset.shards]
        check_apart(self.folder, entries, {entry.key for entry in entries})
        files = [layer_file(entry, job) for entry in entries]
        results = write_layer(folder / layer.folder, files, dataset.shards, joined, self.workers)
        shards = {entry.key: own for entry, (own, _) in zip(entries, results, strict=True)}
        layer = Layer(layer.name, layer.features, layer.hidden, shards)
        schemas = (schema for _, schema in results)
        return layer, schemas_by_split(dataset.shards, schemas, dataset.splits)

    def _publish(self, folder: Location, manifest: Manifest, base: str) -> None:
        publishing.publish_dataset(
            folder,
            manifest,
            has_label_map=(folder / LABEL_MAP_NAME).exists(),
            base=base,
            command=self._identity(base),
        )


def _removed_notices(gone: Layer, left: Manifest) -> list[str]:
    """Return what of a removed layer may be left."""
    notices = [
        f"layer {layer.name!r} has {join_names(shared)}, too: where its table had no value, it "
        f"repeats those of {gone.name!r}"
        for layer in left.layers
        if (shared := sorted({*layer.features} & {*gone.features}))
    ]
    if left.class_names and any(map(is_class_key, gone.features)):
        notices.append("the class names stay as they are, with those that the layer had brought")
    return notices


def _entry(shard: Shard) -> ShardEntry:
    assert shard.entry is not None
    return shard.entry
