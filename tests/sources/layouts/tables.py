"""Tables: lists of images with their classes, and rows without images."""

from __future__ import annotations

import json
from collections.abc import Sequence

from .files import Folder
from .layout import Reading, Record, layout, one


@layout()
def kaggle_image_id_without_suffix(root: Folder) -> list[Reading]:
    """Plant pathology: train.csv with image_id and a column for each class, all in images/."""
    columns = ("healthy", "multiple_diseases", "rust", "scab")
    train, rows = [], []
    for number in range(6):
        hot = [int(number % 4 == place) for place in range(4)]
        image = root.photo(f"images/Train_{number}.jpg")
        train.append(Record(image, values=dict(zip(columns, hot, strict=True))))
        rows.append((f"Train_{number}", *hot))
    root.csv("train.csv", ",".join(("image_id", *columns)), *rows)
    test = [Record(root.photo(f"images/Test_{number}.jpg")) for number in range(2)]
    root.csv("test.csv", "image_id", ("Test_0",), ("Test_1",))
    root.csv("sample_submission.csv", ",".join(("image_id", *columns)), ("Test_0", *[0.25] * 4))
    return [
        one(train).mentioning("test", count=2),
        Reading({"train": train, "test": test}),
    ]


@layout()
def kaggle_cassava(root: Folder) -> list[Reading]:
    """train.csv with image_id and label, train_images/, test_images/, names of labels as JSON."""
    names = {"0": "Cassava Bacterial Blight (CBB)", "1": "Healthy"}
    train, rows = [], []
    for number in range(6):
        image = root.photo(f"train_images/100001{number}.jpg")
        train.append(Record(image, str(number % 2)))
        rows.append((f"100001{number}.jpg", number % 2))
    root.csv("train.csv", "image_id,label", *rows)
    root.json("label_num_to_disease_map.json", names)
    test = [Record(root.photo("test_images/2216849948.jpg"))]
    root.csv("sample_submission.csv", "image_id,label", ("2216849948.jpg", 4))
    named = [Record(record.image, names[str(record.label)]) for record in train]
    return [
        reading
        for records in (train, named)
        for reading in (
            one(records, label_column="label").mentioning("test_images", count=1),
            Reading({"train": records, "test": test}, label_column="label"),
        )
    ]


@layout()
def kaggle_id_label_with_train_folder(root: Folder) -> list[Reading]:
    """CIFAR-10 on Kaggle: trainLabels.csv with id and label, train/1.png, test/1.png."""
    names = ("frog", "truck", "truck", "deer")
    train = [Record(root.photo(f"train/{n}.png"), name) for n, name in enumerate(names, 1)]
    root.csv("trainLabels.csv", "id,label", *enumerate(names, 1))
    test = [Record(root.photo(f"test/{n}.png")) for n in (1, 2, 3)]
    root.csv("sampleSubmission.csv", "id,label", (1, "cat"), (2, "cat"), (3, "cat"))
    return [
        one(train, label_column="label").mentioning("test", count=3),
        Reading({"train": train, "test": test}, label_column="label"),
    ]


@layout()
def dog_breeds(root: Folder) -> list[Reading]:
    """labels.csv with id and breed; the ids are hashes, without a suffix."""
    names = ("boston_bull", "dingo", "pekinese", "dingo")
    train, rows = [], []
    for number, name in enumerate(names):
        train.append(Record(root.photo(f"train/000bec180eb18c760460{number}.jpg"), name))
        rows.append((f"000bec180eb18c760460{number}", name))
    root.csv("labels.csv", "id,breed", *rows)
    test = [Record(root.photo(f"test/0a0b97441050bba8e7{n}.jpg")) for n in range(2)]
    root.csv(
        "sample_submission.csv",
        "id,boston_bull,dingo,pekinese",
        ("0a0b97441050bba8e70", 0.3, 0.3, 0.3),
    )
    return [
        one(train, label_column="breed").mentioning("test", count=2),
        Reading({"train": train, "test": test}, label_column="breed"),
    ]


@layout()
def id_and_label_next_to_images(root: Folder) -> Reading:
    """labels.csv and images/: nothing else."""
    names = ("a", "b", "a", "b", "c")
    records = [Record(root.photo(f"images/{n}.png"), name) for n, name in enumerate(names)]
    root.csv("labels.csv", "id,label", *enumerate(names))
    return one(records, label_column="label")


@layout()
def csv_of_excel_in_german(root: Folder) -> Reading:
    """With a byte order mark, semicolons, and names of columns that no list has."""
    names = ("Käfer", "Ameise", "Käfer", "Biene")
    records = [Record(root.photo(f"Bilder/foto{n}.jpg"), name) for n, name in enumerate(names)]
    rows = [f"foto{n}.jpg;{name}" for n, name in enumerate(names)]
    root.text("Liste.csv", "\r\n".join(["Datei;Klasse", *rows, ""]), encoding="utf-8-sig")
    return one(records, label_column="Klasse")


