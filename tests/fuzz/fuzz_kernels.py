"""Every entry of the compiled kernels.

The invariant: whatever the bytes and the arrays, a kernel gives a result that lies within its
input, or names a defect, or refuses with the exception that it states (IndexError for spans
outside the buffer, ValueError for offsets and splits that do not fit). It never reads or writes
outside the memory it was given, never allocates more than a fixed multiple of it, never loops
without end, and never raises anything else. All its readers agree: what is told to be an Example
can be decoded, what can be decoded can be surveyed, and what is told to be an Example or a
SequenceExample, and nothing else, can be rewritten: the same whether it was met before or not, and
whatever number of bytes is enough for a piece.

An overread is only seen by a tool that watches memory: run_with_sanitizer.sh runs this under
AddressSanitizer. That is why each input lies in a block of exactly its size.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from harness import corpus_files, mutated

from recordsmith.format.example import encode_example, encode_sequence_example
from recordsmith.format.example.kernel import decoding, encoding, payloads
from recordsmith.format.example.kernel.columns import ColumnBuilder
from recordsmith.format.example.kernel.rewriting import CODES, Rewriter
from recordsmith.format.example.kernel.survey import FeatureSurvey
from recordsmith.format.wire import check_frames, encode_record, scan
from recordsmith.format.wire import kernel as wire_kernel
from recordsmith.support.errors import Defect

GOOD, MALFORMED, NOT_AN_EXAMPLE = 0, 1, 2
CLASH, TOO_LONG = CODES["clash"], CODES["too long"]
PRESENCE_ONLY, BYTES, FLOAT, INT64 = -1, 1, 2, 3
EXAMPLE, SEQUENCE = 1, 2

Array = npt.NDArray[Any]


def exact(data: bytes | bytearray) -> npt.NDArray[np.uint8]:
    """A copy in a block of memory that ends where it ends."""
    array = np.empty(len(data), np.uint8)
    array[:] = np.frombuffer(bytes(data), np.uint8)
    return array


# keys of columns, and the kind that each has in the seeds
KEYS = {
    b"": 0,
    b"a": INT64,
    b"b": BYTES,
    b"f": FLOAT,
    b"n": INT64,
    b"id": INT64,
    b"missing": 0,
    b"image/class/label": INT64,
    b"image/encoded": BYTES,
    b"score": FLOAT,
    b"neg": INT64,
    b"feature/1": INT64,
    b"feature/7": INT64,
    b"k\xff": 0,
}

# ---- seeds and mutations -----------------------------------------------------------------------


def payload_seeds() -> list[bytes]:
    seeds = [
        b"",
        encode_example({"a": [1, -2, 2**62], "b": [b"x", b"", "y" * 200], "f": [0.5, 1e-30]}),
        encode_example({"": [], "image/encoded": b"\xff\xd8\xff\xe0" + bytes(40), "n": 5}),
        encode_example({f"feature/{number}": [number] * number for number in range(12)}),
        encode_sequence_example({"id": 7}, {"n": [[1, 2], [], [3]], "b": [["a"], [b"b"]]}),
        encode_sequence_example({}, {"f": [], "image/encoded": [b"\x89PNG\r\n\x1a\n" + bytes(9)]}),
    ]
    for count in range(1, 9):
        lists = {"a": [[step] * (count % 3) for step in range(count)], "score": [[0.5, -1]] * count}
        lists |= {"b": [[b"x" * step] for step in range(count)], "neg": [[-1]] * (count % 4)}
        seeds.append(encode_sequence_example({"id": count}, lists))
    ranking = b"".join(b"\n" + bytes([len(inner)]) + inner for inner in seeds[2:3] if inner)
    seeds.append(ranking + b"\x12" + bytes([len(seeds[2])]) + seeds[2])
    seeds.append(b"\x09" + struct.pack("<d", 1.5) + b"\x10\x05\x1a\x0dbrain.Event:2")
    seeds += [bytes.fromhex(text) for text in ("0a050a030a0161", "0a007a00", "12050a030a0161")]
    seeds.append(seeds[1] + b"\x7b" * 5 + b"\x08\x01" + b"\x7c" * 5)  # groups in groups
    for data in corpus_files():
        frames = scan(data)
        for start, length in zip(frames.starts.tolist(), frames.lengths.tolist(), strict=True):
            if length < 2000:
                seeds.append(data[start : start + length])
    return list(dict.fromkeys(seeds))[:60]


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])


def delimited(field: int, content: bytes) -> bytes:
    return bytes([field << 3 | 2]) + varint(len(content)) + content


# keys, also some that end inside a letter
NAMES = [*KEYS, b"\xc3\xb6", b"a\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xf0\x9f\x98\x80"]
# contents of list messages, packed and not
LISTS = {
    BYTES: [
        delimited(1, b"value") + delimited(1, b""),
        delimited(1, bytes(130)),
        delimited(1, "text, ö, €, 😀".encode()),
    ],
    FLOAT: [delimited(1, bytes(8)), b"\x0d\x00\x00\x80\x3f" * 2, b"\x0d\x00\x00\x80\x3f"],
    INT64: [
        delimited(1, b"\x01\x7f\x80\x01"),
        b"\x08\x05\x08" + b"\xff" * 9 + b"\x01",
        b"\x08\x80\x01",
    ],
}


def nested(others: list[bytes], dice: random.Random) -> bytes:
    """A payload that is broken at one level, with good lengths around it and nothing behind.

    What runs past the end of that level runs past the end of the whole payload.
    """
    broken = dice.randrange(7)

    def level(number: int, content: bytes) -> bytes:
        return mutated(content, others, dice) if number == broken else content

    kind = dice.choice((BYTES, FLOAT, INT64))
    content = level(0, level(1, dice.choice(LISTS[kind])))
    content = level(2, delimited(kind, content))
    field = 1
    if dice.random() < 0.25:  # a step of a feature list
        content, field = level(3, delimited(1, content)), 2
    fields = [delimited(1, dice.choice(NAMES)), delimited(2, content)]
    if dice.random() < 0.2:
        fields.reverse()  # then the key is the last of all
    content = level(4, b"".join(fields))
    content = level(5, delimited(1, content))
    return level(6, delimited(field, content))


# ---- what must hold ----------------------------------------------------------------------------


def check_offsets(offsets: Array, limit: int) -> None:
    assert len(offsets)
    assert offsets[0] >= 0
    assert (np.diff(offsets) >= 0).all()
    assert offsets[-1] <= limit


def as_array(memory: Any, dtype: Any) -> Array:
    return np.frombuffer(memory, dtype) if len(memory) else np.empty(0, dtype)


def drive_scan(buffer: Array, dice: random.Random) -> Iterator[bytes]:
    """Scan with arrays of any size from anywhere; answers the payloads from the start."""
    capacity = dice.choice((0, 1, 3, 64))
    starts, lengths = np.empty(capacity, np.int64), np.empty(capacity + 2, np.int64)
    for start in (0, dice.randrange(-1, len(buffer) + 3)):
        checked = dice.random() < 0.7
        try:
            count, stop, code = wire_kernel.scan(buffer, start, starts, lengths, checked)
        except IndexError:
            assert start < 0 or start > len(buffer)
            continue
        assert 0 <= count <= capacity
        assert start <= stop <= len(buffer)
        assert (code == 0) <= (stop == len(buffer) or count == capacity)
        assert 0 <= code <= 4
        for at, length in zip(starts[:count].tolist(), lengths[:count].tolist(), strict=True):
            assert start + 12 <= at <= at + length <= stop - 4
            if start == 0:
                yield buffer[at : at + length].tobytes()


def drive_check(buffer: Array, dice: random.Random) -> None:
    """Counting finds what scanning finds; a header is one wherever it is found."""
    start = dice.randrange(len(buffer) + 1)
    frames, found = scan(buffer, start), check_frames(buffer, start)
    assert (len(frames.starts), frames.stop, frames.defect) == tuple(found)
    stop = dice.choice((len(buffer), start, dice.randrange(start, len(buffer) + 1)))
    end = dice.choice((0, len(buffer), 2**40, 2**63 - 1))
    place = wire_kernel.find_header(buffer, start, stop, end)
    assert start <= place <= stop
    if place < stop:
        header = buffer[place : place + 12].tobytes()
        assert place + 16 + int.from_bytes(header[:8], "little") <= end
        assert scan(header, check_payloads=False).defect is not Defect.LENGTH_CRC


def drive_gather(buffer: Array, dice: random.Random) -> None:
    """Gather frames or their payloads from where they are, and from where they are not."""
    whole = dice.random() < 0.5
    first, added = (0, 16) if whole else (12, 0)
    frames = scan(buffer)
    begins = [int(start) - 12 for start in frames.starts]
    ends = [int(s + n) + 4 for s, n in zip(frames.starts, frames.lengths, strict=True)]
    numbers = [dice.randrange(len(begins)) for _ in range(dice.randrange(9))] if begins else []
    begins, ends = [begins[n] for n in numbers], [ends[n] for n in numbers]
    if dice.random() < 0.5:
        for _ in range(dice.randrange(1, 4)):
            wild = dice.choice((-1, 0, 3, len(buffer), len(buffer) + 9, 2**62, -(2**63), 2**63 - 1))
            begins.append(dice.choice((wild, dice.randrange(len(buffer) + 1))))
            ends.append(dice.choice((wild, begins[-1] + dice.randrange(40), len(buffer))))
    sizes = [
        max(0, min(end - begin - 16, 1 << 16)) + added
        for begin, end in zip(begins, ends, strict=True)
    ]
    places = [sum(sizes[:n]) for n in range(len(sizes))]
    room = sum(sizes)
    if places and dice.random() < 0.3:
        places[dice.randrange(len(places))] = dice.choice((-1, room, 2**62, -(2**63)))
    out = exact(bytes(room)).copy()
    arrays = [np.array([wrapped(n) for n in column], np.int64) for column in (begins, ends, places)]
    try:
        count, code = wire_kernel.gather(buffer, *arrays, out, dice.random() < 0.7, whole)
    except IndexError:
        assert any(
            place < 0 or place + size > room for place, size in zip(places, sizes, strict=True)
        )
        return
    assert 0 <= count <= len(begins)
    assert (code == 0) == (count == len(begins))
    assert code in (0, 3, 4, 5)
    for begin, size, place in list(zip(begins, sizes, places, strict=True))[:count]:
        assert out[place : place + size].tobytes() == buffer[begin + first :][:size].tobytes()


def wrapped(number: int) -> int:
    """The number as 64 bits hold it."""
    return (number + 2**63) % 2**64 - 2**63


def drive_payload(data: bytes, counts: Counter[str]) -> None:
    """One payload, alone in its memory, through everything that takes one."""
    payload = exact(data)
    kind = payloads.classify(payload)
    assert 0 <= kind <= 4
    code, result = decoding.decode_example(payload)
    assert kind != EXAMPLE or code == GOOD  # readers agree
    if code == GOOD:
        starts, lengths = np.zeros(1, np.int64), np.array([len(data)], np.int64)
        survey = FeatureSurvey()
        assert survey.update(payload, starts, lengths, 1, lists=False) == 1
        assert {key.decode("utf-8", "surrogateescape") for key, *_ in survey.finish()} == set(
            result
        )
        counts["examples"] += 1
        check_features(result, len(data))
    else:
        counts["defects"] += 1
        assert code in (MALFORMED, NOT_AN_EXAMPLE)
        assert 0 <= result <= 4
    code, result = decoding.decode_sequence_example(payload)
    assert kind != SEQUENCE or code == GOOD
    if code == GOOD:
        counts["sequences"] += 1
        context, lists = result
        check_features(context, len(data))
        for steps in lists.values():
            assert len(steps) <= len(data)
            check_features(dict(enumerate(steps)), len(data))


def check_features(features: dict[Any, Any], size: int) -> None:
    total = 0
    for value in features.values():
        if isinstance(value, list):
            total += sum(map(len, value)) + len(value)
        else:
            assert value.dtype in (np.int64, np.float32)
            total += value.nbytes
    assert total <= 8 * size


DEFAULTS = [
    None,
    (struct.pack("<2q", 5, 6), b"", 2),
    (struct.pack("<2f", 0.5, 1.5), b"", 2),
    (b"abc", struct.pack("<2q", 1, 3), 2),
]


def drive_batch(payloads: list[bytes], dice: random.Random, counts: Counter[str]) -> None:
    """Several payloads in one block, the last at its very end, through the loops over many."""
    buffer = exact(b"".join(payloads))
    lengths = np.array([len(payload) for payload in payloads], np.int64)
    starts = np.cumsum([0, *lengths[:-1]]).astype(np.int64)
    if dice.random() < 0.05 and len(starts):  # what an index that lies would hand over
        row = dice.randrange(len(starts))
        broken = dice.choice((starts, lengths))
        broken[row] = dice.choice((-1, 2**63 - 1, -(2**63), len(buffer) + 1, 2**62))
    outside = any(
        start < 0 or length < 0 or start > len(buffer) or length > len(buffer) - start
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
    )
    calls = [
        lambda: drive_classes(buffer, starts, lengths),
        lambda: drive_survey(buffer, starts, lengths, dice),
        lambda: drive_submessages(buffer, starts, lengths, dice),
        lambda: drive_columns(buffer, starts, lengths, dice, counts),
        lambda: drive_rewriter(buffer, starts, lengths, dice, counts),
    ]
    for call in calls:
        try:
            call()
        except IndexError:
            assert outside
        else:
            assert not outside


def drive_classes(buffer: Array, starts: Array, lengths: Array) -> None:
    kinds = np.full(len(starts), 9, np.uint8)
    payloads.classify_many(buffer, starts, lengths, kinds)
    assert (kinds <= 4).all()


def drive_survey(buffer: Array, starts: Array, lengths: Array, dice: random.Random) -> None:
    limits = dice.choice(((), (), (3, 30, 2, 8), (1, 1, 0, 0)))
    survey = FeatureSurvey(*limits)
    kinds = np.full(len(starts), 9, np.uint8)
    survey.update_examples(buffer, starts, lengths, kinds)
    assert (kinds <= 4).all()
    for _ in range(2):
        field, lists = dice.choice(((1, False), (2, True), (1, True), (2, False)))
        counted = survey.update(buffer, starts, lengths, field, lists)
        assert 0 <= counted <= len(starts)
    is_complete, found = survey.settle(), survey.finish()
    if limits:
        assert len(found) <= limits[0 if is_complete else 2]
        assert sum(len(key) for key, *_ in found) <= limits[1] or not is_complete
    else:
        assert is_complete
    for key, kinds, contents, present, (low, high), steps, value_bytes, tensors in found:
        assert len(key) <= len(buffer)
        assert 0 < present <= 3 * len(starts)
        assert len(kinds) == 4
        assert len(contents) == 3
        assert (tensors is None) == (contents[0] == 0)
        assert 0 <= low <= high <= len(buffer) or present == 0
        assert 0 <= steps[1] <= len(buffer)
        assert 0 <= value_bytes <= 3 * len(buffer)


def drive_submessages(buffer: Array, starts: Array, lengths: Array, dice: random.Random) -> None:
    found = payloads.submessages(buffer, starts, lengths, dice.choice((1, 2, 3)))
    owners, inner_starts, inner_lengths = (as_array(memory, np.int64) for memory in found)
    assert len(owners) == len(inner_starts) == len(inner_lengths)
    for owner, start, length in zip(
        owners.tolist(), inner_starts.tolist(), inner_lengths.tolist(), strict=True
    ):
        assert starts[owner] <= start <= start + length <= starts[owner] + lengths[owner]


def drive_columns(
    buffer: Array, starts: Array, lengths: Array, dice: random.Random, counts: Counter[str]
) -> None:
    keys = dice.sample(list(KEYS), dice.choice((1, 2, 3, len(KEYS))))
    has_lists = dice.random() < 0.5
    kinds, required, defaults = [], [], []
    for key in keys:
        kind = dice.choice((0, KEYS[key], KEYS[key], KEYS[key], BYTES, FLOAT, INT64))
        with_default = kind and dice.random() < 0.3
        kinds.append(kind)
        defaults.append(
            {BYTES: DEFAULTS[3], FLOAT: DEFAULTS[2], INT64: DEFAULTS[1]}[kind]
            if with_default
            else None
        )
        required.append(2 if with_default else dice.choice((-1,) * 12 + (0, 1, 2)))
    are_borrowed = [default is None and dice.random() < 0.3 for default in defaults]
    have_validity = [dice.random() < 0.5 for _ in keys]
    fills_missing = all(kinds) and dice.random() < 0.5  # a fixed shape that is filled needs a kind
    are_in_steps = [has_lists and default is None and dice.random() < 0.7 for default in defaults]
    if dice.random() < 0.3:
        are_in_steps[-1] = False
        kinds[-1], required[-1], defaults[-1], are_borrowed[-1] = PRESENCE_ONLY, -1, None, False
    builder = ColumnBuilder(
        keys, kinds, required, defaults, are_borrowed, have_validity, are_in_steps, fills_missing
    )
    rows = 0
    for _ in range(dice.choice((1, 1, 2))):
        code, row, column, _, step = builder.append(buffer, starts, lengths)
        if code != GOOD:
            counts["column defects"] += 1
            assert 1 <= code <= 5
            assert 0 <= row < len(starts)
            assert 0 <= column < max(1, len(keys))
            assert step >= -1
            if dice.random() < 0.5:
                return  # the memory of a builder that failed is given back, too
            break
        rows += len(starts)
    else:
        counts["columns"] += len(keys)
    for is_borrowed, has_validity, in_steps, (
        kind, values, end_memory, split_memory, _, _, _, step_memory, validity
    ) in zip(are_borrowed, have_validity, are_in_steps, builder.finish(), strict=True):  # fmt: skip
        if code == GOOD:
            assert len(validity) in ((0, (rows + 7) // 8) if has_validity else (0,))
        if is_borrowed and kind == BYTES:
            spans = as_array(values, np.int64).reshape(-1, 2)
            assert ((spans[:, 0] >= 0) & (spans[:, 0] <= spans[:, 1])).all()
            assert (spans[:, 1] <= len(buffer)).all()
            counts["borrowed"] += 1
            continue
        item = {PRESENCE_ONLY: 1, 0: 1, BYTES: 1, FLOAT: 4, INT64: 8}[kind]
        assert len(values) % item == 0
        assert len(values) <= 8 * 2 * len(buffer) + 16 * max(1, rows + len(starts))
        splits = as_array(split_memory, np.int64)
        ends = as_array(end_memory, np.int64)
        check_offsets(ends, len(values))
        if code == GOOD:
            assert len(splits) == rows + 1
            value_count = len(ends) - 1 if kind == BYTES else len(values) // item
            steps = as_array(step_memory, np.int64)
            check_offsets(steps, value_count if in_steps else 0)
            check_offsets(splits, len(steps) - 1 if in_steps else value_count)
            counts["steps"] += len(steps) - 1


ACTIONS = (
    (False, None, -1, -1, -1),
    (True, None, -1, -1, -1),
    (False, delimited(1, b"new"), -1, -1, 0),
    (False, delimited(1, bytes(200)), 0, -1, 1),
    (False, None, 0, -1, -1),
    (False, None, 1, 1, -1),
    (False, None, -1, 0, -1),
)


def drive_rewriter(
    buffer: Array, starts: Array, lengths: Array, dice: random.Random, counts: Counter[str]
) -> None:
    """Other features, twice; what is made of an Example is an Example, if its values are."""
    added = dice.choice((b"", b"", delimited(1, delimited(1, b"added") + b"\x12\x00")))
    values = [b"", delimited(2, b""), delimited(2, delimited(INT64, LISTS[INT64][0])), bytes(1200)]
    are_values = dice.random() < 0.7
    answers: dict[Any, Any] = {}

    def action_of(key: bytes) -> int:
        assert len(key) <= len(buffer)
        return answers.setdefault(key, dice.randrange(len(ACTIONS)))  # type: ignore[no-any-return]

    def new_value_of(recoder: int, field: int, value: bytes) -> bytes:
        assert field in (1, 2)
        assert value[:1] != b"\n"
        if value not in answers:
            answers[value] = values[1] if are_values else dice.choice(values)
        return answers[value]  # type: ignore[no-any-return]

    most = dice.choice((2**31, 2**31, 100, 2**64 - 1))
    rewriter = Rewriter(
        list(ACTIONS), bytes((0, dice.randrange(2))), added, action_of, new_value_of, most
    )
    enough = dice.choice((0, 1, 100, 1 << 20))
    results = []
    for _ in range(2):
        first, pieces, code = 0, [], GOOD
        while first < len(starts) and code == GOOD:
            code, stop, data, offset_memory = rewriter.rewrite(
                buffer, starts, lengths, first, enough
            )
            offsets = as_array(offset_memory, np.int64)
            assert len(offsets) == stop - first + 1
            assert len(data) == offsets[-1]
            check_offsets(offsets, len(data))
            assert stop > first or code != GOOD
            pieces.append((first, stop, bytes(data), offsets.tolist()))
            first = stop
        assert rewriter.row == first
        results.append((code, pieces))
    assert results[0] == results[1]
    for row in range(first):
        payload = buffer[starts[row] : starts[row] + lengths[row]]
        assert payloads.classify(payload) in (EXAMPLE, SEQUENCE)
    if code == GOOD:
        counts["rewritten"] += len(starts)
    else:
        counts["not rewritten"] += 1
        payload = buffer[starts[first] : starts[first] + lengths[first]]
        is_one = payloads.classify(payload) in (EXAMPLE, SEQUENCE)
        assert code in ((CLASH, TOO_LONG) if is_one else (NOT_AN_EXAMPLE,))
    if are_values:
        for first, _, data, offsets in pieces:
            whole = exact(data)
            for row, (a, b) in enumerate(pairwise(offsets), first):
                before = buffer[starts[row] : starts[row] + lengths[row]]
                if payloads.classify(before) == EXAMPLE:
                    assert decoding.decode_example(whole[a:b])[0] in (GOOD, NOT_AN_EXAMPLE)


def random_splits(dice: random.Random, count: int, limit: int) -> Array:
    splits = [dice.randrange(limit + 1) for _ in range(count + 1)]
    if dice.random() < 0.8:
        splits.sort()
    if dice.random() < 0.2:
        splits[dice.randrange(count + 1)] = dice.choice((-1, limit + 1, 2**62, -(2**63), 2**63 - 1))
    return np.array(splits[: dice.choice((len(splits), len(splits), 0, 1))], np.int64)


def drive_encoders(data: bytes, dice: random.Random, counts: Counter[str]) -> None:
    """The way back, with values, ends and splits that may contradict each other."""
    row_count = dice.choice((0, 1, 2, 3, 7))
    columns: list[Any] = []
    for key in sorted(dice.sample(list(KEYS), dice.randrange(4))):
        kind = dice.choice((BYTES, FLOAT, INT64))
        starts = stops = splits = None
        length = dice.choice((-1, 0, 1, 2, 2**31))
        count = row_count * max(0, min(length, 2)) if dice.random() < 0.8 else dice.randrange(9)
        if kind == BYTES:
            values: Array = exact(data[: dice.randrange(64)])
            starts, stops = random_splits(dice, count, len(values)), np.empty(0, np.int64)
            if dice.random() < 0.9:
                starts, stops = starts[:-1], starts[1:]
        else:
            values = np.empty(count, np.int64 if kind == INT64 else np.float32)
            values.view(np.uint8)[:] = np.frombuffer(dice.randbytes(values.nbytes), np.uint8)
        if dice.random() < 0.5:
            splits = random_splits(dice, row_count, count)
        valid = None
        if dice.random() < 0.3:
            size = row_count if dice.random() < 0.9 else dice.randrange(9)
            valid = np.frombuffer(dice.randbytes(size), np.uint8) & 1
        columns.append((key, kind, values, starts, stops, splits, length, valid))
    room = dice.choice((None, 0, 9, 200, 5000))
    out = None if room is None else exact(bytes(room))
    try:
        memory, offsets = encoding.encode_columns(columns, row_count, out)
    except ValueError:
        counts["refused"] += 1
    else:
        counts["encoded"] += 1
        rows = as_array(memory, np.uint8)
        rows = rows[len(rows) - int(offsets[-1]) :]
        assert len(offsets) == row_count + 1
        check_offsets(offsets, len(rows))
        for row, (a, b) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
            code, features = decoding.decode_example(rows[a:b])
            assert code == GOOD
            assert len(features) == sum(valid is None or valid[row] for *_, valid in columns)
    drive_frames(data, dice, counts)


def drive_frames(data: bytes, dice: random.Random, counts: Counter[str]) -> None:
    buffer = exact(data[:200])
    offsets = random_splits(dice, dice.randrange(4), len(buffer))
    span = int(offsets[-1]) - int(offsets[0]) if len(offsets) else 0
    size = span + 16 * (len(offsets) - 1) + dice.choice((0, 0, 0, -1, 1, 16))
    out = np.empty(max(0, min(size, 1000)), np.uint8)
    try:
        wire_kernel.frame_slices(buffer, offsets, out)
    except ValueError:
        counts["refused"] += 1
    else:
        counts["encoded"] += 1
        assert scan(out).defect is None
    assert scan(wire_kernel.frame_list([buffer, b"", bytearray(data)])).defect is None


class Fuzz:
    """Files, single payloads and batches of them, by turns."""

    watches_memory = True
    reached = (
        "records",
        "examples",
        "sequences",
        "defects",
        "columns",
        "column defects",
        "encoded",
        "refused",
        "rewritten",
        "not rewritten",
    )

    def __init__(self, _: Path) -> None:
        self.last = b""
        self.payloads, self.files = payload_seeds(), corpus_files()

    def one(self, dice: random.Random, counts: Counter[str]) -> None:
        mode = dice.random()
        if mode < 0.12:
            data = self.last = mutated(dice.choice(self.files), self.files, dice)
            found = list(drive_scan(exact(data), dice))
            drive_check(exact(data), dice)
            drive_gather(exact(data), dice)
            counts["records"] += len(found)
            counts["files"] += 1
            for payload in found:
                drive_payload(payload, counts)
        elif mode < 0.2:
            self.last = dice.choice(self.payloads)
            drive_encoders(self.last, dice, counts)
        else:
            batch = [
                nested(self.payloads, dice)
                if dice.random() < 0.5
                else mutated(dice.choice(self.payloads), self.payloads, dice)
                for _ in range(dice.choice((1, 1, 1, 2, 4)))
            ]
            self.last = batch[-1]
            drive_payload(self.last, counts)
            if mode < 0.3:  # whole frames with good checksums, as a reader would see them
                framed = exact(b"".join(map(encode_record, batch)))
                counts["records"] += len(list(drive_scan(framed, dice)))
                drive_check(framed, dice)
                drive_gather(framed, dice)
            drive_batch(batch, dice, counts)
