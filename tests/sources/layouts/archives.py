"""Records and archives: TFRecord, TensorFlow Datasets, WebDataset, Parquet, tar and ZIP."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...reference import frames, messages
from .files import Folder, encoded, photo_pixels, pixel_digest, tar_bytes
from .layout import Reading, Record, layout, one


def _photo(root: Folder, name: str = "x.jpg") -> tuple[bytes, str]:
    """An image that is not a file, and the digest of its pixels."""
    data = encoded(photo_pixels(root.random()), name)
    return data, pixel_digest(data)


def _example(features: Mapping[str, Any]) -> bytes:
    example = messages().Example()
    for key, value in features.items():
        feature = example.features.feature[key]
        if isinstance(value, int):
            feature.int64_list.value.append(value)
        else:
            feature.bytes_list.value.append(value.encode() if isinstance(value, str) else value)
    return bytes(example.SerializeToString())


@layout()
def webdataset_shards(root: Folder) -> Reading:
    """train-000000.tar with 000000.jpg and 000000.cls."""
    splits = {}
    for split, short, shards in (("train", "train", 2), ("validation", "val", 1)):
        splits[split] = []
        for shard in range(shards):
            members = {}
            for number in range(3):
                data, digest = _photo(root)
                members[f"{shard}{number:05d}.jpg"] = data
                members[f"{shard}{number:05d}.cls"] = str(number).encode()
                splits[split].append(Record(digest, str(number)))
            root.data(f"{short}-{shard:06d}.tar", tar_bytes(members))
    root.lines("README.md", "# shards")
    return Reading(splits)


@layout()
def webdataset_of_captions(root: Folder) -> Reading:
    """img2dataset: 00000.tar with jpg, txt and json, next to its statistics and a Parquet file."""
    records, members = [], {}
    for number in range(4):
        data, digest = _photo(root)
        stem = f"00000000{number}"
        members |= {
            f"{stem}.jpg": data,
            f"{stem}.json": json.dumps(
                {"url": f"http://example.com/{number}", "status": "success"}
            ).encode(),
            f"{stem}.txt": f"caption {number}".encode(),
        }
        records.append(Record(digest, values={"txt": f"caption {number}"}))
    root.data("00000.tar", tar_bytes(members))
    root.json("00000_stats.json", {"count": 4, "successes": 4})
    out = io.BytesIO()
    pq.write_table(pa.table({"url": [f"http://example.com/{n}" for n in range(4)]}), out)
    root.data("00000.parquet", out.getvalue())
    return one(records)


@layout(loud_is_fine=True)
def tar_of_class_folders(root: Folder) -> Reading:
    """flowers.tar with flowers/daisy/1.jpg: no WebDataset; the classes must not get lost."""
    records, members = [], {}
    for name in ("daisy", "rose"):
        for number in (1, 2, 3):
            members[f"flowers/{name}/{number}.jpg"], digest = _photo(root)
            records.append(Record(digest, name))
    root.data("flowers.tar", tar_bytes(members))
    return one(records)


@layout(loud_is_right=True, loud_words=("zip", "ZIP", "unpack", "extract"))
def only_zip_files(root: Folder) -> None:
    """train.zip and test.zip as downloaded: to be unpacked first."""
    for name in ("train", "test"):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for number in (1, 2):
                archive.writestr(f"{name}/cat.{number}.jpg", _photo(root)[0])
        root.data(f"{name}.zip", out.getvalue())
    root.csv("sample_submission.csv", "id,label", (1, 0), (2, 0))


@layout(loud_is_fine=True)
def tfrecord_shards(root: Folder) -> Reading:
    """train-00000-of-00002, without a suffix, as the scripts of TensorFlow write."""
    splits = {}
    for split, shards in (("train", 2), ("validation", 1)):
        splits[split] = []
        for shard in range(shards):
            payloads = []
            for number in range(3):
                data, digest = _photo(root)
                features = {
                    "image/encoded": data,
                    "image/format": "JPEG",
                    "image/class/label": number,
                    "image/class/text": f"class {number}",
                }
                payloads.append(_example(features))
                splits[split].append(Record(digest, f"class {number}"))
            root.data(f"{split}-{shard:05d}-of-{shards:05d}", frames(payloads))
    return Reading(splits)


@layout()
def tfrecord_of_kaggle(root: Folder) -> Reading:
    """train00-3.tfrec, with the number of records in the name."""
    splits = {}
    for split, count in (("train", 3), ("test", 2)):
        payloads, splits[split] = [], []
        for number in range(count):
            data, digest = _photo(root)
            values = {"image_name": f"{split}{number}", "target": number % 2}
            payloads.append(_example({"image": data, **values}))
            splits[split].append(Record(digest, values=values))
        root.data(f"{split}00-{count}.tfrec", frames(payloads))
    return Reading(splits)


@layout()
def tensorflow_datasets_folder(root: Folder) -> Reading:
    """cats_dogs/1.0.0 with dataset_info.json, features.json and label.labels.txt."""
    below = "cats_dogs/1.0.0"
    names = ("cat", "dog")
    splits, infos = {}, []
    for split, count in (("train", 4), ("test", 2)):
        payloads, splits[split] = [], []
        for number in range(count):
            data, digest = _photo(root, "x.png")
            payloads.append(
                _example({"image": data, "label": number % 2, "id": f"{split}{number}"})
            )
            splits[split].append(Record(digest, names[number % 2]))
        root.data(f"{below}/cats_dogs-{split}.tfrecord-00000-of-00001", frames(payloads))
        infos.append(
            {
                "name": split,
                "shardLengths": [str(count)],
                "numBytes": "1000",
                "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
            }
        )
    python = "tensorflow_datasets.core.features"
    features = {
        "image": {
            "pythonClassName": f"{python}.image_feature.Image",
            "image": {
                "shape": {"dimensions": ["-1", "-1", "3"]},
                "dtype": "uint8",
                "encodingFormat": "png",
            },
        },
        "label": {
            "pythonClassName": f"{python}.class_label_feature.ClassLabel",
            "classLabel": {"numClasses": "2"},
        },
        "id": {
            "pythonClassName": f"{python}.text_feature.Text",
            "text": {},
        },
    }
    document = {
        "pythonClassName": f"{python}.features_dict.FeaturesDict",
        "featuresDict": {"features": features},
    }
    root.json(f"{below}/features.json", document)
    root.lines(f"{below}/label.labels.txt", *names)
    info = {"name": "cats_dogs", "version": "1.0.0", "fileFormat": "tfrecord", "splits": infos}
    root.json(f"{below}/dataset_info.json", info)
    return Reading(splits, label_column="label")


def _hugging_face(splits: Mapping[str, int], root: Folder, name: str) -> Reading:
    """Parquet with an image as a struct of bytes and path, and class names in the metadata."""
    names = ("cat", "dog")
    features = {
        "image": {"_type": "Image"},
        "label": {"names": names, "_type": "ClassLabel"},
    }
    readings = {}
    for split, count in splits.items():
        images, readings[split] = [], []
        for number in range(count):
            data, digest = _photo(root)
            images.append({"bytes": data, "path": f"{number}.jpg"})
            readings[split].append(Record(digest, names[number % 2]))
        kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
        table = pa.table({"image": pa.array(images, kind), "label": [n % 2 for n in range(count)]})
        document = json.dumps({"info": {"features": features}})
        out = io.BytesIO()
        pq.write_table(table.replace_schema_metadata({"huggingface": document}), out)
        root.data(name.format(split=split), out.getvalue())
    lines = "---\ndataset_info:\n  features:\n  - name: image\n    dtype: image\n---\n"
    root.text("README.md", lines)
    root.text(".gitattributes", "*.parquet filter=lfs\n")
    return Reading(readings, class_names=names, label_column="label")


@layout()
def hugging_face_parquet(root: Folder) -> Reading:
    """A clone of a dataset of the Hub: data/train-00000-of-00001.parquet."""
    return _hugging_face({"train": 5, "test": 3}, root, "data/{split}-00000-of-00001.parquet")


@layout(loud_is_fine=True)
def hugging_face_parquet_by_configuration(root: Folder) -> Reading:
    """plain_text/train-….parquet: a folder named like the configuration."""
    return _hugging_face(
        {"train": 4, "test": 2}, root, "plain_text/{split}-00000-of-00001-e7dfc4.parquet"
    )


@layout()
def parquet_of_rows(root: Folder) -> Reading:
    """part-0.parquet and part-1.parquet, and a _SUCCESS of Spark."""
    records = []
    for part in (0, 1):
        ids, names = [part * 3 + n for n in range(3)], [f"name {part}{n}" for n in range(3)]
        out = io.BytesIO()
        pq.write_table(pa.table({"id": ids, "name": names}), out)
        root.data(f"part-{part:05d}-c000.snappy.parquet", out.getvalue())
        records += [
            Record(None, values={"id": i, "name": n}) for i, n in zip(ids, names, strict=True)
        ]
    root.data("_SUCCESS", b"")
    return one(records)