@layout()
def csv_with_paths_of_windows(root: Folder) -> Reading:
    names = ("cat", "dog", "cat", "dog")
    records = [Record(root.photo(f"images/{n}.jpg"), name) for n, name in enumerate(names)]
    root.csv(
        "dataset.csv", "path,label", *((f"images\\{n}.jpg", name) for n, name in enumerate(names))
    )
    return one(records, label_column="label")


@layout()
def csv_with_relative_paths(root: Folder) -> Reading:
    """annotations.csv with image_path, and images in folders that are no classes."""
    names = ("happy", "sad", "sad", "happy")
    records, rows = [], []
    for number, name in enumerate(names):
        path = f"imgs/batch_{number % 2}/{number}.jpeg"
        records.append(Record(root.photo(path), name, values={"age": 20 + number}))
        rows.append((path, name, 20 + number))
    root.csv("annotations.csv", "image_path,emotion,age", *rows)
    return one(records, label_column="emotion")


@layout(loud_is_fine=True)
def csv_with_orphans(root: Folder) -> Reading:
    """One row whose image is missing, and one image without a row: both must be mentioned."""
    records = [Record(root.photo(f"images/{n}.jpg"), "ab"[n % 2]) for n in range(5)]
    rows = [(f"{n}.jpg", "ab"[n % 2]) for n in range(5)]
    root.csv("labels.csv", "filename,label", *rows, ("absent.jpg", "a"))
    root.photo("images/unlisted.jpg")
    return (
        one(records, label_column="label")
        .mentioning("absent")
        .mentioning("unlisted", "no row", "without a row")
    )


@layout()
def ham10000(root: Folder) -> Reading:
    """Images in two folders, their classes in a CSV file, and the same images as rows of pixels."""
    records, rows = [], []
    for number, name in enumerate(("bkl", "nv", "mel", "nv", "bkl")):
        stem = f"ISIC_002741{number}"
        records.append(
            Record(root.photo(f"HAM10000_images_part_{1 + number // 3}/{stem}.jpg"), name)
        )
        rows.append((f"HAM_000011{number}", stem, name, "histo", 80.0, "male", "scalp"))
    root.csv("HAM10000_metadata.csv", "lesion_id,image_id,dx,dx_type,age,sex,localization", *rows)
    pixels = [[n * 7 % 256 for n in range(5)] for _ in range(5)]
    root.csv("hmnist_8_8_L.csv", "pixel0000,pixel0001,pixel0002,pixel0003,label", *pixels)
    return one(records, label_column="dx")


@layout()
def celeba(root: Folder) -> Reading:
    """img_align_celeba/000001.jpg and attributes of 1 and -1, as CSV files on Kaggle."""
    splits: dict[str, list[Record]] = {"train": [], "validation": [], "test": []}
    attributes, parts = [], []
    for number in range(1, 7):
        name = f"{number:06d}.jpg"
        smiling, young = 1 - 2 * (number % 2), 1
        image = root.photo(f"img_align_celeba/img_align_celeba/{name}")
        part = (number - 1) // 2
        labels = ("Smiling", "Young") if smiling > 0 else ("Young",)
        splits[[*splits][part]].append(Record(image, labels=labels))
        attributes.append((name, smiling, young))
        parts.append((name, part))
    root.csv("list_attr_celeba.csv", "image_id,Smiling,Young", *attributes)
    root.csv("list_eval_partition.csv", "image_id,partition", *parts)
    return Reading(splits)


def _imagefolder(
    root: Folder, below: str, numbers: Sequence[int]
) -> tuple[list[Record], list[dict[str, object]]]:
    records, rows = [], []
    for number in numbers:
        text = f"image number {number}"
        values = {"image/caption": text}
        records.append(Record(root.photo(f"{below}{number:04d}.png"), values=values))
        rows.append({"file_name": f"{number:04d}.png", "text": text})
    return records, rows


@layout()
def imagefolder_metadata_csv_in_splits(root: Folder) -> Reading:
    """Hugging Face: train/metadata.csv and test/metadata.csv next to the images."""
    root.text("README.md", "---\nlicense: cc0-1.0\n---\n")
    splits = {}
    for split, numbers in (("train", range(4)), ("test", range(10, 12))):
        splits[split], rows = _imagefolder(root, f"{split}/", numbers)
        root.csv(f"{split}/metadata.csv", "file_name,text", *(tuple(row.values()) for row in rows))
    return Reading(splits)


@layout()
def imagefolder_metadata_jsonl(root: Folder) -> Reading:
    records, rows = _imagefolder(root, "", range(5))
    root.lines("metadata.jsonl", *map(json.dumps, rows))
    root.text(".gitattributes", "*.png filter=lfs\n")
    return one(records)


