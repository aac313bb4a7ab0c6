"""Generates programs that read a dataset in TensorFlow or DALI, from a template for each.

Texts from files are untrusted: they become literals and comments only.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections.abc import Iterable
from itertools import islice
from string import Template
from typing import Literal, NamedTuple, get_args

from recordsmith.checking import PAYLOADS, Inspection, inspect
from recordsmith.dataset import Paths, is_split_slice, locate
from recordsmith.dataset import open as open_dataset
from recordsmith.format.example import FeatureSchema
from recordsmith.format.example.class_lists import CLASS_LISTS, have_class_lists
from recordsmith.format.example.keys import (
    BOX,
    CLASS_CONFIDENCE,
    KEYPOINT_X,
    is_class_key,
    is_mask_key,
)
from recordsmith.format.example.serialized_tensor import TensorSchema
from recordsmith.image import ImageHeader, find_image_header
from recordsmith.stores import is_url
from recordsmith.support.errors import OptionError
from recordsmith.support.explaining import check_word
from recordsmith.support.words import count as format_count
from recordsmith.support.words import printable
from recordsmith.support.work import Progress

Reader = Literal["tf", "dali"]
READERS = get_args(Reader)

_TENSORFLOW = Template("""\
${imports}import tensorflow as tf

$files

$left_out$features


def decode($records):
    example = tf.io.$parser($records, features)
$decoding    return example


dataset = tf.data.TFRecordDataset(files$compression)$batched
dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)

for example in dataset.take(1):
    for key, value in example.items():
        print(f"{key!r}: {value.dtype.name} {value.shape}")
""")
_DALI = Template("""\
${imports}import nvidia.dali.tfrecord as tfrec
from nvidia.dali import fn, pipeline_def

$files
# made by: $command
indexes = [file + ".idx" for file in files]

$left_out$features


@pipeline_def(batch_size=32, num_threads=4, device_id=None)  # a GPU: device_id=0
def pipeline():
    example = fn.readers.tfrecord(
        path=files, index_path=indexes, features=features, random_shuffle=True
    )
$decoding    return tuple(example[key] for key in features)


batches = pipeline()
batches.build()
for key, values in zip(features, batches.run()):
    print(f"{key!r}: {values.dtype} {values.at(0).shape}")
