"""Tables: CSV, TSV, JSON Lines, Parquet; one row a sample, columns become features.

A folder of pictures with a table beside them (`metadata.csv`, `metadata.jsonl` or
`metadata.parquet`, as Hugging Face has it, also in folders `train/`, `test/`) is a table whose
column `file_name` names the pictures. Rows are read when they are asked for: text from the file
itself, where it lies; what can only be read in order through a temporary file.
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
from recordsmith.errors import FileAccessError, OptionError, SourceError
from recordsmith.example import Kind, decode_example
from recordsmith.example.keys import (
    CLASS_LABEL,
    CLASS_TEXT,
    FILENAME,
    FORMAT,
    HEIGHT,
    PICTURE,
    WIDTH,
)
from recordsmith.files import PathLike, as_path, is_folder, list_folder, read_head
from recordsmith.sources.contract import Content, Listing, Note, Sample, unheard
from recordsmith.sources.folders import check_folder, leads_to_folder
from recordsmith.sources.marks import Coded, Mark, as_labels, as_splits
from recordsmith.sources.named_pictures import NamedPictures, text_of
from recordsmith.sources.numbered import Coding, NumberedSamples, RowNames, number_of
from recordsmith.sources.pictures import read_picture
from recordsmith.sources.splits import in_split_order
from recordsmith.sources.versions import version_of_files
from recordsmith.sources.wording import some

_METADATA_NAMES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
_PICTURE_KEYS = frozenset((PICTURE, FILENAME, FORMAT, HEIGHT, WIDTH, CLASS_LABEL, CLASS_TEXT))
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

    The features of a row are its columns, by their names. A cell that is empty (null) is left out
    of its row, but an empty text in CSV is an empty text.

    CSV and TSV: a column is int64 if all cells are whole numbers, float if all are numbers, else
    text; codes with leading zeros and numbers beyond int64 are text. JSON Lines: null is left out,
    lists of numbers or texts are features with several values, nested objects become JSON text.
    Parquet (extra `parquet`): timestamps become int64, microseconds since 1970 in UTC; dates text;
    decimals float; structs are refused.

    With `pictures`, each row also has its picture: `image/encoded` (the file's bytes, untouched),
    `image/format`, `image/height`, `image/width`, and `image/filename` instead of the column. The
    column of the label then becomes `image/class/label` and `image/class/text`.
    """

    def __init__(
        self,
        path: PathLike,
        *,
        pictures: str | None = None,
        picture_folder: PathLike | None = None,
        split: str | None = None,
        group: str | None = None,
        label: str | None = None,
        kinds: Mapping[str, Kind] | None = None,
        delimiter: str | None = None,
        encoding: str = "utf-8",
    ) -> None:
        """
        Args:
            path: the table, which may be compressed with gzip if it is text; or a folder of
                pictures with `metadata.csv`, `.jsonl` or `.parquet` in it, or in its folders,
                which then are the splits.
            pictures: the column that names picture files, relative to the table's folder.
            picture_folder: what they are relative to instead.
            split: the column that names the split of each row. It stays a feature.
            group: the column that names its group: a patient, a video. It stays a feature.
            label: the column that names its class. Whole numbers from 0 on are labels as they
                are; texts are sorted and counted from 0. Without pictures it stays a feature.
            kinds: the kinds of some columns, instead of inferring them: bytes, float or int64.
            delimiter: what stands between the cells of CSV; None: told by the first line.
            encoding: of text.
        """
        self.path = as_path(path)
        self._options = {
            "pictures": pictures,
            "split": split,
            "group": group,
            "label": label,
            "delimiter": delimiter,
            "encoding": None if encoding == "utf-8" else encoding,
        }
        self._picture_folder = None if picture_folder is None else as_path(picture_folder)
        if picture_folder is not None and pictures is None:
            raise OptionError(
                "picture_folder says where pictures are; say also which column names them: "
                "pictures='file_name'"
            )
        self._kinds = dict(kinds or {})
        for name, kind in self._kinds.items():
            if kind not in ("bytes", "float", "int64"):
                raise OptionError(f"kinds: {name!r} is {kind!r}; expected bytes, float or int64")
        if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
            raise OptionError(f"delimiter is {delimiter!r}; expected one character, such as ';'")
        self._delimiter = delimiter
        self._encoding = encoding
        self._pictures, self._split, self._group, self._label = pictures, split, group, label
        self._paths: list[Path] = []
        self._rows: _Rows | None = None
        self._picture_names = NamedPictures("", self.path, [])
        self._names: RowNames | None = None
        self._class_names: ClassNames | None = None

    def __repr__(self) -> str:
        return f"Table({str(self.path)!r})"

    @property
    def root(self) -> Path | None:
        """The folder that is read; None for a table in a file, beside which one may pack."""
        return self.path if self.path.is_dir() else None

    def list_samples(self) -> Listing:
        """Find all rows, and which kind each column has.

        Raises:
            SourceError: it is no table, or its columns cannot be stored.
            OptionError: there is no column of a name that was given.
            MissingExtraError: it is Parquet and pyarrow is not installed.
            FileAccessError: a file cannot be read.
        """
        splits_by_folder = self._find_tables()
        split, group, label, pictures = Coded(), Coded(), Coded(), self._named_pictures()
        named = (
            (self._split, split),
            (self._group, group),
            (self._label, label),
            (self._pictures, pictures),
        )
        marks: list[tuple[str, Mark]] = [(name, mark) for name, mark in named if name is not None]
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
                raise SourceError(f"{self._paths[0]}: no row names a split in {self._split!r}")
            splits = as_splits(split)
        elif splits_by_folder:
            tables = np.arange(len(rows.counts), dtype=np.int32)
            splits = splits_by_folder, np.repeat(tables, rows.counts)
        sizes = np.concatenate([rows.sizes(number) for number in range(len(self._paths))])
        version: int | npt.NDArray[np.int64]
        version = of_tables = version_of_files(self._paths)
        if self._pictures is not None:
            sizes += pictures.sizes()
            version = pictures.versions(of_tables)
        self._rows, self._picture_names = rows, pictures
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

    def read_sample(self, sample: Sample, note: Note = unheard) -> Content:
        """Read one row, and its picture if it names one.

        Raises:
            SourceError: the row cannot be understood, or names a picture that is not there.
            CorruptDataError: its picture cannot be read.
        """
        number, row = self._locate(number_of(sample))
        assert self._rows is not None
        content = self._rows.read(number, row, note)
        if self._pictures is None and self._split is None:
            return content
        features: dict[str, Any] = {}
        features |= decode_example(content) if isinstance(content, bytes) else content
        place = self._rows.place(number, row)
        if self._split is not None and not text_of(features.get(self._split)):
            raise SourceError(f"{place}: column {self._split!r} names no split")
        if self._pictures is None:
            return content
        name = self._picture_names.path(features.pop(self._pictures, None), number, place, note)
        if self._label is not None:
            features.pop(self._label, None)
            if sample.label is not None and self._class_names is not None:
                features[CLASS_LABEL] = sample.label
                features[CLASS_TEXT] = os.fsencode(self._class_names[sample.label] or "")
        try:
            return features | read_picture(self._picture_names.folder / name, name)
        except FileAccessError as error:
            raise SourceError(f"{place}: {error}") from None

    def describe(self) -> Mapping[str, Any]:
        is_folder = self.path.is_dir()
        options = {name: value for name, value in self._options.items() if value is not None}
        if self._kinds:
            options["kinds"] = self._kinds  # type: ignore[assignment]
        if self._picture_folder is not None:
            options["picture_folder"] = self._picture_folder.name
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
        hidden = (self._pictures, self._label if self._pictures is not None else None)
        return {name: kind for name, kind in self._rows.kinds.items() if name not in hidden}

    # -- which files -----------------------------------------------------------------------------

    def _find_tables(self) -> list[str]:
        """Find the files of the table; answers the splits, if its folders are some."""
        if not is_folder(self.path):
            self._paths = [self.path]
            return []
        if self._options["pictures"] is None:
            self._pictures = "file_name"
        own = _metadata_in(self.path)
        if own is not None:
            self._paths = [own]
            return []
        folders = {
            entry.name: found
            for entry in list_folder(self.path)
            if leads_to_folder(entry)
            and not entry.name.startswith(".")
            and (found := _metadata_in(Path(entry.path))) is not None
        }
        if not folders:
            raise SourceError(
                f"{self.path} is a folder; expected a table, or a folder of pictures with "
                f"{some(_METADATA_NAMES, 'or')} in it or in its folders{_tables_in(self.path)}"
            )
        if self._split is not None:
            raise OptionError(
                f"{self.path} has a table in each of {some(folders)}, which are its splits; a "
                "column cannot name them as well"
            )
        splits = list(in_split_order(folders))
        self._paths = [folders[name] for name in splits]
        if len({path.suffix for path in self._paths}) > 1:
            raise SourceError(
                f"{self.path}: the tables are of several kinds "
                f"({some(map(self._name_of, self._paths))}); expected one kind in all folders"
            )
        return splits

    def _open_rows(self, marks: list[tuple[str, Mark]]) -> _Rows:
        """Look through the files with the module for their format."""
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
                f"kinds names {some(unknown)}, which the table has not; it has {some(rows.kinds)}"
            )
        if self._pictures is None:
            return
        if clashing := sorted(_PICTURE_KEYS & rows.kinds.keys()):
            raise SourceError(
                f"{self._paths[0]}: the column {clashing[0]!r} has the name of a feature of the "
                "picture; rename it"
            )
        kind = rows.kinds.get(self._pictures)
        if kind != "bytes":
            raise SourceError(
                f"{self._paths[0]}: column {self._pictures!r} should name picture files, but its "
                f"cells are {kind or 'empty'}"
            )

    # -- labels and pictures -----------------------------------------------------------------------

    def _labels(
        self, kind: Kind | None, values: Coded, notices: list[str]
    ) -> tuple[npt.NDArray[np.int32], ClassNames]:
        if kind == "float":
            raise SourceError(
                f"{self._paths[0]}: column {self._label!r} should name classes, but holds "
                "fractions; a number to be learnt is a feature like any other"
            )
        if not values.values:
            raise SourceError(f"{self._paths[0]}: no row has a class in {self._label!r}")
        if values.missing_count:
            notices.append(f"rows without a class in {self._label!r}: {values.missing_count:,}")
        return as_labels(values, are_integers=kind == "int64")

    def _named_pictures(self) -> NamedPictures:
        if self._picture_folder is not None:
            check_folder(self._picture_folder, "the folder of the pictures")
            beside = [""] * len(self._paths)
            return NamedPictures(self._pictures or "", self._picture_folder, beside)
        if is_folder(self.path):
            beside = [posixpath.dirname(self._name_of(path)) for path in self._paths]
            return NamedPictures(self._pictures or "", self.path, beside)
        return NamedPictures(self._pictures or "", self.path.parent, [""])

    def _name_of(self, path: Path) -> str:
        """A table's name: relative to the folder that is read."""
        return path.relative_to(self.path).as_posix() if path != self.path else path.name

    def _locate(self, number: int) -> tuple[int, int]:
        if self._names is None:
            self.list_samples()
        assert self._names is not None
        return self._names.locate(number)


def _tables_in(folder: Path) -> str:
    """Tables that may have been meant, in words."""
    endings = (*(name.removeprefix("metadata") for name in _METADATA_NAMES), ".tsv", ".ndjson")
    tables = [entry.path for entry in list_folder(folder) if entry.name.lower().endswith(endings)]
    return f"; pack one of its tables: {some(tables, 'or')}" if tables else ""


def _metadata_in(folder: Path) -> Path | None:
    """The table of the pictures in a folder.

    Raises:
        SourceError: there are several.
    """
    found = [folder / name for name in _METADATA_NAMES if (folder / name).is_file()]
    if len(found) > 1:
        raise SourceError(f"{folder} has {some(path.name for path in found)}; expected one of them")
    return found[0] if found else None