@layout()
def imagefolder_classes_below_data(root: Folder) -> Reading:
    """Hugging Face: data/train/cat/1.jpg."""
    root.text("README.md", "---\nlicense: cc0-1.0\n---\n")
    return Reading(
        {
            split: [
                Record(root.photo(f"data/{split}/{name}/{n}.jpg"), name)
                for name in ("cat", "dog")
                for n in (1, 2)
            ]
            for split in ("train", "test")
        }
    )


@layout()
def captions_in_json_lines(root: Folder) -> Reading:
    """captions.jsonl with paths in `image`."""
    records, lines = [], []
    for number in range(5):
        path = f"images/{number}.jpg"
        records.append(Record(root.photo(path), values={"image/caption": f"a photo of {number}"}))
        lines.append(json.dumps({"image": path, "caption": f"a photo of {number}"}))
    root.lines("captions.jsonl", *lines)
    return one(records)


@layout(loud_is_fine=True)
def conversations_about_images(root: Folder) -> Reading:
    """LLaVA: a JSON list with conversations, which is not a table; the images alone lack them."""
    records, entries = [], []
    for number in range(5):
        records.append(Record(root.photo(f"train2017/{number:012d}.jpg")))
        turns = [{"from": "human", "value": "<image>\nWhat?"}, {"from": "gpt", "value": "A cat."}]
        entries.append({"id": str(number), "image": f"{number:012d}.jpg", "conversations": turns})
    root.json("llava_instruct.json", entries)
    return one(records).mentioning("llava_instruct")


@layout()
def only_a_table(root: Folder) -> Reading:
    """iris.csv: rows without images."""
    columns = ("sepal_length", "petal_width", "species")
    rows = [(5.1, 0.2, "setosa"), (7.0, 1.4, "versicolor"), (6.3, 2.5, "virginica")]
    root.csv("iris.csv", ",".join(columns), *rows)
    root.lines("README.md", "# Iris")
    return one(Record(None, values=dict(zip(columns, row, strict=True))) for row in rows)


@layout(loud_is_fine=True)
def titanic(root: Folder) -> list[Reading]:
    """train.csv, test.csv without the target, and gender_submission.csv."""
    train = [(1, 0, 3, "male"), (2, 1, 1, "female"), (3, 1, 3, "female")]
    test = [(4, 3, "male"), (5, 2, "female")]
    root.csv("train.csv", "PassengerId,Survived,Pclass,Sex", *train)
    root.csv("test.csv", "PassengerId,Pclass,Sex", *test)
    root.csv("gender_submission.csv", "PassengerId,Survived", (4, 0), (5, 1))
    columns = ("PassengerId", "Survived", "Pclass", "Sex")
    first = [Record(None, values=dict(zip(columns, row, strict=True))) for row in train]
    columns = ("PassengerId", "Pclass", "Sex")
    second = [Record(None, values=dict(zip(columns, row, strict=True))) for row in test]
    return [Reading({"train": first, "test": second}).mentioning("gender_submission")]


@layout()
def mnist_as_csv(root: Folder) -> Reading:
    """mnist_train.csv and mnist_test.csv: a label and a column for each pixel."""
    columns = ("label", *(f"{y}x{x}" for y in range(1, 4) for x in range(1, 4)))
    splits = {}
    for split, count in (("train", 4), ("test", 2)):
        rows = [(n, *((n * 31 + place * place) % 256 for place in range(9))) for n in range(count)]
        root.csv(f"mnist_{split}.csv", ",".join(columns), *rows)
        splits[split] = [Record(None, values=dict(zip(columns, row, strict=True))) for row in rows]
    return Reading(splits)


@layout()
def roboflow_multiclass_csv(root: Folder) -> Reading:
    """train/_classes.csv: filename and a column of 0 and 1 for each class, with spaces."""
    splits = {}
    for split, folder, count in (("train", "train", 4), ("validation", "valid", 2)):
        records, rows = [], []
        for number in range(count):
            name = f"{split}{number}_jpg.rf.12ab.jpg"
            hot = {"cat": number % 2, "dog": 1}
            labels = tuple(name for name, is_set in hot.items() if is_set)
            records.append(Record(root.photo(f"{folder}/{name}"), labels=labels))
            rows.append((name, *(f" {value}" for value in hot.values())))
        root.csv(f"{folder}/_classes.csv", "filename, cat, dog", *rows)
        splits[split] = records
    return Reading(splits)


@layout()
def class_folders_with_a_csv_of_splits(root: Folder) -> list[Reading]:
    """Class folders and splits.csv, which names a split for each image."""
    splits: dict[str, list[Record]] = {"train": [], "test": []}
    rows = []
    for name in ("cat", "dog"):
        for number in range(4):
            split = "test" if number == 3 else "train"
            splits[split].append(Record(root.photo(f"{name}/{number}.jpg"), name))
            rows.append((f"{name}/{number}.jpg", name, split))
    root.csv("splits.csv", "filepath,label,split", *rows)
    both = [*splits["train"], *splits["test"]]
    return [Reading(splits, label_column="label"), one(both).mentioning("splits.csv")]
