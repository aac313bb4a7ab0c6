"""`recordsmith.reader_code`: a template for each framework, and how it reads each feature."""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections.abc import Callable, Iterable
from string import Template
from typing import Literal, get_args

from recordsmith.dataset.locate import Paths
from recordsmith.errors import OptionError
from recordsmith.examining.shard_summaries import PAYLOADS
from recordsmith.readers.description import Description, Field, describe
from recordsmith.readers.source_text import comment, dict_lines, is_utf8, literal
from recordsmith.stores import as_place, is_url
from recordsmith.words import count as format_count
from recordsmith.words import did_you_mean
from recordsmith.work import Progress

Reader = Literal["tf", "torch", "dali", "grain"]
READERS = get_args(Reader)
_NEED_RANDOM_ACCESS = ("dali", "grain", "torch")

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
_SEQUENCES = Template("""\
${imports}import tensorflow as tf

$files

$left_out$context
$lists


def decode(record):
    return tf.io.parse_single_sequence_example(record, context_features, sequence_features)


dataset = tf.data.TFRecordDataset(files$compression)
dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)

for context, sequences in dataset.take(1):
    for key, value in [*context.items(), *sequences.items()]:
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
_TORCH = Template("""\
import recordsmith as rs
import recordsmith.torch

$dataset
$left_out$features
loader = rs.Loader(dataset, features, batch_size=32, shuffle=True)

for batch in recordsmith.torch.batches(loader):
    for key, value in batch.items():
        print(f"{key!r}:", getattr(value, "shape", f"{len(value)} values"))
    break
""")
_GRAIN = Template("""\
import grain
import numpy as np
import recordsmith as rs
import recordsmith.grain

$dataset
$left_out$features
examples = recordsmith.grain.examples(dataset, features)
loaded = grain.MapDataset.source(examples).seed(0).shuffle()$batched.to_iter_dataset()

for loaded_features in loaded:
    for key, value in loaded_features.items():
        print(f"{key!r}: {np.asarray(value).dtype} {np.shape(value)}")
    break
""")

_USUAL_SIZE = (224, 224)
_MAX_LISTED_FILES = 4
_DECODED_BY_TENSORFLOW = frozenset(("bmp", "gif", "jpeg", "png"))
_DECODED_BY_DALI = frozenset(("bmp", "jpeg", "png", "tiff", "webp"))
_TF_TYPES = {"bytes": "tf.string", "float": "tf.float32", "int64": "tf.int64"}
_DALI_TYPES = {"bytes": "tfrec.string", "float": "tfrec.float32", "int64": "tfrec.int64"}
_DEFAULTS = {"bytes": '""', "float": "0.0", "int64": "0"}


def reader_code(
    paths: Paths, reader: Reader, split: str | None = None, *, progress: Progress | None = None
) -> str:
    """Generate a program that reads a dataset and prints its first batch or example.

    Args:
        paths: a file, folder, glob or a list of these; the program contains them unchanged.
        reader: tf for plain TensorFlow; torch or grain with recordsmith's adapters; dali for plain
            DALI, with the index files of `index(paths, format="dali")`.
        split: read only this split.
        progress: called as `progress(done, total)` with bytes.

    Returns:
        Python source. Text from the files is always quoted, so it cannot become code.

    Raises:
        OptionError: the reader is unknown, or cannot read these records or this compression.
        CorruptDataError, FileAccessError: as for `inspect`.
    """
    if reader not in READERS:
        raise OptionError(
            option="reader",
            value=reader,
            expected=f"one of {', '.join(READERS)}",
            remedy=did_you_mean(str(reader), READERS),
        )
    description = describe(paths, split, progress)
    payload = description.payload
    if payload not in ("Example", "SequenceExample", "none"):
        raise OptionError(
            f"the records of {description.name} are {PAYLOADS[payload][1]}",
            expected="Examples, or SequenceExamples with the reader tf",
        )
    if payload == "SequenceExample" and reader != "tf":
        raise OptionError(
            f"the records of {description.name} are SequenceExamples, which the reader {reader} "
            "does not support",
            option="reader",
            value=reader,
            remedy="Use the reader tf, or recordsmith.open.",
        )
    if not any(description.sections.values()):
        raise OptionError(f"the records of {description.name} have no features")
    if reader in _NEED_RANDOM_ACCESS and description.compression != "none":
        raise OptionError(
            f"{description.name} is compressed with {description.compression}, but {reader} needs "
            "random access",
            remedy="Write others with `recordsmith reshard PATH OUT --compression none`.",
        )
    return _PROGRAMS[reader](description)


def _tensorflow(description: Description) -> str:
    """A program in plain TensorFlow, for Examples or SequenceExamples."""
    sections = {
        name: [field for field in fields if is_utf8(field.key)]
        for name, fields in description.sections.items()
    }
    odd = [f for fields in description.sections.values() for f in fields if not is_utf8(f.key)]
    compression = description.compression
    options = "" if compression == "none" else f', compression_type="{compression.upper()}"'
    common = _file_lines(description) | {
        "left_out": _left_out(description, odd, lambda _: "TensorFlow needs names in UTF-8"),
        "compression": options,
    }
    if description.payload == "SequenceExample":
        return _SEQUENCES.substitute(
            common,
            context=_specs("context_features", sections.get("context", []), _tensorflow_feature),
            lists=_specs("sequence_features", sections.get("feature_lists", []), _tensorflow_steps),
        )
    fields = sections.get("features", [])
    decoding = [line for field in fields for line in _tensorflow_decoding(field)]
    return _TENSORFLOW.substitute(
        common,
        features=_specs("features", fields, _tensorflow_feature),
        decoding="".join(decoding),
        records="record" if decoding else "records",
        parser="parse_single_example" if decoding else "parse_example",
        # images of several sizes do not make a batch
        batched="" if decoding else ".batch(32)",
    )


def _dali(description: Description) -> str:
    """A program in plain DALI, which reads one byte string of a feature, and no missing ones."""
    if not all(map(is_utf8, description.files)):
        raise OptionError(
            f"{description.name} has names that are not UTF-8, which DALI cannot open"
        )
    fields = [field for field in description.fields if not _no_dali(field)]
    if not fields:
        raise OptionError(f"{description.name} has no feature that DALI can read")
    left_out = [field for field in description.fields if _no_dali(field)]
    decoding = [line for field in fields for line in _dali_decoding(field)]
    paths = [description.paths] if isinstance(description.paths, str) else description.paths
    split = [] if description.split is None else ["--split", description.split]
    command = shlex.join(["recordsmith", "index", *paths, *split, "--format", "dali"])
    return _DALI.substitute(
        _file_lines(description),
        command=comment(command)[4:],
        left_out=_left_out(description, left_out, _no_dali),
        features=_specs("features", fields, _dali_feature),
        decoding="".join(decoding),
    )


def _torch(description: Description) -> str:
    """A program with recordsmith.torch."""
    return _TORCH.substitute(_loader_lines(description))


def _grain(description: Description) -> str:
    """A program with recordsmith.grain: batches, or examples if they cannot be stacked."""
    stacks = all(
        f.is_single("image")
        or f.is_single("mask")
        or (f.content in ("number", "text") and f.length)
        for f in description.fields
    )
    return _GRAIN.substitute(_loader_lines(description), batched=".batch(32)" if stacks else "")


def _specs(name: str, fields: Iterable[Field], spec: Callable[[Field], str]) -> str:
    return dict_lines(name, [(f.key, spec(f), comment(f.note)) for f in fields])


def _left_out(
    description: Description, fields: Iterable[Field] = (), why: Callable[[Field], str] = str
) -> str:
    """Comments on features that a program does not read."""
    reasons = [*description.left_out, *((field.key, why(field)) for field in fields)]
    return "".join(f"{comment(f'{key!r} is left out: {why}')[2:]}\n" for key, why in reasons)


def _tensorflow_feature(field: Field) -> str:
    dtype, shape = _TF_TYPES[field.kind], field.shape
    if shape is None:
        return f"tf.io.RaggedFeature({dtype})"
    default = ""
    if field.missing_count:
        value = _DEFAULTS[field.kind]
        default = f", default_value={value if shape == () else f'[{value}] * {shape[0]}'}"
    return f"tf.io.FixedLenFeature({list(shape)}, {dtype}{default})"


def _tensorflow_steps(field: Field) -> str:
    dtype, shape = _TF_TYPES[field.kind], field.shape
    if shape is None:
        return f"tf.io.RaggedFeature({dtype})"
    may_lack = ", allow_missing=True" if field.missing_count else ""
    return f"tf.io.FixedLenSequenceFeature({list(shape)}, {dtype}{may_lack})"


def _tensorflow_decoding(field: Field) -> Iterable[str]:
    """Decode an image that each record has; others, and masks, stay bytes."""
    if field.is_single("image") and field.samples.formats <= _DECODED_BY_TENSORFLOW:
        value = f"example[{literal(field.key)}]"
        yield f"    {value} = tf.io.decode_image(\n"
        yield f"        {value}, channels=3, expand_animations=False\n    )\n"


def _no_dali(field: Field) -> str:
    """Why DALI cannot read a feature; empty if it can."""
    if not is_utf8(field.key):
        return "its name is not UTF-8"
    if field.missing_count:
        return f"{field.note}, for which DALI returns arbitrary numbers"
    if field.kind == "bytes" and field.length != 1:
        return "DALI reads one byte string of a feature, not several"
    return ""


def _dali_feature(field: Field) -> str:
    dtype, default = _DALI_TYPES[field.kind], _DEFAULTS[field.kind]
    if field.shape is None:
        return f"tfrec.VarLenFeature({dtype}, {default})"
    return f"tfrec.FixedLenFeature({list(field.shape)}, {dtype}, {default})"


def _dali_decoding(field: Field) -> Iterable[str]:
    if field.content == "image" and field.samples.formats <= _DECODED_BY_DALI:
        value = f"example[{literal(field.key)}]"
        yield f'    {value} = fn.decoders.image({value}, device="cpu")\n'


def _loader_lines(description: Description) -> dict[str, str]:
    split = "" if description.split is None else f", split={literal(description.split)}"
    given = description.paths
    paths = literal(given) if isinstance(given, str) else f"[{', '.join(map(literal, given))}]"
    entries = [
        (
            f.key,
            _loader_feature(f, description),
            comment(f.kind if f.content == "number" else "", f.note),
        )
        for f in description.fields
    ]
    return {
        "dataset": f"dataset = rs.open({paths}{split}){comment(description.record_note)}",
        "left_out": _left_out(description),
        "features": dict_lines("features", entries),
    }


def _loader_feature(field: Field, description: Description) -> str:
    key, shape = literal(field.key), field.shape
    sizes = field.samples.sizes
    size = f"size={next(iter(sizes)) if len(sizes) == 1 else _USUAL_SIZE}"
    if field.is_single("image"):
        return f"rs.Image({key}, {size})"
    if field.is_single("mask"):
        images = [other for other in description.fields if other.is_single("image")]
        has_image = len(images) == 1 and images[0].samples.sizes == sizes
        dtype = ', dtype="uint16"' if field.samples.is_deep else ""
        return f"rs.Mask({key}{'' if has_image else f', {size}'}{dtype})"
    default = ""
    if field.missing_count and shape is not None:
        default = ", default=0" if field.content == "number" else ', default=b""'
    if field.content == "number":
        if shape is None:
            return f"rs.Ragged({key})"
        name, argument = ("Tensor", f", {shape}") if shape else ("Scalar", "")
        return f"rs.{name}({key}{argument}{default})"
    name = "Text" if field.content == "text" else "Bytes"
    argument = ', "ragged"' if shape is None else f", {shape}" if shape else ""
    return f"rs.{name}({key}{argument}{default})"


def _file_lines(description: Description) -> dict[str, str]:
    """The lines that define `files`, and the import that they need."""
    for file in description.files:
        if is_url(file):
            raise OptionError(
                f"the program reads local files, but {file} is not on a local disk",
                option="reader",
                value=file,
                expected="torch or grain, which read URLs",
                remedy="Or copy the dataset to a local disk with `recordsmith reshard`.",
            )
    note = comment(format_count(len(description.files), "shard"), description.record_note)[2:]
    pattern = _pattern(description)
    if pattern is not None:
        recursive = ", recursive=True" if "**" in pattern else ""
        line = f"files = sorted(glob.glob({literal(pattern)}{recursive}))"
        return {"imports": "import glob\n\n", "files": f"{note}\n{line}"}
    names = [literal(f if is_utf8(f) else os.fsencode(f)) for f in description.files]
    listed = ", ".join(names)
    if len(names) > _MAX_LISTED_FILES:
        listed = "".join(f"\n    {name}," for name in names) + "\n"
    return {"imports": "", "files": f"{note}\nfiles = [{listed}]"}


def _pattern(description: Description) -> str | None:
    """A glob that matches exactly these files: the one that was passed, or of many shards."""
    given, files = description.paths, list(description.files)
    if not isinstance(given, str):
        return None
    place = as_place(given)
    if not (place.is_folder() or place.exists()):
        pattern = given
    elif len(files) > _MAX_LISTED_FILES:
        prefix = re.sub(r"\d+$", "", os.path.commonprefix(files))  # noqa: RUF071 - of strings
        _, dot, suffix = os.path.basename(files[0]).partition(".")
        pattern = f"{glob.escape(prefix)}*{glob.escape(dot + suffix)}"
    else:
        return None
    matches = is_utf8(pattern) and sorted(glob.glob(pattern, recursive=True)) == files
    return pattern if matches else None


_PROGRAMS = {"tf": _tensorflow, "torch": _torch, "dali": _dali, "grain": _grain}
