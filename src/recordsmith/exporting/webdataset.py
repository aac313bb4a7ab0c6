"""WebDataset: tar files whose members belong together by the name before their first dot.

    <split>-000000.tar, <split>-000001.tar, …, each with
    <key>.jpg        the picture, with the suffix of its format
    <key>.mask.png   its mask
    <key>.cls        its label
    <key>.json       every other feature

In the JSON a feature with one value is that value, any other a list; bytes that are no UTF-8 are
`{"base64": …}`; NaN and infinities are as Python writes and reads them. The same records give the
same bytes: members have no owner and no time.
"""

from __future__ import annotations

import base64
import io
import json
import tarfile
from typing import Any, BinaryIO

import numpy as np

from recordsmith.dataset import Dataset
from recordsmith.errors import OptionError
from recordsmith.example import Features, FeatureValue
from recordsmith.example.keys import CLASS_LABEL, DEPTH, DTYPE, FORMAT, HEIGHT, PICTURE, WIDTH
from recordsmith.exporting.numbers import shortest_float
from recordsmith.exporting.outbox import Outbox
from recordsmith.exporting.pictures import MASK_KEYS, read_mask, read_picture
from recordsmith.exporting.values import has

SHARD_SIZE_BYTES = 256_000_000
_FROM_PICTURE = frozenset((PICTURE, FORMAT, HEIGHT, WIDTH))
_FROM_RAW = frozenset((DEPTH, DTYPE))
_MEMBER_BYTES = 1024  # a header, and about as much to fill blocks up


class WebDatasetShards:
    """Writes tar files of about one size."""

    def __init__(self, shard_size_bytes: int = SHARD_SIZE_BYTES) -> None:
        if shard_size_bytes < 1:
            raise OptionError(f"a shard of {shard_size_bytes} bytes cannot be; expected 1 or more")
        self._shard_size_bytes = shard_size_bytes

    def begin(self, dataset: Dataset, out: Outbox) -> None:
        self._out = out
        self._shards: dict[str, _Shard] = {}

    def add(self, example: Features, split: str, position: int) -> None:
        out = self._out
        members: list[tuple[str, bytes]] = []
        rest = dict(example)
        if has(example, PICTURE):
            picture = read_picture(example, out.tell)
            members.append((picture.split_name("x")[1], picture.data))
            is_raw = picture.data is not example[PICTURE][0]
            for key in _FROM_PICTURE | (_FROM_RAW if is_raw else frozenset()):
                rest.pop(key, None)
            mask = read_mask(example, picture, out.tell)
            if mask is not None:
                members.append((".mask" + mask.split_name("x")[1], mask.data))
                for key in MASK_KEYS:
                    rest.pop(key, None)
        label = rest.get(CLASS_LABEL)
        if isinstance(label, np.ndarray) and label.dtype == np.int64 and len(label) == 1:
            members.append((".cls", str(int(rest.pop(CLASS_LABEL)[0])).encode()))
        if rest or not members:
            members.append((".json", _document(rest)))
        folder = out.split_name(split)
        name = out.name_key(example, f"{folder}.tar")
        self._shard(split, folder, sum(len(data) + _MEMBER_BYTES for _, data in members)).add(
            [(name + suffix, data) for suffix, data in members]
        )

    def finish(self) -> None:
        for shard in self._shards.values():
            shard.close()

    def _shard(self, split: str, folder: str, size_bytes: int) -> _Shard:
        """The shard that so many more bytes go to."""
        shard = self._shards.get(split)
        if shard is None or shard.size_bytes + size_bytes > self._shard_size_bytes:
            if shard is not None:
                shard.close()
            number = 0 if shard is None else shard.number + 1
            self._shards[split] = _Shard(self._out, f"{folder}-{number:06d}.tar", number)
        return self._shards[split]


class _Shard:
    """One tar file."""

    def __init__(self, out: Outbox, name: str, number: int) -> None:
        self.number = number
        self._out = out
        self._name = name
        self._file: BinaryIO = out.open(name)
        self._tar = tarfile.open(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115

    @property
    def size_bytes(self) -> int:
        return self._tar.offset

    def add(self, members: list[tuple[str, bytes]]) -> None:
        for name, data in members:
            member = tarfile.TarInfo(name)  # no owner, time 0, mode 644
            member.size = len(data)
            self._tar.addfile(member, io.BytesIO(data))

    def close(self) -> None:
        self._tar.close()
        self._out.close(self._name)


def _document(features: Features) -> bytes:
    document = {key: _value(features[key]) for key in sorted(features)}
    return json.dumps(document, ensure_ascii=True).encode()


def _value(value: FeatureValue) -> Any:
    values = [_item(item) for item in value]
    return values[0] if len(values) == 1 else values


def _item(item: Any) -> Any:
    if isinstance(item, bytes):
        try:
            return item.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(item).decode()}
    return int(item) if isinstance(item, np.integer) else shortest_float(item)
