"""Tables: CSV, TSV, JSON Lines, Parquet, Feather, Arrow; each row is a sample.

A folder of images with a table next to them (`metadata.csv`, `metadata.jsonl` or
`metadata.parquet`, as in Hugging Face, also in folders `train/`, `test/`) is a table whose column
`file_name` names the images; so is `_classes.csv` of Roboflow with the column `filename`, whose
other columns are classes of 0 and 1.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recordsmith.dataset import ArrowStream, has_split_word, split_of, split_word
from recordsmith.format.example import Kind
from recordsmith.format.example.keys import (
    CAPTION,
    CLASS_LABEL,
    CLASS_TEXT,
    FILENAME,
    FORMAT,
    HEIGHT,
    IMAGE,
    WIDTH,
)
from recordsmith.sources.files.account import Account, Role
from recordsmith.sources.files.file_tree import FileTree, TreeSource
from recordsmith.sources.files.files_reader import versions_of
from recordsmith.sources.files.known_names import TABLE_SUFFIXES
from recordsmith.sources.files.paths import (
    check_folder,
    common_version,
    is_file,
    is_folder,
    join_path,
    last_name,
    relative_place,
)
from recordsmith.sources.numbered import Coding, RowNames
from recordsmith.sources.problems import count_notice, join_names
from recordsmith.sources.source import Listing
from recordsmith.sources.splits import only_split, sort_splits
from recordsmith.sources.tables.categories import LabelColumn, RowMarks
from recordsmith.sources.tables.named_images import NamedImages
from recordsmith.sources.tables.table_reader import TableReader, open_rows, table_files
from recordsmith.sources.tables.table_rows import TableRows, encode_table
from recordsmith.stores import Location, PlaceLike, as_folder, as_location, as_place
from recordsmith.support.errors import OptionError, SourceError, option

_ROBOFLOW = "_classes.csv"
METADATA_COLUMNS = {
    **dict.fromkeys(("metadata.csv", "metadata.jsonl", "metadata.parquet"), "file_name"),
    _ROBOFLOW: "filename",
}
"""Tables next to images, of Hugging Face and Roboflow, and the column of the images."""

_LABEL_NAME = "label"
_CAPTION_NAMES = ("caption", "captions")
_METADATA_CAPTION = "text"
_IMAGE_KEYS = frozenset((IMAGE, FILENAME, FORMAT, HEIGHT, WIDTH, CLASS_LABEL, CLASS_TEXT, CAPTION))


class Table(TreeSource):
    """The rows of a table.

    The features of a row are its columns, by name. A missing value (null, or an empty cell in a
    column of numbers) is left out of its row; an empty text stays an empty text. The rows are
    encoded once into a temporary file, in the folder TMPDIR, which takes about as much space as the
    shards.

    CSV and TSV: a column is int64 if all cells are integers, float if all are numbers, else text;
    codes with leading zeros and numbers beyond int64 are text. JSON Lines: lists of numbers or
    texts are features with several values, nested objects become JSON text. Arrow, Parquet and
    Feather: types as in `ShardWriter.write_columns`. All but JSON Lines need the extra `arrow`.

    With `image_column`, each row also has its image: `image/encoded` (the unchanged file),
    `image/format`, `image/height`, `image/width`, and `image/filename` instead of the column. The
    label column then becomes `image/class/label` and `image/class/text`, and the column of captions
    `image/caption`, a list. A column of images as in Hugging Face datasets needs no option, nor
    does its column of class labels.

    Example:
        rs.pack(rs.Table("rows.csv", split_column="part"), "packed")
    """

    def __init__(
        self,
        path: PlaceLike | ArrowStream,
        *,
        table: str | None = None,
        image_column: str | None = None,
        images: PlaceLike | None = None,
        split_column: str | None = None,
        group_column: str | None = None,
        label_column: str | None = None,
        caption_column: str | None = None,
        label_columns: str | Sequence[str] | None = None,
        label_separator: str | None = None,
        kinds: Mapping[str, Kind] | None = None,
        delimiter: str | None = None,
        encoding: str = "utf-8",
    ) -> None:
        """
        Args:
            path: a file, which may be gzip-compressed if it is text; a folder of such files in one
                format; a folder of images with `metadata.csv`, `.jsonl` or `.parquet` in it or in
                its folders, which are then the splits; or any object with `__arrow_c_stream__`,
                such as a table of pyarrow, Polars, pandas or DuckDB, which is read once.
            table: the file to read of a folder with several tables; or several, with commas
                between them.
            image_column: the column with the paths of images, relative to the table's folder, or
                with encoded images. Paths may lack their suffix.
            images: another folder that these paths are relative to; itself relative to the folder
                that is read. Names without a folder are also found in the folders in it.
            split_column: the column with the split of each row. It stays a feature.
            group_column: the column with the group of each row: a patient, a video. It stays a
                feature.
            label_column: the column with the class of each row. Integers from 0 are labels; texts
                are sorted and numbered from 0. Without images it stays a feature. Empty for none.
                A cell may have a list of classes, also as text: ['a', 'b'].
            label_columns: columns of 0 and 1 (or -1 and 1), one for each class of an image: a list,
                or names with commas between them. Where some cells are empty, zeros are stored with
                the confidence 0: these classes are known to be absent.
            label_separator: between the classes in a cell of the label column, such as |.
            caption_column: the column with the captions of each image: a text, or a list of texts.
                None for `caption` or `captions`, or `text` in a file `metadata`; empty for none.
            kinds: the kinds of some columns (bytes, float or int64), instead of inferring them.
            delimiter: between the cells of CSV; None to detect it from the first line.
            encoding: of text files.

        Raises:
            OptionError: an argument is invalid.
        """
        self._stream = path if isinstance(path, ArrowStream) else None
        is_stream = isinstance(path, ArrowStream)
        self.path = as_location(type(path).__name__) if is_stream else as_place(path)
        self._table = table
        if table is not None and self.root is None:
            raise OptionError(
                f"{option('table')} chooses a file in a folder",
                option="table",
                value=table,
                remedy=f"Leave it out: {self.path} is a file.",
            )
        self._image_folder: Location | None = None
        if images is not None:
            is_root = images == "." and self.root is not None
            self._image_folder = (
                self.path if is_root else relative_place(self.root, images, as_folder)
            )
        self._kinds = dict(kinds or {})
        listed = label_columns.split(",") if isinstance(label_columns, str) else label_columns
        names = None if listed is None else tuple(map(str.strip, listed))
        self._options: dict[str, Any] = {
            "table": table,
            "image_column": image_column,
            "split_column": split_column,
            "group_column": group_column,
            "label_column": label_column or None,
            "caption_column": caption_column,
            "label_columns": names,
            "label_separator": label_separator,
            "delimiter": delimiter,
            "encoding": None if encoding == "utf-8" else encoding,
            "kinds": self._kinds or None,
            "images": _describe_images(images, self._image_folder, self.path),
        }
        _check_options(self._options)
        self._delimiter = delimiter
        self._encoding = encoding
        self._image_column, self._split = image_column, split_column
        self._group, self._label = group_column, label_column or None
        self._caption = caption_column
        self._paths: list[Location] = []
        self._files: tuple[tuple[str, int], ...] = ()
        self._listing: Listing | None = None

    def __repr__(self) -> str:
        return f"Table({str(self.path)!r})"

    @property
    def root(self) -> Location | None:
        """The folder that is read; None for a single file, as a dataset may lie next to it."""
        return self.path if self._stream is None and self.path.is_folder() else None

    def list_samples(self) -> Listing:
        """Find all rows and the kind of each column.

        Raises:
            SourceError: the file is not a table, or a column cannot be stored.
            OptionError: a column from the arguments does not exist.
            MissingExtraError: pyarrow is not installed.
            FileAccessError: a file cannot be read.
        """
        root = self.root or self.path.parent
        tree = FileTree(root) if self.root is None else self._take_tree(root)
        splits_of_files = self._find_files(tree)
        names = [path.relative_to(self.path) or path.name for path in self._paths]
        files = self._versions(root, names)
        is_current = files == self._files and self._image_column is None
        if self._listing is not None and (is_current or self._stream is not None):
            return self._listing  # a stream can be read only once
        rows = self._open_rows()
        if self._label is None and not self._options["label_columns"]:
            lists = rows.of_lists if rows.image else {}
            named = lists if _LABEL_NAME in lists else rows.class_names or lists
            usual = _LABEL_NAME if _LABEL_NAME in named else None
            self._label = next(iter(named)) if len(named) == 1 else usual
        known_names = {**rows.of_lists, **rows.class_names}.get(self._label or "") or None
        images = self._named_images(tree, names, rows)
        has_images = images is not None or rows.image is not None
        label_columns = self._label_columns(rows, has_images=has_images)
        label = LabelColumn(self._label, label_columns, self._options["label_separator"])
        marks = RowMarks(self._split, self._group, label)
        table = encode_table(
            rows,
            [(self._image_column, images), *marks.columns()],
            required=self._split,
            with_lines=has_images,
        )
        if files != self._versions(root, names):
            raise SourceError(
                "the table changed while it was read",
                path=self.path,
                remedy="Rerun when no program writes to it.",
            )
        left_out = [] if images is None else images.left_out
        kept = np.delete(np.arange(len(table.rows)), left_out)
        if len(left_out) and not len(kept):
            raise SourceError(
                f"{option('leave_out')} leaves out the images of all {len(left_out):,} rows",
                path=self.path,
            )
        self._check_image_columns(rows, images)
        notices = list(table.notices)
        unused = [name for name, names in rows.class_names.items() if names != known_names]
        if unused := [*unused, *(name for name in rows.of_lists if name != self._label)]:
            notices.append(
                f"class names of some columns were dropped: {join_names(unused)}; label_column "
                "chooses the column of the classes"
            )
        marks.check(self._paths[0])
        kind = rows.kinds.get(self._label or "")
        labels, class_names = marks.labels(kind, known_names, notices, self._paths[0], kept)
        row_names = RowNames(dict(zip(names, table.counts, strict=True)))
        samples = marks.samples(row_names, table.rows, labels)
        if splits_of_files:
            ordered = sort_splits(splits_of_files)
            numbers = np.array([ordered.index(name) for name in splits_of_files], np.int32)
            samples.splits = ordered, np.repeat(numbers, table.counts)
        version = common_version(number for _, number in files) if files else table.rows.crc32c
        samples.versions = version
        if images is not None:
            if samples.splits is None and (splits := images.splits()) is not None:
                samples.splits = splits
                notices.append(f"splits from the folders of the images: {join_names(splits[0])}")
            if samples.splits is not None:
                self._check_splits(images, samples.splits)
            samples.sizes = samples.sizes + images.sizes()
            samples.versions = images.versions(version)
            samples.references = images.references(row_names)
            notices += images.notices(counts_unnamed=self._tree is None)
            others = [
                name
                for name in rows.kinds
                if name.endswith("_file_name") and name != self._image_column
            ]
            notices += count_notice(others, "column", "with names of images stored as text")
        caption = self._find_captions(rows.kinds) if has_images else None
        if caption is not None and self._caption is None:
            notices.append(f"captions of images from column {caption!r}")
        if has_images and samples.references is not None:
            samples.references = marks.references(samples.references)
        if len(left_out):
            samples = samples.subset(kept)
        own = label_columns or ((self._label,) if self._label is not None else ())
        hidden = (self._image_column, *own, IMAGE, FILENAME, caption) if has_images else ()
        reader = TableReader(
            root,
            files,
            tuple(self._kinds.items()),
            self._delimiter,
            self._encoding,
            rows.unit,
            tuple((name, kind) for name, kind in rows.kinds.items() if name not in hidden),
            self._split,
            own if has_images else (),
            self._image_column,
            rows.image if images is None else None,
            self._image_folder,
            class_names if has_images else None,
            marks.list_keys if has_images else (),
            caption,
        )
        self._files = files
        self._listing = Listing(
            samples,
            reader.having(table_files(names, self._paths, table)),
            class_names,
            tuple(notices),
            () if samples.splits is None else tuple(samples.splits[0]),
            self._only_split(),
            arrow_schema=None if has_images else rows.arrow_schema(table.loss),
        ).with_account(self._account(tree, images))
        return self._listing

    def _account(self, tree: FileTree, images: NamedImages | None) -> Account | None:
        """The account of the folder; None if it was not scanned."""
        if self._tree is None or self.root is None:
            return None
        account = tree.account()
        paths = {path.relative_to(self.root) for path in self._paths}
        account.read(Role.TABLE, {path for path in paths if path})
        if images is not None and (above := images.folder.relative_to(self.root)) is not None:
            images.add_to(account, above)
        return tree.finish(account)

    def _check_splits(self, images: NamedImages, splits: Coding) -> None:
        """Check that rows of several splits do not share images whose names others have, too."""
        tree = self._tree
        if tree is None or tree.inspector is None or tree.inspector.is_chosen:
            return
        above = images.folder.relative_to(tree.root) or ""
        for path, names in images.in_several_splits(splits).items():
            image = join_path(above, path)
            folder, _, name = image.rpartition("/")
            others = (below for below, scan in tree.folders.items() if name in scan.images)
            if (other := next((below for below in others if below != folder), None)) is not None:
                shown = join_names(sort_splits(names))
                raise SourceError(
                    f"rows of {shown} have the image {image}, and {join_path(other, name)} has "
                    "the same name",
                    path=self.path,
                    remedy=f"Write the folders in the names, such as {folder}/{name}; or pass "
                    f"{option('images', folder or '.')}, if all images are in it.",
                )

    def describe(self) -> Mapping[str, Any]:
        options = {name: value for name, value in self._options.items() if value is not None}
        named = {"file" if self.root is None else "folder": last_name(self.path)}
        return {"kind": "Table"} | named | options

    def _find_files(self, tree: FileTree) -> list[str]:
        """Find the files of the table; returns the split of each if they have several."""
        if self._stream is not None or not is_folder(self.path):
            self._paths = [self.path]
            return []
        metadata = None if self._table is not None else _find_metadata(tree, self.path)
        if self._table is not None:
            tables = [self.path / name.strip() for name in self._table.split(",")]
            if len(set(tables)) < len(tables):
                raise OptionError(option="table", value=self._table, expected="each file once")
            if any(map(tree.leaves_out, tables)):
                expected = f"tables that {option('leave_out')} does not leave out"
                raise OptionError(option="table", value=self._table, expected=expected)
        elif metadata is not None:
            tables = [metadata]
        else:
            tables = _list_tables(tree, self.path)
            if not tables and (self.path / "data").is_folder():
                tables = _list_tables(
                    tree, self.path / "data"
                )  # as in repositories of Hugging Face
        splits = [split_of(path.name) for path in tables]
        if metadata is not None or not all(map(has_split_word, splits)):
            splits = []
        if not tables:
            folders = {
                entry.name: table
                for entry in self.path.list_entries()
                if entry.kind == "folder"
                and not entry.name.startswith(".")
                and (table := _find_metadata(tree, self.path / entry.name)) is not None
            }
            splits = list(sort_splits(folders))
            tables = [folders[name] for name in splits]
            if tables and self._split is not None:
                raise OptionError(
                    f"{option('split_column')} conflicts with the splits of the folders "
                    f"{join_names(folders)}, which have a table each",
                    option="split_column",
                    value=self._split,
                )
        if not tables:
            raise SourceError(
                f"the folder contains no tables and no {join_names(METADATA_COLUMNS, 'or')}",
                path=self.path,
                remedy=f"Check that {option('leave_out')} keeps one." if tree.leave_out else "",
            )
        self._paths = tables
        if self._options["image_column"] is None and self._table is None:
            self._image_column = METADATA_COLUMNS.get(tables[0].name)
        if len({path.suffix for path in tables}) > 1:
            names = [path.relative_to(self.path) or path.name for path in tables]
            raise SourceError(
                f"tables in different formats: {join_names(names)}; expected one format",
                path=self.path,
            )
        return splits if len(set(splits)) > 1 and self._split is None else []

    def _label_columns(self, rows: TableRows, *, has_images: bool) -> tuple[str, ...]:
        """The columns of 0 and 1: those of the caller; in Roboflow's table all but the images."""
        chosen: tuple[str, ...] = self._options["label_columns"] or ()
        if self._options["label_separator"] is not None and self._label is None:
            raise OptionError(
                f"{option('label_separator')} needs a column of classes",
                option="label_separator",
                value=self._options["label_separator"],
                remedy=f"Pass the column with {option('label_column')}.",
            )
        if chosen and not has_images:
            raise OptionError(
                "these columns are for classes of images, and the rows have no images",
                option="label_columns",
                value=chosen,
                remedy="Leave it out: the columns are features of the rows.",
            )
        if not chosen and self._label is None and {p.name for p in self._paths} == {_ROBOFLOW}:
            others = (self._image_column, self._split, self._group)
            chosen = tuple(name for name in rows.kinds if name not in others)
        return chosen

    def _versions(self, root: Location, names: Sequence[str]) -> tuple[tuple[str, int], ...]:
        return () if self._stream is not None else versions_of(root, names)

    def _only_split(self) -> str | None:
        """The split of all files, if their names or folders have one."""
        if self._stream is not None:
            return None
        words = {split_word(path.name) for path in self._paths}
        folders = {path.parent.name for path in self._paths} if self.root is not None else set()
        names = [*words] if len(words) == 1 else []
        return only_split([*names, *folders] if len(folders) < 2 else names, self.root)

    def _open_rows(self) -> TableRows:
        required = dict.fromkeys(self._kinds, "kinds") | {
            column: name
            for name, column in self._options.items()
            if name.endswith("_column") and column
        }
        required |= dict.fromkeys(self._options["label_columns"] or (), "label_columns")
        if self._image_column is not None:
            required.setdefault(self._image_column, "image_column")
        return open_rows(
            self._paths,
            required,
            kinds=self._kinds,
            delimiter=self._delimiter,
            encoding=self._encoding,
            image_column=self._image_column,
            stream=self._stream,
        )

    def _named_images(
        self, tree: FileTree, names: Sequence[str], rows: TableRows
    ) -> NamedImages | None:
        """The images that rows name; None if they name none."""
        if self._image_folder is not None and (self._image_column or rows.image) is not None:
            check_folder(self._image_folder, "the folder of the images")
        if self._image_column is None or (rows.image and self._image_folder is None):
            return None
        if self._image_folder is not None:
            folders = [""] * len(names)
            below = self._image_folder.relative_to(tree.root)
            images = FileTree(self._image_folder) if below is None else tree.below(below)
            return NamedImages(self._image_column, images, folders, searches_below=True)
        if self._stream is not None:
            raise OptionError(
                "a table in memory has no folder that its paths of images are relative to",
                option="images",
                remedy=f"Pass {option('images', 'folder')}.",
            )
        return NamedImages(self._image_column, tree, list(map(posixpath.dirname, names)))

    def _find_captions(self, kinds: Mapping[str, Kind]) -> str | None:
        """The column of the captions, if there is one."""
        if self._caption is not None:
            if self._caption and self._caption == self._label:
                raise OptionError(
                    f"{self._caption!r} is the column of the classes",
                    option="caption_column",
                    value=self._caption,
                    remedy=f"Pass {option('label_column', '')} as well, for no classes.",
                )
            if self._caption and kinds.get(self._caption) != "bytes":
                problem = f"caption column {self._caption!r} is {kinds.get(self._caption, 'empty')}"
                raise SourceError(f"{problem}; expected text", path=self._paths[0])
            return self._caption or None
        is_metadata = all(path.name.startswith("metadata.") for path in self._paths)
        usual = (*_CAPTION_NAMES, *([_METADATA_CAPTION] if is_metadata else ()))
        names = [name for name in usual if kinds.get(name) == "bytes" and name != self._label]
        return names[0] if names else None

    def _check_image_columns(self, rows: TableRows, images: NamedImages | None) -> None:
        if self._image_column is None and rows.image is None:
            return
        own = {IMAGE, FILENAME} if rows.image is not None else set()
        if clashing := sorted((_IMAGE_KEYS - own) & rows.kinds.keys()):
            raise SourceError(
                f"column {clashing[0]!r} has the name of an image feature",
                path=self._paths[0],
                remedy="Rename the column.",
            )
        kind = rows.kinds.get(self._image_column or "")
        if images is not None and kind != "bytes" and images.are_missing:
            raise SourceError(
                f"image column {self._image_column!r} is {kind or 'empty'}; expected paths",
                path=self._paths[0],
            )


