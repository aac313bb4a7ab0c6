"""What a decoded example shows of itself."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import ModuleType

import numpy as np

import recordsmith as rs


def test_the_repr_of_an_example_shortens_bytes(tmp_path: Path, images: ModuleType) -> None:
    example = {
        "image": images.jpeg(0, 12, 8),
        "raw": bytes(range(200)),
        "text": "words " * 50,
        "short": ["a", "b"],
        "many": [str(n) for n in range(1000)],
        "label": 3,
    }
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_example(example)
    found = rs.open(tmp_path / "a.tfrecord")[0]
    text = repr(found)
    assert len(text) < 600
    assert "<jpeg image, 12x8, " in text
    assert "<200 bytes: 00 01 02 " in text
    assert "'short': [b'a', b'b']" in text
    assert "'label': array([3])" in text
    assert "… 1,000 values" in text
    again = pickle.loads(pickle.dumps(found))
    for value in (found, again):
        assert isinstance(value, dict)
        assert value["raw"] == [example["raw"]]
        assert np.array_equal(value["label"], [3])
