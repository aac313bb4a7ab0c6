"""Scanned pages, forms, receipts and handwriting."""

from __future__ import annotations

from ..files import Folder
from ..layout import Reading, Record, layout
from .drawing import coco_document, draw_boxes, draw_images, file_stem


@layout(loud_is_fine=True)
def rvl_cdip(root: Folder) -> Reading:
    """Deep folders that mean nothing; lists of paths and class numbers for each split."""
    splits: dict[str, list[Record]] = {}
    for split, file, start in (
        ("train", "train", 0),
        ("validation", "val", 6),
        ("test", "test", 8),
    ):
        lines = []
        splits[split] = []
        for number in range(start, start + 2 + 4 * (start == 0)):
            word = "rge" if number % 2 else "cek" if number % 3 else "dzk"
            below = f"images{word[0]}/{'/'.join(word)}/{word}3{number}d00"
            path = f"{below}/50321003{number}+-0034.tif"
            label = str((3, 11, 3, 0)[number % 4])
            splits[split].append(Record(root.photo(f"images/{path}", mode="L"), label))
            lines.append(f"{path} {label}")
        root.lines(f"labels/{file}.txt", *lines)
    root.text("readme.txt", "The RVL-CDIP Dataset\n")
    return Reading(splits, label_column="label")


@layout(loud_is_fine=True)
def funsd(root: Folder) -> Reading:
    """A JSON file for each form, whose entries have a box, a label and the words in it."""
    splits = {}
    for split, folder, start in (("train", "training_data", 0), ("test", "testing_data", 4)):
        items = [f"000097116{number}" for number in range(start, start + 4)]
        names = ("question", "answer")
        records = draw_boxes(root, f"dataset/{folder}/images/{{}}.png", items, names, start)
        for path, record in records.items():
            form: list[object] = [
                {
                    "box": box[1:],
                    "text": "R&D",
                    "label": box[0],
                    "words": [],
                    "linking": [],
                    "id": n,
                }
                for n, box in enumerate(record.boxes or ())
            ]
            root.json(f"dataset/{folder}/annotations/{file_stem(path)}.json", {"form": form})
        splits[split] = [*records.values()]
    return Reading(splits)


@layout(loud_is_right=True)
def iam_words(root: Folder) -> None:
    """The texts of the images are in a file with a long comment; the folders are no classes."""
    lines = ["#--- words.txt ---------------#", "#", "# iam database word information", "#"]
    for form in ("a01-000u", "a01-003", "b02-045"):
        for number, word in enumerate(("A", "MOVE", "to", "stop")):
            name = f"{form}-00-0{number}"
            root.photo(f"iam_words/words/{form[:3]}/{form}/{name}.png", mode="L")
            lines.append(f"{name} ok 154 408 768 27 51 AT {word}")
    root.lines("iam_words/words.txt", *lines)


@layout(loud_is_fine=True)
def sroie_2019(root: Folder) -> Reading:
    """Four corners and a text with commas for each line of a receipt; JSON in `.txt` files."""
    splits = {}
    for split, start in (("train", 0), ("test", 4)):
        items = [f"X0001646961{number}" for number in range(start, start + 4)]
        records = draw_boxes(root, f"SROIE2019/{split}/img/{{}}.jpg", items, (None,), start)
        for path, record in records.items():
            lines = [
                f"{left},{top},{right},{top},{right},{bottom},{left},{bottom},NO. 5, JALAN TAMAN"
                for _, left, top, right, bottom in record.boxes or ()
            ]
            root.lines(f"SROIE2019/{split}/box/{file_stem(path)}.txt", *lines)
            entities = {"company": "BOOK TA .K SDN BHD", "date": "25/12/2018", "total": "9.00"}
            root.json(f"SROIE2019/{split}/entities/{file_stem(path)}.txt", entities)
        splits[split] = [*records.values()]
    return Reading(splits).mentioning("entities")


@layout()
def publaynet(root: Folder) -> Reading:
    """COCO with `train.json` next to `train/`, and test images without annotations."""
    names = ("text", "title", "list", "table", "figure")
    splits = {}
    for split, folder, start in (("train", "train", 0), ("validation", "val", 4)):
        items = [f"PMC499122{number}_00003" for number in range(start, start + 4)]
        records = draw_boxes(root, f"publaynet/{folder}/{{}}.jpg", items, names, start)
        root.json(f"publaynet/{folder}.json", coco_document(records, names))
        splits[split] = [*records.values()]
    draw_images(root, "publaynet/test/PMC387749{}_00001.jpg", (1, 2))
    root.text("publaynet/README.txt", "PubLayNet\n")
    root.text("publaynet/LICENSE.txt", "CDLA-Permissive\n")
    return Reading(splits).mentioning("test")


@layout(loud_is_fine=True)
def doclaynet(root: Folder) -> Reading:
    """All images in one folder, the splits of COCO in another, and the texts in a third."""
    names = ("Caption", "Table", "Text")
    splits = {}
    for split, file, start in (
        ("train", "train", 0),
        ("validation", "val", 4),
        ("test", "test", 6),
    ):
        count = 4 if split == "train" else 2
        items = [
            f"c6effb847ae7e4a80431696984fa90c98bb08c266481b9a03842422459c4{n}"
            for n in range(start, start + count)
        ]
        records = draw_boxes(root, "PNG/{}.png", items, names, start)
        root.json(f"COCO/{file}.json", coco_document(records, names))
        for item in items:
            cells = [{"bbox": [1.5, 2.5, 8, 3], "text": "Annual report"}]
            root.json(f"JSON/{item}.json", {"metadata": {"page_no": 1}, "cells": cells})
        splits[split] = [*records.values()]
    return Reading(splits).mentioning("JSON/")
