"""Generate code for plain TensorFlow: `TFRecordDataset`, `parse_example`, `decode_image`.

Examples without images are parsed in batches, which is much faster. Examples with images are parsed
one by one, because images may differ in size.
"""

from __future__ import annotations

from collections.abc import Sequence

from recordsmith.readers.description import Description, Field
from recordsmith.readers.file_lists import file_lines, imports
from recordsmith.readers.source_text import comment, dict_lines, is_utf8, literal

_DTYPES = {"bytes": "tf.string", "float": "tf.float32", "int64": "tf.int64"}
_DEFAULTS = {"bytes": '""', "float": "0.0", "int64": "0"}
_DECODED = frozenset(("bmp", "gif", "jpeg", "png"))
_COMPRESSION = {
    "none": "",
    "gzip": ', compression_type="GZIP"',
    "zlib": ', compression_type="ZLIB"',
}
_PARALLEL = "num_parallel_calls=tf.data.AUTOTUNE"
_OPTIONAL = """\
def decode_if_there(data):
    return tf.cond(
        tf.strings.length(data) > 0,
        lambda: tf.io.decode_image(data, channels=3, expand_animations=False),
        lambda: tf.zeros([0, 0, 3], tf.uint8),
    )
"""


def source_code(description: Description) -> str:
    """A program in plain TensorFlow, for Examples or SequenceExamples."""
    is_sequence = description.payload == "SequenceExample"
    files = file_lines(description)
    sections = {
        name: [field for field in fields if is_utf8(field.key)]
        for name, fields in description.sections.items()
    }
    body = _sequences(sections) if is_sequence else _examples(sections.get("features", []))
    compression = _COMPRESSION[description.compression]
    return "\n".join(
        [
            *imports(files),
            "import tensorflow as tf",
            "",
            *files,
            "",
            *_left_out(description),
            *body.before,
            f"dataset = tf.data.TFRecordDataset(files{compression})",
            *body.after,
            "",
        ]
    )


class _ProgramBody:
    """The lines before and after the one that opens the files."""

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        self.before = before
        self.after = after


def _left_out(description: Description) -> list[str]:
    why = [f"{key!r} is left out: {why}" for key, why in description.left_out]
    why += [
        f"{field.key!r} is left out: TensorFlow only supports names in UTF-8"
        for fields in description.sections.values()
        for field in fields
        if not is_utf8(field.key)
    ]
    return [comment(line).strip() for line in why]


def _examples(fields: Sequence[Field]) -> _ProgramBody:
    spec = dict_lines("features", [(f.key, _feature(f), _note(f)) for f in fields])
    decoding = [line for field in fields for line in _decoding(field, "example")]
    shown = [
        "    for key, value in {}.items():",
        '        print(f"{key!r}: {value.dtype.name} {value.shape}")',
    ]
    if not decoding:
        return _ProgramBody(
            [*spec, ""],
            [
                "dataset = dataset.batch(32)",
                "dataset = dataset.map(",
                f"    lambda records: tf.io.parse_example(records, features), {_PARALLEL}",
                ")",
                "",
                "for batch in dataset.take(1):",
                shown[0].format("batch"),
                shown[1],
            ],
        )
    helper = [*_OPTIONAL.splitlines(), "", ""] if _needs_optional(fields) else []
    return _ProgramBody(
        [
            *spec,
            "",
            "",
            *helper,
            "def decode(record):",
            "    example = tf.io.parse_single_example(record, features)",
            *decoding,
            "    return example",
            "",
            "",
        ],
        [
            "# batch() needs one size of images: tf.image.resize(image, [224, 224])",
            f"dataset = dataset.map(decode, {_PARALLEL})",
            "",
            "for example in dataset.take(1):",
            shown[0].format("example"),
            shown[1],
        ],
    )


