"""Reads rows of tables, and the images that they name or contain."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from recordsmith.dataset import ArrowStream
from recordsmith.format.example import Kind, decode_example
from recordsmith.format.example.keys import CAPTION, FILENAME, IMAGE
from recordsmith.sources.files.files_reader import FilesReader
from recordsmith.sources.files.images import LIST_KINDS, class_features, image_features, read_image
from recordsmith.sources.files.paths import last_part
from recordsmith.sources.samples import Content, Note, Sample, ignore_note, unlisted_error
from recordsmith.sources.tables.arrow_rows import ArrowRows, is_arrow_file
from recordsmith.sources.tables.categories import CategoryColumn
from recordsmith.sources.tables.csv_rows import CsvRows
from recordsmith.sources.tables.encoded_rows import EncodedRows, referenced_row
from recordsmith.sources.tables.json_rows import JsonRows
from recordsmith.sources.tables.table_rows import EncodedTable, TableRows, encode_table
from recordsmith.stores import Location
from recordsmith.support.errors import FileAccessError, OptionError, SourceError, located

_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")


def open_rows(
    paths: Sequence[Location],
    required: Mapping[str, str],
    *,
    kinds: Mapping[str, Kind] | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    image_column: str | None = None,
    stream: ArrowStream | None = None,
) -> TableRows:
    """Open the files of a table, or a stream, with the reader for their format.

    `required` has the columns that must exist, with the option that each is from; `kinds` those
    that are not inferred; `image_column` is one of images in Arrow files.
    """
    first, kinds = paths[0], kinds or {}
    if stream is not None or is_arrow_file(first):
        return ArrowRows(paths, stream, kinds, required=required, image_column=image_column)
    head = first.read(0, 64)
    name = first.name.lower().removesuffix(".gz")
    looks_like_json = head.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"[")
    is_text_table = name.endswith((".csv", ".tsv", ".tab")) or delimiter is not None
    if name.endswith(_JSON_SUFFIXES) or (looks_like_json and not is_text_table):
        return JsonRows(paths, kinds, required=required, encoding=encoding)
    return CsvRows(paths, kinds, required=required, delimiter=delimiter, encoding=encoding)


class TableFile(NamedTuple):
    """The rows of one file.

    rows: those from `first` on of the whole table, whose lines are known if it has images.
    """

    location: Location
    table: EncodedTable
    first: int
    row_count: int


def table_files(
    names: Sequence[str], paths: Sequence[Location], table: EncodedTable
) -> dict[str, TableFile]:
    files, first = {}, 0
    for name, path, row_count in zip(names, paths, table.counts, strict=True):
        files[name] = TableFile(path, table, first, row_count)
        first += row_count
    return files


@dataclass(frozen=True)
class TableReader(FilesReader[TableFile]):
    """Reads rows by file and number, from the encoded rows of all files.

    Elsewhere, the files are encoded once, at first use. An engine that knows their format can
    read the rows without that.

    delimiter, encoding, given_kinds, image_column: as in `open_rows`.
    unit: what numbers rows in messages.
    columns: the kinds of the columns that are features.
    embedded: the column with encoded images, if there is one.
    images: the folder of the images, if it is not that of the table.
    label_columns: those with the classes of images.
    class_names: of the label columns, where rows have images.
    list_keys: the features with the classes of images that may have several.
    caption_column: the column of captions, where rows have images.
    """

    given_kinds: tuple[tuple[str, Kind], ...] = ()
    delimiter: str | None = None
    encoding: str = "utf-8"
    unit: str = "line"
    columns: tuple[tuple[str, Kind], ...] = ()
    split_column: str | None = None
    label_columns: tuple[str, ...] = ()
    image_column: str | None = None
    embedded: str | None = None
    images: Location | None = None
    class_names: tuple[str | None, ...] | None = None
    list_keys: tuple[str, ...] = ()
    caption_column: str | None = None

    def read(self, sample: Sample, note: Note = ignore_note) -> Content:
        """Read one row, and its image if the table has an image column."""
        file, reference = self.opened(sample)
        row = referenced_row(sample)
        if row >= file.row_count:
            raise unlisted_error(sample)
        payload = file.table.rows.read(file.first + row)
        if not self._has_images:
            return payload
        place = f"{file.location}, {self._line(file, row)}"
        features: dict[str, Any] = dict(decode_example(payload))
        for name in self.label_columns:
            features.pop(name, None)
        features |= class_features(sample.label, self.class_names, reference)
        if self.caption_column is not None:
            texts = features.pop(self.caption_column, ())
            features[CAPTION] = [text for text in texts if text.strip()]
        if self.embedded is not None:
            return features | _embedded_image(features, self.embedded, place)
        if "image" not in reference:
            raise SourceError(reference.get("problem", "the row has no image"), sample=place)
        features.pop(self.image_column or "", None)
        try:
            image = reference["image"]
            folder = self.root if self.images is None else self.images
            return features | read_image(folder / image, image)
        except FileAccessError as error:
            raise SourceError(str(error), sample=place) from None

    def place_of(self, sample: Sample) -> str:
        """Where a row is, relative to the source: `labels.csv, line 4`."""
        file, reference = self.opened(sample)
        return f"{reference['file']}, {self._line(file, referenced_row(sample))}"

    def _line(self, file: TableFile, row: int) -> str:
        if not self._has_images:
            return f"row {row}"
        return f"{self.unit} {file.table.lines[file.first + row]}"

    def frames(self) -> EncodedRows | None:
        """The rows as records, which `pack` copies; None if each has an image to read."""
        if self._has_images:
            return None
        known = self._opened or self._open("")
        return next(iter(known.values())).table.rows

    def kinds(self) -> Mapping[str, Kind]:
        captions: dict[str, Kind] = {} if self.caption_column is None else {CAPTION: "bytes"}
        lists = {key: LIST_KINDS[key] for key in self.list_keys}
        return {**dict(self.columns), **captions, **lists}

    def to_json(self) -> dict[str, Any]:
        if not self.files:
            raise OptionError(
                "these rows exist only in this process",
                remedy="Write them to a file first, such as Parquet or JSON Lines, and read that.",
            )
        return super().to_json()

    @property
    def _has_images(self) -> bool:
        return self.image_column is not None or self.embedded is not None

    def _open(self, name: str) -> Mapping[str, TableFile]:
        names = [name for name, _ in self.files]
        paths = list(map(self.checked, names))
        table = encode_table(
            open_rows(
                paths,
                {},
                kinds=dict(self.given_kinds),
                delimiter=self.delimiter,
                encoding=self.encoding,
                image_column=self.image_column,
            ),
            [(self.split_column, CategoryColumn())],
            required=self.split_column,
            with_lines=self._has_images,
        )
        return table_files(names, paths, table)


def _embedded_image(features: dict[str, Any], column: str, place: str) -> dict[str, Any]:
    data = features.get(IMAGE)
    if not data:
        raise SourceError(
            f"image column {column!r} has no bytes",
            sample=place,
            remedy="If it has paths, choose the column and the folder of the files.",
        )
    path = features.get(FILENAME) or [b""]
    name = last_part(path[0].decode("utf-8", "surrogateescape"))
    with located(place):
        image = image_features(data[0], name)
    if not name:
        del image[FILENAME]
        features.pop(FILENAME, None)
    return image
