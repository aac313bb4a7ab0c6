"""Other features in every record, next to a TensorFlow loop that parses, changes and
writes Examples.

TensorFlow has no command for it: what people write is a loop. It goes through fewer records; how
many bytes each has afterwards must be the same. The last row is the cost of records that do not
change.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from case import OURS, Case, Peer, Task
from cases.write import sync
from inputs import LARGE_BYTES, Inputs


def _recordsmith(name: str, **changes: Any) -> Callable[[Inputs], Task]:
    def prepare(inputs: Inputs) -> Task:
        import recordsmith

        path, out = inputs.path(name), inputs.out("edited")
        count = inputs.record_counts[name]
        job = recordsmith.edit if changes else recordsmith.reshard
        return Task(
            lambda: job(path, out, **changes),
            count,
            before=lambda: shutil.rmtree(out, ignore_errors=True),
            digest=(lambda report: report.bytes_out / count) if changes else None,
        )

    return prepare


def _tensorflow(name: str, change: Callable[[Any], None]) -> Callable[[Inputs], Task]:
    def prepare(inputs: Inputs) -> Task:
        import tensorflow as tf

        out, count = inputs.out("edited.tfrecord"), inputs.record_counts[name]
        options = tf.data.Options()
        options.autotune.enabled = False
        records = tf.data.TFRecordDataset(str(inputs.path(name))).batch(256).with_options(options)

        def run() -> Path:
            parse = tf.train.Example.FromString
            with tf.io.TFRecordWriter(str(out)) as writer:
                for batch in records:
                    for payload in batch.numpy():
                        example = parse(payload)
                        change(example.features.feature)
                        writer.write(example.SerializeToString())
            sync(out)
            return out

        return Task(
            run,
            count,
            before=lambda: out.unlink(missing_ok=True),
            digest=lambda path: path.stat().st_size / count,
        )

    return prepare


def _edit(feature: Any) -> None:
    del feature["time"]
    feature["user_id"].CopyFrom(feature["user"])
    del feature["user"]
    feature["year"].int64_list.value.append(2024)


def _recode(feature: Any) -> None:
    values = feature["label"].int64_list.value
    values[:] = [1 - value for value in values]


def _edit_image(feature: Any) -> None:
    feature["label"].CopyFrom(feature["image/class/label"])
    del feature["image/class/label"]
    feature["year"].int64_list.value.append(2024)


def _case(
    name: str, title: str, what: str, size: str, changes: dict[str, Any], change: Any, target: float
) -> Case:
    return Case(
        name=name,
        title=title,
        what=what,
        unit="record",
        peers=(
            Peer(OURS, _recordsmith(f"{size}-packed", **changes)),
            Peer(
                "tf.train.Example, TFRecordWriter",
                _tensorflow(f"{size}.tfrecord", change),
                at_most=target,
            ),
            Peer("recordsmith, nothing changed", _recordsmith(f"{size}-packed")),
        ),
        inputs=(f"{size}-packed", f"{size}.tfrecord"),
    )


CASES = (
    _case(
        "edit-small",
        "Edit small records",
        "Records of about 200 bytes: one feature dropped, one renamed, one added.",
        "small",
        {"drop": ["time"], "rename": {"user": "user_id"}, "add": {"year": 2024}},
        _edit,
        1 / 10,
    ),
    _case(
        "edit-recode",
        "Recode small records",
        "Records of about 200 bytes: the label becomes another one, by a table.",
        "small",
        {"recode": {"label": {0: 1, 1: 0}}},
        _recode,
        1 / 10,
    ),
    _case(
        "edit-large",
        "Edit large records",
        f"Records of about {LARGE_BYTES // 1000} kB: one feature renamed, one added.",
        "large",
        {"rename": {"image/class/label": "label"}, "add": {"year": 2024}},
        _edit_image,
        1,
    ),
)
