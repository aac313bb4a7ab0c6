"""The readers of TFRecord files without TensorFlow that people find first, on what they all do.

`tfrecord` reads and writes; `tfr-reader` reads, also at any position. Neither checks checksums.

    python -m cases.readers tfrecord FILE    read all of a file, and print its users, or the error
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from case import OURS, Case, Peer, Settings, Table, Task
from cases.columns import KEYS
from inputs import Inputs
from measure import HERE, make_inputs, say

DAMAGE = "readers-damage"
_TFRECORD, _TFR_READER = "tfrecord", "tfr-reader"
_SECONDS = 60
_FILE = "small.tfrecord"
_KINDS = dict.fromkeys(KEYS, "int") | {"dense": "float", "country": "byte"}

Example = dict[str, Any]


def _by_recordsmith(path: Path) -> Iterator[Example]:
    import recordsmith as rs

    return iter(rs.open(path))


def _by_tfrecord(path: Path) -> Iterator[Example]:
    from tfrecord.reader import tfrecord_loader

    return tfrecord_loader(str(path), None, _KINDS)  # type: ignore[no-any-return]


def _by_tfr_reader(path: Path) -> Iterator[Example]:
    """By its compiled reader of a file, which its index is made with, too."""
    from tfr_reader import example
    from tfr_reader.cython.indexer import TFRecordFileReader

    file = TFRecordFileReader(str(path), False)
    for position in range(len(file)):
        read = example.decode(file.get_example(position))
        yield {key: read[key].value for key in KEYS}


def _by_tensorflow(path: Path) -> Iterator[Example]:
    import tensorflow as tf

    from cases.columns import tensorflow_features

    features = tensorflow_features()
    dataset = tf.data.TFRecordDataset(str(path))
    examples: Any = dataset.map(lambda payload: tf.io.parse_single_example(payload, features))
    return iter(examples.as_numpy_iterator())


_READERS: dict[str, Callable[[Path], Iterator[Example]]] = {
    OURS: _by_recordsmith,
    "tf.data": _by_tensorflow,
    _TFRECORD: _by_tfrecord,
    _TFR_READER: _by_tfr_reader,
}


def _user(example: Example) -> int:
    value: Any = example["user"]
    return int(value[0] if hasattr(value, "__len__") else value)


def _read(reader: str, inputs: Inputs) -> Task:
    path, read = inputs.path(_FILE), _READERS[reader]
    if reader == _TFR_READER:
        import tfr_reader  # noqa: F401 - is it there?
    elif reader == _TFRECORD:
        import tfrecord.reader  # noqa: F401

    def run() -> tuple[int, int]:
        count = total = 0
        for example in read(path):
            count += 1
            total += _user(example)
        return count, total

    return Task(run, records=inputs.small_count, digest=list)


def _at_random(inputs: Inputs, read: Callable[[list[int]], Iterable[Example]]) -> Task:
    chosen = random.Random(6).choices(range(inputs.small_count), k=inputs.random_count)
    return Task(
        lambda: list(read(chosen)), len(chosen), digest=lambda found: sum(map(_user, found))
    )


def _recordsmith_at_random(inputs: Inputs) -> Task:
    import recordsmith as rs

    dataset = rs.open(inputs.path(_FILE))
    assert len(dataset) == inputs.small_count  # the index is there, as that of the other is
    return _at_random(inputs, lambda chosen: [dataset[position] for position in chosen])


def _tfr_reader_at_random(inputs: Inputs, *, is_together: bool) -> Task:
    import tfr_reader

    folder = inputs.out("tfr-reader")
    folder.mkdir(exist_ok=True)
    (folder / _FILE).unlink(missing_ok=True)
    (folder / _FILE).symlink_to(inputs.path(_FILE).resolve())
    tfr_reader.TFRecordDatasetReader.build_index_from_dataset_dir(folder)
    reader = tfr_reader.TFRecordDatasetReader(folder, verbose=False)

    def together(chosen: list[int]) -> Any:
        found = reader.load_records(reader.index_df[chosen])
        return ({"user": example["user"].value} for example in found)

    def one_by_one(chosen: list[int]) -> Any:
        return ({"user": reader[position]["user"].value} for position in chosen)

    return _at_random(inputs, together if is_together else one_by_one)


def _write(inputs: Inputs, writer: str) -> Task:
    rows = list(inputs.columns(inputs.dict_count).rows())
    path = inputs.out(f"readers-{writer}.tfrecord")

    def by_recordsmith() -> None:
        import recordsmith as rs

        with rs.ShardWriter(path) as shard:
            for row in rows:
                shard.write_example(row)

    def by_tfrecord() -> None:
        from tfrecord.writer import TFRecordWriter

        shard = TFRecordWriter(str(path))
        for row in rows:
            shard.write({key: (value, _KINDS[key]) for key, value in row.items()})
        shard.close()
        with path.open("rb+") as file:
            os.fsync(file)

    if writer == _TFRECORD:
        import tfrecord.writer  # noqa: F401 - is it there?
    return Task(
        by_tfrecord if writer == _TFRECORD else by_recordsmith,
        records=inputs.dict_count,
        before=lambda: path.unlink(missing_ok=True),
        digest=lambda _: path.stat().st_size,
    )


def _damages(data: bytes, start: int, size: int) -> dict[str, bytes]:
    """What may happen to the record that starts at `start`, in the middle of a file."""
    value, length = bytearray(data), bytearray(data)
    value[data.index(b"user", start) + 10] ^= 1
    length[start] ^= 4
    return {
        "a flipped bit in a value": bytes(value),
        "a flipped bit in a length": bytes(length),
        "cut within a record": data[: start + size // 2],
        "1,000 bytes of zeros between records": data[:start] + bytes(1000) + data[start:],
    }


def report_damage(settings: Settings) -> Table:
    """What each reader does with a damaged file: the values that it yields, and its error."""
    from by_hand import frame_places

    say(DAMAGE)
    make_inputs(settings, (_FILE,))
    inputs = Inputs(settings.folder, quick=settings.quick)
    places = frame_places(inputs.path(_FILE))[:1000]
    start, size = places[500]
    whole = inputs.path(_FILE).read_bytes()[: sum(places[-1])]
    path = inputs.out("readers-damaged.tfrecord")
    pythons = {
        _TFRECORD: settings.tfrecord_python,
        _TFR_READER: settings.tfr_reader_python,
    }
    damages = _damages(whole, start, size)
    rows, outcomes = [], {}
    for reader in _READERS:
        say(f"  {reader}")
        python = pythons.get(reader) or sys.executable
        path.write_bytes(whole)
        users, error = _read_apart(python, reader, path)
        if error:
            rows.append((reader, f"not installed: {error}", *[""] * (len(damages) - 1)))
            continue
        cells = []
        for data in damages.values():
            path.write_bytes(data)
            cells.append(_outcome(users, *_read_apart(python, reader, path)))
        rows.append((reader, *cells))
        outcomes[reader] = cells
    return Table(
        DAMAGE,
        "Damaged files, and readers without TensorFlow",
        "A file of 1,000 small Examples, damaged at the 501st, is read from its beginning. What "
        "was read is compared with the whole file.",
        ("", *damages),
        tuple(rows),
        data=outcomes,
    )


def _outcome(expected: list[int], users: list[int], error: str) -> str:
    count = len(users)
    wrong = sum(a != b for a, b in zip(users, expected, strict=False))
    found = [f"{wrong} wrong"] if wrong else []
    found += [f"{count} of 1,000 records"] if count != len(expected) else []
    if error:
        return f"{error} after {count} records" + (f", {wrong} wrong" if wrong else "")
    return f"{', '.join(found)}, without a message" if found else "all right"


def _read_apart(python: str, reader: str, path: Path) -> tuple[list[int], str]:
    """The users that were read, and the error or an empty text."""
    command = [python, "-m", "cases.readers", reader, str(path)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    try:
        done = subprocess.run(
            command, cwd=HERE, env=environment, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return [], f"no end within {_SECONDS} s"
    if done.returncode or not done.stdout:
        return [], f"the process ended with {done.returncode}"
    result = json.loads(done.stdout.splitlines()[-1])
    return result["users"], result["error"]


def main() -> None:
    _, reader, path = sys.argv
    users: list[int] = []
    error = ""
    try:
        users.extend(map(_user, _READERS[reader](Path(path))))  # those before an error stay
    except Exception as found:  # noqa: BLE001 - of any library
        error = type(found).__name__
    print(json.dumps({"users": users, "error": error}))


def _peers(prepare: Callable[..., Task], names: Iterable[str]) -> tuple[Peer, ...]:
    settings = {_TFRECORD: "tfrecord_python", _TFR_READER: "tfr_reader_python"}
    return tuple(
        Peer(name, partial(prepare, name), python_setting=settings.get(name)) for name in names
    )


CASES = (
    Case(
        name="readers-all",
        title="Read Examples one after the other",
        what=(
            "All small Examples of a file as values of Python, one by one, all six features. "
            "recordsmith checks both checksums of each, the others none."
        ),
        unit="record",
        peers=_peers(_read, (OURS, _TFRECORD, _TFR_READER)),
        inputs=(_FILE,),
    ),
    Case(
        name="readers-random",
        title="Read Examples at random positions",
        what=(
            "Small Examples at random positions, decoded; indexes exist already. `tfrecord` reads "
            "in order only."
        ),
        unit="record",
        peers=(
            Peer(OURS, _recordsmith_at_random),
            Peer(
                "tfr-reader, one by one",
                partial(_tfr_reader_at_random, is_together=False),
                python_setting="tfr_reader_python",
            ),
            Peer(
                "tfr-reader, `load_records`",
                partial(_tfr_reader_at_random, is_together=True),
                python_setting="tfr_reader_python",
            ),
        ),
        inputs=(_FILE,),
    ),
    Case(
        name="readers-write",
        title="Write Examples from dicts",
        what="One dict after the other to a file, synced at the end. `tfr-reader` only reads.",
        unit="row",
        peers=(
            Peer(OURS, partial(_write, writer=OURS)),
            Peer(_TFRECORD, partial(_write, writer=_TFRECORD), python_setting="tfrecord_python"),
        ),
    ),
)

if __name__ == "__main__":
    main()
