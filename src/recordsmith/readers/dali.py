"""Generate code for plain NVIDIA DALI: `fn.readers.tfrecord` with index files.

DALI reads one byte string per feature, and lists of numbers of any length. If a record lacks a
feature, DALI returns uninitialized memory, so such features are left out.
"""

from __future__ import annotations

import shlex

from recordsmith.errors import OptionError
from recordsmith.readers.description import Description, Field
from recordsmith.readers.file_lists import file_lines, imports
from recordsmith.readers.source_text import comment, dict_lines, is_utf8, literal

_DTYPES = {"bytes": "tfrec.string", "float": "tfrec.float32", "int64": "tfrec.int64"}
_DEFAULTS = {"bytes": '""', "float": "0.0", "int64": "0"}
_DECODED = frozenset(("bmp", "jpeg", "png", "tiff", "webp"))


def source_code(description: Description) -> str:
    """A program that runs a pipeline on the CPU.

    Raises:
        OptionError: the shards are compressed, have names that are not UTF-8, or have no feature
            that DALI can read.
    """
    if description.compression != "none":
        raise OptionError(
            f"{description.name} is compressed with {description.compression}, which DALI does not "
            "support",
            remedy="Write uncompressed shards with `recordsmith pack PATH OUT --format shards`.",
        )
    if not all(map(is_utf8, description.files)):
        raise OptionError(
            f"{description.name} has names that are not UTF-8, which DALI cannot open"
        )
    fields = [field for field in description.fields if not _unsupported_reason(field)]
    if not fields:
        raise OptionError(f"{description.name} has no feature that DALI can read")
    has_masks = any(_is_decoded(field) and field.content == "mask" for field in fields)
    left_out = [f"{key!r} is left out: {why}" for key, why in description.left_out]
    left_out += [
        f"{f.key!r} is left out: {_unsupported_reason(f)}"
        for f in description.fields
        if _unsupported_reason(f)
    ]
    files = file_lines(description)
    return "\n".join(
        [
            *imports(files),
            "import nvidia.dali.tfrecord as tfrec",
            f"from nvidia.dali import fn, pipeline_def{', types' if has_masks else ''}",
            "",
            *files,
            comment(f"made by: {_command(description)}").strip(),
            'indexes = [file + ".idx" for file in files]',
            "",
            *(comment(line).strip() for line in left_out),
            *dict_lines("features", [(f.key, _feature(f), _note(f)) for f in fields]),
            "",
            "",
            "@pipeline_def(batch_size=32, num_threads=4, device_id=None)  # a GPU: device_id=0",
            "def pipeline():",
            "    example = fn.readers.tfrecord(",
            "        path=files, index_path=indexes, features=features, random_shuffle=True",
            "    )",
            *(line for field in fields for line in _decoding(field)),
            "    return tuple(example[key] for key in features)",
            "",
            "",
            "batches = pipeline()",
            "batches.build()",
            "for key, values in zip(features, batches.run()):",
            '    print(f"{key!r}: {values.dtype} {values.at(0).shape}")',
            "",
        ]
    )


def _command(description: Description) -> str:
    given = description.paths
    paths = [given] if isinstance(given, str) else given
    split = [] if description.split is None else ["--split", description.split]
    words = ["recordsmith", "index", *paths, *split, "--format", "dali"]
    return shlex.join(words)


def _unsupported_reason(field: Field) -> str:
    """Why DALI cannot read a feature; empty if it can."""
    if not is_utf8(field.key):
        return "its name is not UTF-8"
    if field.missing_count:
        return f"{field.note}, for which DALI returns arbitrary numbers"
    if field.kind == "bytes" and field.length != 1:
        return "DALI reads one byte string of a feature, not several"
    return ""


def _feature(field: Field) -> str:
    dtype, default = _DTYPES[field.kind], _DEFAULTS[field.kind]
    if field.shape is None:
        return f"tfrec.VarLenFeature({dtype}, {default})"
    return f"tfrec.FixedLenFeature({list(field.shape)}, {dtype}, {default})"


def _is_decoded(field: Field) -> bool:
    if field.content == "mask":
        return field.samples.number_bits == 8
    return field.content == "image" and field.samples.formats <= _DECODED


def _decoding(field: Field) -> list[str]:
    if not _is_decoded(field):
        return []
    value = f"example[{literal(field.key)}]"
    options = ", output_type=types.GRAY" if field.content == "mask" else ""
    return [f'    {value} = fn.decoders.image({value}, device="cpu"{options})']


def _note(field: Field) -> str:
    undecoded = field.content in ("image", "mask") and not _is_decoded(field)
    return comment(field.note, "not decoded: DALI does not read it as it is" if undecoded else "")
