"""A URL in a file from somebody else is never followed: not in a table, a list or a manifest."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.support.errors import SourceError

from ..raising import raises
from .conftest import Run

pytest.importorskip("obstore")

BOX = {"bbox": [1, 1, 2, 2], "category_id": 1, "image_id": 1, "id": 1, "area": 4, "iscrowd": 0}
VOC = """<annotation><folder>{url}</folder><filename>{url}</filename><path>{url}</path>
<size><width>8</width><height>8</height><depth>3</depth></size><object><name>a</name>
<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></object></annotation>"""
CVAT = """<annotations><version>1.1</version><image id="0" name="{url}" width="8" height="8">
<box label="a" xtl="1" ytl="1" xbr="2" ybr="2"/></image></annotations>"""
SHAPE = {"label": "a", "points": [[1, 1], [2, 2]], "shape_type": "rectangle"}
LABELME = {"version": "5", "shapes": [SHAPE], "imageHeight": 8, "imageWidth": 8, "imageData": None}


class Server:
    """A server that has an image at every address, and counts who asks."""

    def __init__(self) -> None:
        self.requests: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(handler: BaseHTTPRequestHandler) -> None:
                self.requests.append(handler.path)
                handler.send_response(200)
                handler.send_header("Content-Length", "3")
                handler.send_header("Last-Modified", "Mon, 23 Nov 2026 05:00:00 GMT")
                handler.end_headers()
                if handler.command == "GET":
                    handler.wfile.write(b"GIF")

            do_HEAD = do_PUT = do_GET

            def log_message(handler, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    running = Server()
    monkeypatch.setenv("AWS_ENDPOINT_URL", running.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    yield running
    running.server.shutdown()
    running.server.server_close()


def text(name: str, content: str) -> Callable[[Path, str], None]:
    """A file in which {url} is an address."""

    def write(folder: Path, url: str) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content.replace("{url}", url), "utf-8")

    return write


def image(name: str) -> Callable[[Path, str], None]:
    def write(folder: Path, _: str) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8)).save(path)

    return write


def coco(**of_image: Any) -> str:
    sized = {"id": 1, "width": 8, "height": 8, **of_image}
    categories = [{"id": 1, "name": "a"}]
    return json.dumps({"images": [sized], "annotations": [BOX], "categories": categories})


LAYOUTS: dict[str, list[Callable[[Path, str], None]]] = {
    "csv": [text("t.csv", "image,label\n{url},a\n"), image("ok.jpg")],
    "jsonl": [text("t.jsonl", '{"image": "{url}", "label": 1}\n'), image("ok.jpg")],
    "metadata.csv": [text("metadata.csv", "file_name,label\n{url},a\n"), image("ok.jpg")],
    "coco": [text("annotations.json", coco(file_name="{url}")), image("ok.jpg")],
    "coco_url": [
        text("annotations.json", coco(file_name="gone.jpg", coco_url="{url}", flickr_url="{url}")),
        image("ok.jpg"),
    ],
    "yolo": [
        text("data.yaml", "path: {url}\ntrain: {url}\nval: {url}\nnc: 1\nnames: ['a']\n"),
        text("labels/a.txt", "0 .5 .5 .1 .1\n"),
    ],
    "yolo list": [
        text("data.yaml", "train: train.txt\nnc: 1\nnames: ['a']\n"),
        text("train.txt", "{url}\n"),
        text("labels/a.txt", "0 .5 .5 .1 .1\n"),
    ],
    "voc": [text("Annotations/a.xml", VOC), image("JPEGImages/b.jpg")],
    "labelme": [text("a.json", json.dumps({**LABELME, "imagePath": "{url}"})), image("b.jpg")],
    "cvat": [text("annotations.xml", CVAT), image("ok.jpg")],
    "csv boxes": [
        text("a.csv", "filename,width,height,class,xmin,ymin,xmax,ymax\n{url},8,8,a,1,1,2,2\n"),
        image("ok.jpg"),
    ],
    "csv of paths": [text("t.csv", "{url},1,1,2,2,a\n"), image("ok.jpg")],
}


def test_an_address_that_the_user_passes_is_followed(server: Server, run: Run) -> None:
    for url in (f"{server.url}/x.tfrecord", "s3://bucket/x.tfrecord"):
        run("inspect", url)
        assert server.requests
        server.requests.clear()


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("scheme", ["http", "s3"])
def test_an_address_in_a_source(
    server: Server, run: Run, tmp_path: Path, name: str, scheme: str
) -> None:
    url = f"{server.url}/a.jpg" if scheme == "http" else "s3://bucket/a.jpg"
    for write in LAYOUTS[name]:
        write(tmp_path / "in", url)
    options = ["--image-column", "image"] if name in ("csv", "jsonl") else []
    run("detect", tmp_path / "in")
    run("lint", tmp_path / "in", *options)
    for skipping in ([], ["--skip-errors"]):
        outcome = run("pack", tmp_path / "in", tmp_path / "out", *options, *skipping)
        assert outcome.code != 0
    assert server.requests == []


def test_an_address_instead_of_the_bytes_of_an_image(server: Server, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for url in (f"{server.url}/a.jpg", "s3://bucket/a.jpg"):
        images = pa.array([{"bytes": None, "path": url}])
        parquet.write_table(pa.table({"image": images}), tmp_path / "t.parquet")
        with raises(SourceError):
            rs.pack(rs.Table(tmp_path / "t.parquet", image_column="image"), tmp_path / "out")
    assert server.requests == []


@pytest.mark.parametrize("name", ["http", "s3", "absolute", "above"])
def test_a_manifest_that_names_files_elsewhere(
    server: Server, run: Run, tmp_path: Path, name: str
) -> None:
    rs.pack(rs.Rows([{"id": 1}]), tmp_path / "out")
    names = {
        "http": f"{server.url}/x.tfrecord",
        "s3": "s3://bucket/x.tfrecord",
        "absolute": "/etc/hostname",
        "above": "../x.tfrecord",
    }
    manifest = tmp_path / "out" / "dataset.json"
    document = json.loads(manifest.read_text())
    document["splits"]["train"][0]["file"] = names[name]
    manifest.write_text(json.dumps(document))
    for command in ("inspect", "verify", "stats", "head"):
        assert run(command, tmp_path / "out").code != 0
    assert server.requests == []