def _check_options(options: Mapping[str, Any]) -> None:
    if options["images"] is not None and options["image_column"] is None:
        raise OptionError(
            f"{option('images')} needs {option('image_column')} as well",
            option="image_column",
            remedy=f"Pass the column of image files, such as "
            f"{option('image_column', 'file_name')}.",
        )
    if (names := options["label_columns"]) is not None:
        are_names = all(names) and len({*names}) == len(names) > 0
        if options["label_column"] is not None or not are_names:
            expected = f"different names with commas between them, and no {option('label_column')}"
            raise OptionError(option="label_columns", value=",".join(names), expected=expected)
    for name, kind in (options["kinds"] or {}).items():
        if kind not in ("bytes", "float", "int64"):
            raise OptionError(
                f"the kind of column {name!r} is {kind!r}",
                option="kinds",
                value=kind,
                expected="bytes, float or int64",
            )
    delimiter = options["delimiter"]
    is_usable = isinstance(delimiter, str) and re.fullmatch('[^"\r\n\0\ud800-\udfff]', delimiter)
    if delimiter is not None and not is_usable:
        raise OptionError(
            option="delimiter", value=delimiter, expected="one character, such as ';'"
        )


def _describe_images(
    images: PlaceLike | None, folder: Location | None, table: Location
) -> str | None:
    """The folder of the images for the manifest, independent of where both are."""
    if images == "." or folder is None:
        return None if folder is None else "."
    return folder.relative_to(table) or folder.relative_to(table.parent) or folder.name


def _list_tables(tree: FileTree, folder: Location) -> list[Location]:
    return [
        folder / entry.name
        for entry in tree.entries(folder)
        if entry.name.lower().removesuffix(".gz").endswith(TABLE_SUFFIXES)
        and not entry.name.startswith(".")
        and entry.kind == "object"
        and not tree.leaves_out(folder)
    ]


def _find_metadata(tree: FileTree, folder: Location) -> Location | None:
    paths = [folder / name for name in METADATA_COLUMNS]
    paths = [path for path in paths if is_file(path) and not tree.leaves_out(path)]
    if len(paths) > 1:
        raise SourceError(
            f"several tables: {join_names(path.name for path in paths)}; expected one", path=folder
        )
    return paths[0] if paths else None
