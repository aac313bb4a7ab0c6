"""Tables: CSV, TSV, JSON Lines, Parquet; each row is a sample, each column a feature.

A folder of images with a table next to them (`metadata.csv`, `metadata.jsonl` or
`metadata.parquet`, as in Hugging Face, also in folders `train/`, `test/`) is a table whose column
`file_name` names the images.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from recordsmith.dataset.labels import ClassNames
from recordsmith.errors import FileAccessError, OptionError, SourceError, option
from recordsmith.example import Kind, decode_example
from recordsmith.example.keys import (
    CLASS_LABEL,
    CLASS_TEXT,
    FILENAME,
    FORMAT,
    HEIGHT,
    IMAGE,
    WIDTH,
)
from recordsmith.files import PathLike, as_path, is_folder, list_folder, read_head
from recordsmith.sources.folders import check_folder, leads_to_folder
from recordsmith.sources.images import read_image
from recordsmith.sources.named_images import NamedImages, text_of
from recordsmith.sources.numbered import Coding, NumberedSamples, RowNames, sample_number
from recordsmith.sources.problems import join_names
from recordsmith.sources.row_columns import CategoryColumn, ColumnSink, as_labels, as_splits
from recordsmith.sources.source import Content, Listing, Note, Sample, ignore_note
from recordsmith.sources.splits import sort_splits
from recordsmith.sources.versions import files_version
from recordsmith.words import count

_METADATA_NAMES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
_IMAGE_KEYS = frozenset((IMAGE, FILENAME, FORMAT, HEIGHT, WIDTH, CLASS_LABEL, CLASS_TEXT))
_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")


class _Rows(Protocol):
    """The rows of the files of a table, in one of the formats."""

    kinds: dict[str, Kind]
    notices: list[str]

    @property
    def counts(self) -> list[int]: ...
    def sizes(self, number: int) -> npt.NDArray[np.int64]: ...
    def place(self, number: int, row: int) -> str: ...
    def read(self, number: int, row: int, note: Note) -> dict[str, Any] | bytes: ...


class Table:
    """The rows of a table.

    The features of a row are its columns, by name. A missing value (null, or an empty cell in a
    column of numbers) is left out of its row; an empty text stays an empty text.

    CSV and TSV: a column is int64 if all cells are integers, float if all are numbers, else text;
    codes with leading zeros and numbers beyond int64 are text. JSON Lines: lists of numbers or
    texts are features with several values, nested objects become JSON text. Parquet (extra
    `parquet`): timestamps become int64, microseconds since 1970 in UTC; dates become text;
    decimals become float; structs are refused.

    With `image_column`, each row also has its image: `image/encoded` (the unchanged file),
    `image/format`, `image/height`, `image/width`, and `image/filename` instead of the column. The
    label column then becomes `image/class/label` and `image/class/text`.

    Example:
        >>> rs.pack(rs.Table("rows.csv", split_column="part"), "packed")  # doctest: +SKIP
    """

    def __init__(
        self,
        path: PathLike,
        *,
        image_column: str | None = None,
        images: PathLike | None = None,
        split_column: str | None = None,
        group_column: str | None = None,
        label_column: str | None = None,
        kinds: Mapping[str, Kind] | None = None,
        delimiter: str | None = None,
        encoding: str = "utf-8",
    ) -> None:
        """
        Args:
            path: the table, which may be gzip-compressed if it is text; or a folder of images
                with `metadata.csv`, `.jsonl` or `.parquet` in it or in its folders, which are then
                the splits.
            image_column: the column with the paths of images, relative to the table's folder.
            images: another folder that these paths are relative to.
            split_column: the column with the split of each row. It stays a feature.
            group_column: the column with the group of each row: a patient, a video. It stays a
                feature.
            label_column: the column with the class of each row. Integers from 0 are labels; texts
                are sorted and numbered from 0. Without images it stays a feature.
            kinds: the kinds of some columns (bytes, float or int64), instead of inferring them.
            delimiter: between the cells of CSV; None to detect it from the first line.
            encoding: of text files.

        Raises:
            OptionError: an argument is invalid.
        """
        self.path = as_path(path)
        self._options = {
            "image_column": image_column,
            "split_column": split_column,
            "group_column": group_column,
            "label_column": label_column,
            "delimiter": delimiter,
            "encoding": None if encoding == "utf-8" else encoding,
        }
        self._image_folder = None if images is None else as_path(images)
        if images is not None and image_column is None:
            raise OptionError(
                f"{option('images')} needs {option('image_column')} as well",
                option="image_column",
                remedy=f"Pass the column of image files, such as "
                f"{option('image_column', 'file_name')}.",
            )
        self._kinds = dict(kinds or {})
        for name, kind in self._kinds.items():
            if kind not in ("bytes", "float", "int64"):
                raise OptionError(
                    f"the kind of column {name!r} is {kind!r}",
                    option="kinds",
                    value=kind,
                    expected="bytes, float or int64",
                )
        if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
            raise OptionError(
                option="delimiter", value=delimiter, expected="one character, such as ';'"
            )
        self._delimiter = delimiter
        self._encoding = encoding
        self._image_column, self._split = image_column, split_column
        self._group, self._label = group_column, label_column
        self._paths: list[Path] = []
        self._rows: _Rows | None = None
        self._image_names = NamedImages("", self.path, [])
        self._names: RowNames | None = None
        self._class_names: ClassNames | None = None

    def __repr__(self) -> str:
        return f"Table({str(self.path)!r})"

    @property
    def root(self) -> Path | None:
        """The folder that is read; None for a single file, as a dataset may lie next to it."""
        return self.path if self.path.is_dir() else None

    def list_samples(self) -> Listing:
        """Find all rows and the kind of each column.

        Raises:
            SourceError: the file is not a table, or a column cannot be stored.
            OptionError: a column from the arguments does not exist.
            MissingExtraError: the table is Parquet and pyarrow is not installed.
            FileAccessError: a file cannot be read.
        """
        splits_by_folder = self._find_tables()
        split, group, label, images = (
            CategoryColumn(),
            CategoryColumn(),
            CategoryColumn(),
            self._named_images(),
        )
        named = (
            (self._split, split),
            (self._group, group),
            (self._label, label),
            (self._image_column, images),
        )
        marks: list[tuple[str, ColumnSink]] = [
            (name, mark) for name, mark in named if name is not None
        ]
        rows = self._open_rows(marks)
        self._check_columns(rows)
        notices = list(rows.notices)
        labels: npt.NDArray[np.int32] | None = None
        self._class_names = None
        if self._label is not None:
            labels, self._class_names = self._labels(rows.kinds.get(self._label), label, notices)
        splits: Coding | None = None
        if self._split is not None:
            if not split.values:
                raise SourceError(f"split column {self._split!r} is empty", path=self._paths[0])
            splits = as_splits(split)
        elif splits_by_folder:
            tables = np.arange(len(rows.counts), dtype=np.int32)
            splits = splits_by_folder, np.repeat(tables, rows.counts)
        sizes = np.concatenate([rows.sizes(number) for number in range(len(self._paths))])
        version: int | npt.NDArray[np.int64]
        version = of_tables = files_version(self._paths)
        if self._image_column is not None:
            sizes += images.sizes()
            version = images.versions(of_tables)
        self._rows, self._image_names = rows, images
        tables_by_name = map(self._name_of, self._paths)
        self._names = RowNames(dict(zip(tables_by_name, rows.counts, strict=True)))
        samples = NumberedSamples(
            self._names,
            sizes,
            labels=labels,
            splits=splits,
            groups=None if self._group is None else group.coding(),
            version=version,
        )
        return Listing(
            samples, self._class_names, tuple(notices), () if splits is None else tuple(splits[0])
        )

    def read_sample(self, sample: Sample, note: Note = ignore_note) -> Content:
        """Read one row, and its image if the table has an image column.

        Raises:
            SourceError: the row is invalid, or its image is missing.
            CorruptDataError: unreadable-image.
            FileAccessError: the table cannot be read.
        """
        number, row = self._locate(sample_number(sample))
        assert self._rows is not None
        content = self._rows.read(number, row, note)
        if self._image_column is None and self._split is None:
            return content
        features: dict[str, Any] = {}
        features |= decode_example(content) if isinstance(content, bytes) else content
        place = self._rows.place(number, row)
        if self._split is not None and not text_of(features.get(self._split)):
            raise SourceError(f"split column {self._split!r} is empty", sample=place)
        if self._image_column is None:
            return content
        name = self._image_names.path(features.pop(self._image_column, None), number, place, note)
        if self._label is not None:
            features.pop(self._label, None)
            if sample.label is not None and self._class_names is not None:
                features[CLASS_LABEL] = sample.label
                features[CLASS_TEXT] = os.fsencode(self._class_names[sample.label] or "")
        try:
            return features | read_image(self._image_names.folder / name, name)
        except FileAccessError as error:
            raise SourceError(str(error), sample=place) from None

    def describe(self) -> Mapping[str, Any]:
        is_folder = self.path.is_dir()
        options = {name: value for name, value in self._options.items() if value is not None}
        if self._kinds:
            options["kinds"] = self._kinds  # type: ignore[assignment]
        if self._image_folder is not None:
            options["images"] = self._image_folder.name
        if self._delimiter is not None:
            options["delimiter"] = self._delimiter
        if self._encoding != "utf-8":
            options["encoding"] = self._encoding
        return {
            "kind": "Table",
            "folder" if is_folder else "file": self.path.resolve().name,
            **options,
        }

    def kinds(self) -> Mapping[str, Kind]:
        if self._rows is None:
            return self._kinds
        hidden = (self._image_column, self._label if self._image_column is not None else None)
        return {name: kind for name, kind in self._rows.kinds.items() if name not in hidden}

    # -- which files -----------------------------------------------------------------------------

    def _find_tables(self) -> list[str]:
        """Find the files of the table; returns the splits if its folders are splits."""
        if not is_folder(self.path):
            self._paths = [self.path]
            return []
        if self._options["image_column"] is None:
            self._image_column = "file_name"
        own = _find_metadata(self.path)
        if own is not None:
            self._paths = [own]
            return []
        folders = {
            entry.name: found
            for entry in list_folder(self.path)
            if leads_to_folder(entry)
            and not entry.name.startswith(".")
            and (found := _find_metadata(Path(entry.path))) is not None
        }
        if not folders:
            raise SourceError(
                f"the folder contains no {join_names(_METADATA_NAMES, 'or')}",
                path=self.path,
                remedy=_other_tables(self.path),
            )
        if self._split is not None:
            raise OptionError(
                f"{option('split_column')} conflicts with the splits of the folders "
                f"{join_names(folders)}, which have a table each",
                option="split_column",
                value=self._split,
            )
        splits = list(sort_splits(folders))
        self._paths = [folders[name] for name in splits]
        if len({path.suffix for path in self._paths}) > 1:
            raise SourceError(
                f"tables in different formats: {join_names(map(self._name_of, self._paths))}; "
                "expected one format",
                path=self.path,
            )
        return splits

    def _open_rows(self, marks: list[tuple[str, ColumnSink]]) -> _Rows:
        """Scan the files with the reader for their format."""
        first = self._paths[0]
        head = read_head(first, 64)
        name = first.name.lower().removesuffix(".gz")
        if head.startswith(b"PAR1") or name.endswith((".parquet", ".pq")):
            from recordsmith.sources.parquet import ParquetRows

            return ParquetRows(self._paths, marks, self._kinds)
        looks_like_json = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
        is_text_table = name.endswith((".csv", ".tsv", ".tab")) or self._delimiter is not None
        if name.endswith(_JSON_SUFFIXES) or (looks_like_json and not is_text_table):
            from recordsmith.sources.json_lines import JsonRows

            return JsonRows(self._paths, marks, self._kinds, encoding=self._encoding)
        from recordsmith.sources.delimited import DelimitedRows

        return DelimitedRows(
            self._paths, marks, self._kinds, delimiter=self._delimiter, encoding=self._encoding
        )

    def _check_columns(self, rows: _Rows) -> None:
        if unknown := sorted(self._kinds.keys() - rows.kinds.keys()):
            raise OptionError(
                f"{option('kinds')} has unknown columns: {join_names(unknown)}",
                option="kinds",
                value=unknown[0],
                expected=f"columns of the table: {join_names(rows.kinds)}",
            )
        if self._image_column is None:
            return
        if clashing := sorted(_IMAGE_KEYS & rows.kinds.keys()):
            raise SourceError(
                f"column {clashing[0]!r} has the name of an image feature",
                path=self._paths[0],
                remedy="Rename the column.",
            )
        kind = rows.kinds.get(self._image_column)
        if kind != "bytes":
            raise SourceError(
                f"image column {self._image_column!r} is {kind or 'empty'}; expected paths",
                path=self._paths[0],
            )

    # -- labels and images -----------------------------------------------------------------------

    def _labels(
        self, kind: Kind | None, values: CategoryColumn, notices: list[str]
    ) -> tuple[npt.NDArray[np.int32], ClassNames]:
        if kind == "float":
            raise SourceError(
                f"label column {self._label!r} has floats; expected class names or integers",
                path=self._paths[0],
                remedy="A regression target needs no label column: it is a feature.",
            )
        if not values.values:
            raise SourceError(f"label column {self._label!r} is empty", path=self._paths[0])
        if values.missing_count:
            rows = count(values.missing_count, "row")
            notices.append(f"{rows} without a class in {self._label!r}")
        return as_labels(values, are_integers=kind == "int64")

    def _named_images(self) -> NamedImages:
        if self._image_folder is not None:
            check_folder(self._image_folder, "the folder of the images")
            table_folders = [""] * len(self._paths)
            return NamedImages(self._image_column or "", self._image_folder, table_folders)
        if is_folder(self.path):
            table_folders = [posixpath.dirname(self._name_of(path)) for path in self._paths]
            return NamedImages(self._image_column or "", self.path, table_folders)
        return NamedImages(self._image_column or "", self.path.parent, [""])

    def _name_of(self, path: Path) -> str:
        """A table's name, relative to the folder that is read."""
        return path.relative_to(self.path).as_posix() if path != self.path else path.name

    def _locate(self, number: int) -> tuple[int, int]:
        if self._names is None:
            self.list_samples()
        assert self._names is not None
        return self._names.locate(number)


def _other_tables(folder: Path) -> str:
    """A sentence that suggests other tables in a folder; empty without tables."""
    endings = (*(name.removeprefix("metadata") for name in _METADATA_NAMES), ".tsv", ".ndjson")
    tables = [entry.path for entry in list_folder(folder) if entry.name.lower().endswith(endings)]
    return f"Pack one of its tables: {join_names(tables, 'or')}." if tables else ""


def _find_metadata(folder: Path) -> Path | None:
    """The metadata table in a folder, if any.

    Raises:
        SourceError: there are several.
    """
    found = [folder / name for name in _METADATA_NAMES if (folder / name).is_file()]
    if len(found) > 1:
        raise SourceError(
            f"several tables: {join_names(path.name for path in found)}; expected one", path=folder
        )
    return found[0] if found else None
