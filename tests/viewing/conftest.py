"""Datasets that are viewed, and a client of a running viewer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.dataset import LABELS_NAME, labels_to_bytes

from ..images import encode, smooth

httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


class Client:
    """Asks a viewer, with its cookie."""

    def __init__(self, viewer: Any) -> None:
        self.viewer = viewer
        address = urlsplit(viewer.url)
        self.host = address.netloc
        self.path = address.path.strip("/")
        self.token = address.query.removeprefix("token=")
        self.address = f"http://{self.host}/{self.path}/"
        self.http = httpx.Client(base_url=self.address, timeout=60)
        assert self.http.get(viewer.url).status_code == 200

    def get(self, path: str, **query: Any) -> Any:
        return self.http.get(path, params=query or None)

    def json(self, path: str, **query: Any) -> Any:
        response = self.get(path, **query)
        assert response.status_code == 200, response.text
        return response.json()

    def poll(self, path: str, **query: Any) -> Any:
        """Ask until the answer is complete."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            answer = self.json(path, **query)
            if answer.get("is_complete", answer.get("state") not in (None, "running")):
                return answer
            time.sleep(0.01)
        raise AssertionError(answer)

    def tiles(self, **query: Any) -> list[dict[str, Any]]:
        response = self.get("/api/tiles", **query)
        assert response.status_code == 200, response.text
        return [json.loads(line) for line in response.text.splitlines()]


@pytest.fixture
def open_viewer() -> Iterator[Callable[..., Client]]:
    """Run the viewer of paths or a Dataset, and return a client of it."""
    clients: list[Client] = []

    def run(*arguments: Any, **options: Any) -> Client:
        clients.append(Client(rs.view(*arguments, **options)))
        return clients[-1]

    yield run
    for client in clients:
        client.http.close()
        client.viewer.close()


def write(path: Path, examples: list[Any]) -> Path:
    """Write Examples, or payloads as they are, to a file."""
    with rs.ShardWriter(path) as writer:
        for example in examples:
            writer.write(example if isinstance(example, bytes) else rs.encode_example(example))
    return path


def flower(number: int) -> dict[str, Any]:
    """An example with an image, a class, a mask and a box."""
    mask = np.zeros((24, 32), np.uint8)
    mask[4:20, 8:24] = number % 3 + 1
    box = {"ymin": 0.25, "xmin": 0.125, "ymax": 0.75, "xmax": 0.5}
    return {
        "image/encoded": encode(smooth(320, 240), "JPEG"),
        "image/filename": f"flower {number}.jpg",
        "image/class/label": number % 3,
        "image/width": 300 + number,
        "image/segmentation/class/encoded": encode(Image.fromarray(mask), "PNG"),
        **{f"image/object/bbox/{side}": [value] for side, value in box.items()},
        "image/object/class/label": [number % 3],
        "image/object/class/text": [["daisy", "rose", "tulip"][number % 3]],
    }


@pytest.fixture
def flowers(tmp_path: Path) -> Path:
    """A folder with two splits, of 20 and 4 examples, and class names."""
    folder = tmp_path / "flowers"
    folder.mkdir()
    write(folder / "train-00000-of-00001.tfrecord", [flower(number) for number in range(20)])
    write(folder / "validation-00000-of-00001.tfrecord", [flower(number) for number in range(4)])
    (folder / LABELS_NAME).write_bytes(labels_to_bytes(("daisy", "rose", "tulip")))
    return folder