""")
_MAX_LISTED_FILES = 4
_DECODED_BY_TENSORFLOW = frozenset(("bmp", "gif", "jpeg", "png"))
_DECODED_BY_DALI = frozenset(("bmp", "jpeg", "png", "tiff", "webp"))
_TYPES = {"bytes": "string", "float": "float32", "int64": "int64"}
_DEFAULTS = {"bytes": '""', "float": "0.0", "int64": "0"}
_SEVERAL_CLASSES = (
    "images have several classes; rs.MultiHot('image/class/label') makes rows of 0 and 1 of them"
)
_SAMPLE_COUNT = 64
_NAMES_SHOWN = 10
_MAX_COMMENT = 200


def reader_code(
    paths: Paths, reader: Reader, split: str | None = None, *, progress: Progress | None = None
) -> str:
    """Generate a program that reads a dataset and prints its first batch or example.

    Args:
        paths: a file, folder, glob or a list of these; the program contains them unchanged.
        reader: tf for TensorFlow; dali for DALI, with the index files of
            `index(paths, format="dali")`.
        split: read only this split.
        progress: called as `progress(done, total)` with bytes.

    Returns:
        Python source. Text from the files is always quoted, so it cannot become code.

    Raises:
        OptionError: the reader is unknown, or cannot read this compression; or the records are not
            Examples.
        CorruptDataError, FileAccessError: as for `inspect`.

    Example:
        print(rs.reader_code("out", "tf"))
    """
    check_word("reader", reader, READERS)
    description = _describe(paths, split, progress)
    if reader == "dali" and description.compression != "none":
        raise OptionError(
            f"the shards are compressed with {description.compression}, but DALI needs random "
            "access",
            remedy="Write others with `recordsmith reshard PATH OUT --compression none`.",
        )
    return _PROGRAMS[reader](description)


class _Field(NamedTuple):
    """A feature to read.

    kind: bytes, float or int64.
    content: image, mask (an image of class numbers), text, tensor, bytes or number.
    shape: of the values of a record: () for one, (n,) for more; None if it varies.
    may_lack: whether some records are without it.
    note: a comment for the generated program.
    formats: of the first images.
    tensor: of serialised tensors.
    """

    key: str
    kind: str
    content: str
    shape: tuple[int, ...] | None
    may_lack: bool
    note: str
    formats: set[str]
    tensor: TensorSchema | None


class _Description(NamedTuple):
    """The dataset to read.

    paths, split: as the caller passed them.
    left_out: comments on features that cannot be read.
    """

    paths: str | list[str]
    split: str | None
    files: list[str]
    compression: str
    note: str
    fields: list[_Field]
    left_out: str


def _describe(paths: Paths, split: str | None, progress: Progress | None) -> _Description:
    if is_split_slice(split):  # the program reads whole files
        locate(paths, split)
    if any(shard.layers for shard in open_dataset(paths, split).shards):
        raise OptionError(
            "the dataset has layers, which the program would not read",
            option="reader",
            remedy="Make them part of the records with `recordsmith reshard PATH OUT`, and read "
            "OUT.",
        )
    inspection = inspect(paths, split, progress=progress)
    schema = inspection.schema
    name = os.fspath(paths) if isinstance(paths, (str, os.PathLike)) else [*map(str, paths)]
    if inspection.compression == "mixed":
        raise OptionError(
            "the shards have different compressions", remedy="Pass only shards with the same one."
        )
    if schema.payload not in ("Example", "none"):
        raise OptionError(
            f"the records of {name} are {PAYLOADS[schema.payload][1]}",
            expected="Examples",
            remedy="Read them with recordsmith.open.",
        )
    schema.check_complete("a program names all features that it reads")
    if not schema.features:
        raise OptionError(f"the records of {name} have no features")
    headers: dict[str, list[ImageHeader]] = {}
    for example in islice(open_dataset(paths, split), _SAMPLE_COUNT):
        for key, values in example.items():
            header = find_image_header(values[0]) if isinstance(values, list) and values else None
            if header is not None:
                headers.setdefault(key, []).append(header)
    fields, left_out = [], ""
    for key, feature in schema.features.items():
        if feature.kind in ("mixed", "none"):
            left_out += _why_left_out(
                key, "its kind varies" if feature.kind == "mixed" else "it has no values"
            )
        elif key in (*CLASS_LISTS, CLASS_CONFIDENCE) and have_class_lists(schema):
            left_out += _why_left_out(key, _SEVERAL_CLASSES)
        else:
            fields.append(_field(key, feature, headers.get(key, []), inspection))
    note = format_count(inspection.record_count, "record")
    if split is None and len(inspection.splits) > 1:
        note += f" of the splits {', '.join(inspection.splits)}; use --split to select one"
    files = [shard.path for shard in inspection.shards]
    return _Description(name, split, files, inspection.compression, note, fields, left_out)


def _field(
    key: str, feature: FeatureSchema, headers: list[ImageHeader], inspection: Inspection
) -> _Field:
    missing_count = inspection.record_count - feature.present
    shape = feature.shape_if_present if feature.max_length else None
    content: str = "bytes" if feature.content in ("raw", None) else feature.content
    content = content if feature.kind == "bytes" else "number"
    notes = [f"serialised: {feature.tensor}"] if feature.tensor is not None else []
    formats = {header.format for header in headers}
    if content == "image":
        content = "mask" if is_mask_key(key) and formats == {"png"} else "image"
        sizes = {f", {header.width}x{header.height}" for header in headers}
        notes.append(", ".join(sorted(formats)) + (sizes.pop() if len(sizes) == 1 else ""))
    if shape is None:
        notes.append(f"{feature.min_length:,} to {feature.max_length:,} values")
    if missing_count:
        notes.append(f"missing in {missing_count:,} of {inspection.record_count:,} records")
    if feature.kind == "int64" and is_class_key(key):
        names = [f"{n} {name}" for n, name in enumerate(inspection.class_names or ()) if name]
        more = f", … {len(names):,} classes" if len(names) > _NAMES_SHOWN else ""
        notes.append(", ".join(names[:_NAMES_SHOWN]) + more)
    if key == BOX[0]:
        notes.append("rs.Boxes() reads these features as boxes, if they are fractions of the image")
    if key == KEYPOINT_X:
        notes.append("rs.Keypoints() reads these features as keypoints")
    note = "; ".join(filter(None, notes))
    return _Field(
        key, feature.kind, content, shape, missing_count > 0, note, formats, feature.tensor
    )


def _tensorflow(description: _Description) -> str:
    """Images and tensors that each record has are decoded, masks stay bytes."""
    fields = [field for field in description.fields if _is_utf8(field.key)]
    left_out = "".join(
        _why_left_out(field.key, "TensorFlow needs names in UTF-8")
        for field in description.fields
        if field not in fields
    )
    decoding = "".join(map(_tensorflow_decoding, fields))
    compression = description.compression
    return _TENSORFLOW.substitute(
        _file_lines(description),
        left_out=description.left_out + left_out,
        features=_features((f, _tensorflow_feature(f), comment(f.note)) for f in fields),
        decoding=decoding,
        compression="" if compression == "none" else f', compression_type="{compression.upper()}"',
        records="record" if decoding else "records",
        parser="parse_single_example" if decoding else "parse_example",
        # images of several sizes do not make a batch
        batched="" if decoding else ".batch(32)",
    )


def _tensorflow_decoding(field: _Field) -> str:
    """The line that decodes a feature; empty for one that stays as it is."""
    value, tensor = f"example[{literal(field.key)}]", field.tensor
    if field.shape != () or field.may_lack:
        return ""
    if field.content == "image" and field.formats <= _DECODED_BY_TENSORFLOW:
        call = f"io.decode_image(\n        {value}, channels=3, expand_animations=False"
    elif tensor is not None and tensor.dtype is not None:
        shape = None if tensor.shape is None else list(tensor.shape)
        parsed = f"tf.io.parse_tensor({value}, out_type=tf.{tensor.dtype})"
        call = f"ensure_shape(\n        {parsed}, {shape}"
    else:
        return ""
    return f"    {value} = tf.{call}\n    )\n"


def _dali(description: _Description) -> str:
    left_out = "".join(
        _why_left_out(field.key, why)
        for field in description.fields
        if (why := _why_not_dali(field))
    )
    fields = [field for field in description.fields if not _why_not_dali(field)]
    if not fields:
        raise OptionError("the records have no feature that DALI can read")
    decoding = "".join(
        f'    {value} = fn.decoders.image({value}, device="cpu")\n'
        for field in fields
        if field.content == "image" and field.formats <= _DECODED_BY_DALI
        for value in (f"example[{literal(field.key)}]",)
    )
    paths = [description.paths] if isinstance(description.paths, str) else description.paths
    split = [] if description.split is None else ["--split", description.split]
    command = shlex.join(["recordsmith", "index", *paths, *split, "--format", "dali"])
    return _DALI.substitute(
        _file_lines(description),
        command=comment(command)[4:],
        left_out=description.left_out + left_out,
        features=_features((f, _dali_feature(f), comment(f.note)) for f in fields),
        decoding=decoding,
    )


def _features(entries: Iterable[tuple[_Field, str, str]]) -> str:
    """The lines that define `features`, from each feature, its expression and its comment."""
    lines = [f"    {literal(field.key)}: {value},{note}" for field, value, note in entries]
    return "\n".join(["features = {", *lines, "}"]) if lines else "features = {}"


def _tensorflow_feature(field: _Field) -> str:
    dtype, shape = f"tf.{_TYPES[field.kind]}", field.shape
    if shape is None:
        return f"tf.io.RaggedFeature({dtype})"
    default = ""
    if field.may_lack:
        value = _DEFAULTS[field.kind]
        default = f", default_value={value if shape == () else f'[{value}] * {shape[0]}'}"
    return f"tf.io.FixedLenFeature({list(shape)}, {dtype}{default})"


def _why_not_dali(field: _Field) -> str:
    """Why DALI cannot read a feature; empty if it can."""
    if not _is_utf8(field.key):
        return "its name is not UTF-8"
    if field.may_lack:
        return f"{field.note}, for which DALI returns arbitrary numbers"
    if field.kind == "bytes" and field.shape != ():
        return "DALI reads one byte string of a feature, not several"
    return ""


def _dali_feature(field: _Field) -> str:
    dtype, default = f"tfrec.{_TYPES[field.kind]}", _DEFAULTS[field.kind]
    if field.shape is None:
        return f"tfrec.VarLenFeature({dtype}, {default})"
    return f"tfrec.FixedLenFeature({list(field.shape)}, {dtype}, {default})"


def _file_lines(description: _Description) -> dict[str, str]:
    """The lines that define `files`, and the import that they need."""
    for file in description.files:
        if is_url(file) or not _is_utf8(file):
            raise OptionError(
                f"the program reads local files with names in UTF-8, but not {file}",
                option="reader",
                value=file,
                remedy="Copy the dataset to a local disk with `recordsmith reshard`.",
            )
    note = comment(format_count(len(description.files), "shard"), description.note)[2:]
    given = description.paths
    matches = sorted(glob.glob(given, recursive=True)) if isinstance(given, str) else []
    if isinstance(given, str) and matches == description.files != [given]:  # a pattern
        recursive = ", recursive=True" if "**" in given else ""
        line = f"files = sorted(glob.glob({literal(given)}{recursive}))"
        return {"imports": "import glob\n\n", "files": f"{note}\n{line}"}
    names = list(map(literal, description.files))
    listed = ", ".join(names)
    if len(names) > _MAX_LISTED_FILES:
        listed = "".join(f"\n    {name}," for name in names) + "\n"
    return {"imports": "", "files": f"{note}\nfiles = [{listed}]"}


_PROGRAMS = {"tf": _tensorflow, "dali": _dali}


def literal(value: str) -> str:
    """The `repr` of a text, in double quotes if it contains none."""
    text = repr(value)
    return text if '"' in text else f'"{text[1:-1]}"'


def comment(*parts: str) -> str:
    """A comment in one line, `  # this; and that`, or empty; parts may hold any characters."""
    text = printable("; ".join(filter(None, parts)))
    if len(text) > _MAX_COMMENT:
        text = text[: _MAX_COMMENT - 2] + " …"
    return f"  # {text}" if text else ""


def _is_utf8(text: str) -> bool:
    return re.search("[\ud800-\udfff]", text) is None


def _why_left_out(key: str, why: str) -> str:
    """A line with a comment on a feature that a program does not read."""
    return f"{comment(f'{key!r} is left out: {why}')[2:]}\n"
