"""The seam of export formats: a class in a module of `formats`, and a line in the table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, NamedTuple

from recordsmith.dataset import Dataset
from recordsmith.exporting.export_writer import ExportWriter
from recordsmith.format.example import Features
from recordsmith.format.example.class_lists import have_class_lists
from recordsmith.support.errors import OptionError, option
from recordsmith.support.lazy import LazyTable

if TYPE_CHECKING:
    from recordsmith.dataset import ArrowDecoder

_FORMATS = {
    "array-record": ("array_record.ArrayRecordFiles", "for Grain; needs the extra array-record"),
    "coco": ("coco.CocoFiles", "images and JSON files with boxes"),
    "csv": ("csv.CsvTables", "tables without images; needs the extra arrow"),
    "dota": ("dota.DotaFiles", "images and text files with rotated boxes"),
    "folder": ("folders.ClassFolders", "a folder for each class, or images and masks"),
    "pairs": ("folders.ImagePairFiles", "images and masks"),
    "huggingface": (
        "hugging_face.HuggingFaceTables",
        "Parquet with images and class names for datasets; needs the extra arrow",
    ),
    "lerobot": ("lerobot.LeRobotFiles", "episodes for LeRobot; needs the extra video"),
    "parquet": ("parquet.ParquetTables", "tables; needs the extra arrow"),
    "feather": ("parquet.FeatherTables", "tables; needs the extra arrow"),
    "tfds": ("tfds.TfdsFiles", "for TensorFlow Datasets"),
    "voc": ("voc.VocFiles", "images and XML files with boxes"),
    "webdataset": ("webdataset.WebDatasetShards", "tar files"),
    "yolo": ("yolo.YoloFiles", "images and text files with boxes"),
}
EXPORTERS: LazyTable[type[Exporter]] = LazyTable(
    "recordsmith.exporting.formats", {name: home for name, (home, _) in _FORMATS.items()}
)
"""By the names of their formats."""

WHAT = {name: what for name, (_, what) in _FORMATS.items()}
"""What each format writes, for the help."""


class Exporter(ABC):
    """Writes records in one format, with as little memory as possible. Used by one thread.

    format: its name in the table.
    options: those of `export` that it has in addition to those of all.
    fps, yolo_task: the options, of formats that have them.
    """

    format: str
    options: ClassVar[tuple[str, ...]] = ()
    fps: float | None = None
    yolo_task: str | None = None

    @abstractmethod
    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        """Prepare for a dataset, given its schema and class names.

        Raises:
            OptionError: the format cannot hold such a dataset.
            MissingExtraError: the package of the format is not installed.
        """

    def keeps_keys(self, dataset: Dataset) -> bool:
        """Whether the features keep their keys, so that no image is chosen."""
        return False

    def abandon(self) -> None:  # noqa: B027
        """Called when the job ends, also with an error."""


def refuse_several_classes(dataset: Dataset, why: str, format: str) -> None:
    """Raise OptionError if images have lists of classes, as far as the schema shows."""
    if have_class_lists(dataset.view.preview_schema()[0]):
        raise OptionError(
            f"images have several classes, and {why}",
            option="format",
            value=format,
            remedy=f"Pass {option('format', 'huggingface')}, {option('format', 'webdataset')} or "
            f"{option('format', 'parquet')}, which keep the lists.",
        )


class FolderExporter(Exporter):
    """Writes examples to files that belong together."""

    options: ClassVar[tuple[str, ...]] = ("image_key",)

    @abstractmethod
    def add(self, example: Features, split: str, position: int) -> None:
        """Write one example."""

    def finish(self) -> None:
        """Write the remaining files, such as lists and indexes."""


class WrittenFile(NamedTuple):
    """A file, the split of its records, and how many it has."""

    name: str
    split: str
    record_count: int


class FileExporter(Exporter):
    """Writes files that are independent of each other, so that tasks can write them.

    suffix: of their names.
    overhead_bytes: what a record takes in a file, about, in addition to its own bytes.
    """

    options: ClassVar[tuple[str, ...]] = ("engine",)
    suffix: ClassVar[str]
    overhead_bytes: ClassVar[int] = 0

    def inspect(self, dataset: Dataset) -> None:
        """Read what lies next to the records, once, before `begin`; tasks get a copy."""

    def file_names(self, split: str, count: int) -> Sequence[str]:
        """Return the names of several files of a split, given its name in paths."""
        return [f"{split}-{number:05d}-of-{count:05d}{self.suffix}" for number in range(count)]

    @abstractmethod
    def open(self, file: BinaryIO, split: str) -> None:
        """Begin a file, which the job closes."""

    def close(self) -> None:
        """Write the end of the file that was begun last; it may have no records."""

    def result(self) -> Any:
        """Return what `describe` needs to know of the records; it is pickled."""

    def describe(self, files: Sequence[WrittenFile], results: Iterable[Any]) -> None:
        """Write what describes all files."""


class RecordFiles(FileExporter):
    """Writes records one by one; a split has several files of about the same size.

    has_payloads: whether `add` is called with the bytes of the records instead of examples.
    """

    options = (*FileExporter.options, "shard_size_bytes")
    has_payloads: bool = False

    @abstractmethod
    def add(self, record: Any) -> None:
        """Write one record to the file that was begun last; raises as `FolderExporter.add`."""


class TableFiles(FileExporter):
    """Writes records as columns; a split has one file.

    decoder: decodes the records for `add`; made by `begin`.
    """

    decoder: ArrowDecoder

    @abstractmethod
    def add(self, row_count: int, position: Callable[[int], int]) -> int:
        """Write the records in the decoder to the file that was begun last, and empty it.

        Returns:
            How many were written; the others were passed to `ExportWriter.skip`.
        """