def _sequences(sections: dict[str, list[Field]]) -> _ProgramBody:
    context = sections.get("context", [])
    lists = sections.get("feature_lists", [])
    decoding = [line for field in context for line in _decoding(field, "context")]
    decoding += [line for field in lists for line in _decoding_steps(field)]
    helper = [*_OPTIONAL.splitlines(), "", ""] if _needs_optional(context) else []
    return _ProgramBody(
        [
            *dict_lines("context_features", [(f.key, _feature(f), _note(f)) for f in context]),
            *dict_lines("sequence_features", [(f.key, _steps(f), _note(f)) for f in lists]),
            "",
            "",
            *helper,
            "def decode(record):",
            "    context, sequences = tf.io.parse_single_sequence_example(",
            "        record, context_features, sequence_features",
            "    )",
            *decoding,
            "    return context, sequences",
            "",
            "",
        ],
        [
            f"dataset = dataset.map(decode, {_PARALLEL})",
            "",
            "for context, sequences in dataset.take(1):",
            "    for key, value in [*context.items(), *sequences.items()]:",
            '        print(f"{key!r}: {value.dtype.name} {value.shape}")',
        ],
    )


def _feature(field: Field) -> str:
    """The spec of a feature of an Example or a context."""
    dtype, shape = _DTYPES[field.kind], field.shape
    if shape is None:
        return f"tf.io.RaggedFeature({dtype})"
    default = ""
    if field.missing_count:
        value = _DEFAULTS[field.kind]
        default = f", default_value={value if shape == () else f'[{value}] * {shape[0]}'}"
    return f"tf.io.FixedLenFeature({list(shape)}, {dtype}{default})"


def _steps(field: Field) -> str:
    """The spec of a feature list."""
    dtype, shape = _DTYPES[field.kind], field.shape
    if shape is None:
        return f"tf.io.RaggedFeature({dtype})"
    may_lack = ", allow_missing=True" if field.missing_count else ""
    return f"tf.io.FixedLenSequenceFeature({list(shape)}, {dtype}{may_lack})"


def _note(field: Field) -> str:
    return comment(field.note, _undecoded(field))


def _undecoded(field: Field) -> str:
    """Why an image is not decoded; empty if it is."""
    if field.content not in ("image", "mask"):
        return ""
    if field.length != 1:
        return "several images: tf.io.decode_image(value[0]) decodes one"
    others = sorted(field.samples.formats - _DECODED)
    if others:
        return f"TensorFlow does not decode {', '.join(others)}"
    if field.content == "mask" and field.samples.number_bits is None:
        return "TensorFlow decodes these masks to colours; recordsmith.Mask reads class numbers"
    if field.content == "mask" and field.missing_count:
        return "tf.io.decode_png(value, channels=1) decodes one"
    return ""


def _is_decoded(field: Field) -> bool:
    return field.content in ("image", "mask") and not _undecoded(field)


def _needs_optional(fields: Sequence[Field]) -> bool:
    return any(_is_decoded(field) and field.missing_count for field in fields)


def _decoding(field: Field, variable: str) -> list[str]:
    if not _is_decoded(field):
        return []
    value = f"{variable}[{literal(field.key)}]"
    if field.missing_count:
        return [f"    {value} = decode_if_there({value})"]
    function, options = _decoder(field)
    return [f"    {value} = {function}(", f"        {value}, {options}", "    )"]


def _decoding_steps(field: Field) -> list[str]:
    if not _is_decoded(field) or not field.is_always_stepped:
        return []
    value = f"sequences[{literal(field.key)}]"
    function, options = _decoder(field)
    dtype = "tf.uint16" if "uint16" in options else "tf.uint8"
    return [
        f"    {value} = tf.map_fn(",
        f"        lambda data: {function}(data, {options}),",
        f"        {value},",
        f"        fn_output_signature={dtype},",
        "    )",
    ]


def _decoder(field: Field) -> tuple[str, str]:
    """The decoding function of an image or mask, and its arguments."""
    if field.content == "image":
        return "tf.io.decode_image", "channels=3, expand_animations=False"
    dtype = ", dtype=tf.uint16" if field.samples.number_bits == 16 else ""
    return "tf.io.decode_png", f"channels=1{dtype}"
