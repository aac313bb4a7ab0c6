"""Defects of products, and products in shops."""

from __future__ import annotations

import numpy as np

from ..boxes import _voc_xml
from ..files import Folder
from ..layout import Reading, Record, layout, one
from .drawing import (
    HEIGHT,
    WIDTH,
    draw_boxes,
    draw_classes,
    draw_images,
    file_name,
    file_stem,
    run_lengths,
)


# ---- industry ------------------------------------------------------------------------------------
@layout(loud_is_fine=True)
def mvtec_ad(root: Folder) -> list[Reading]:
    """`train` has only good ones; masks of the defects are in a third folder."""
    root.text("bottle/readme.txt", "MVTec AD\n")
    root.text("bottle/license.txt", "CC BY-NC-SA 4.0\n")
    train = draw_images(root, "bottle/train/good/00{}.png", range(5), "good")
    test = draw_images(root, "bottle/test/good/00{}.png", range(2), "good")
    masked = [*test]
    for name in ("broken_large", "contamination"):
        for number in range(3):
            image = root.photo(f"bottle/test/{name}/00{number}.png")
            mask = root.mask(f"bottle/ground_truth/{name}/00{number}_mask.png", (0, 255))
            test.append(Record(image, name))
            masked.append(Record(image, name, mask=mask))
    return [
        Reading({"train": train, "test": test}).mentioning("ground_truth", "mask"),
        Reading({"train": train, "test": masked}),
    ]


@layout()
def neu_det(root: Folder) -> Reading:
    """VOC with splits; the images are in class folders, the annotations are not."""
    names = ("crazing", "inclusion", "scratches")
    splits: dict[str, list[Record]] = {}
    for split, start, count in (("train", 1, 3), ("validation", 241, 2)):
        splits[split] = []
        for name in names:
            path = f"NEU-DET/{split}/images/{name}/{name}_{{}}.jpg"
            records = draw_boxes(root, path, range(start, start + count), (name,), start)
            for image, record in records.items():
                text = _voc_xml(file_name(image), record.boxes or (), folder="cr")
                root.text(f"NEU-DET/{split}/annotations/{file_stem(image)}.xml", text)
            splits[split] += records.values()
    return Reading(splits, box_tolerance=1.01)


@layout(loud_is_fine=True)
def severstal(root: Folder) -> Reading:
    """Masks as run lengths in a table, with a row for each class of an image."""
    records, rows = [], []
    for number in range(6):
        name = f"0002cc93{number}.jpg"
        mask = root.regions((0, 1 + number % 2, 3) if number % 3 == 0 else (0, 1 + number % 3))
        records.append(Record(root.photo(f"train_images/{name}"), mask=mask))
        rows += [
            (name, value, run_lengths(mask == value)) for value in np.unique(mask)[1:].tolist()
        ]
    root.csv("train.csv", "ImageId,ClassId,EncodedPixels", *rows)
    draw_images(root, "test_images/0000f269{}.jpg", range(2))
    root.csv("sample_submission.csv", "ImageId,ClassId,EncodedPixels", ("0000f2690.jpg", 1, "1 1"))
    return one(records).mentioning("test_images")


@layout(loud_is_fine=True)
def dagm_2007(root: Folder) -> list[Reading]:
    """Splits below the classes, upper-case suffixes, masks of the few images with a defect."""
    images: dict[str, list[Record]] = {"train": [], "test": []}
    masked: dict[str, list[Record]] = {"train": [], "test": []}
    for name in ("Class1", "Class2"):
        for split, folder, start in (("train", "Train", 576), ("test", "Test", 1)):
            lines = ["1"]
            for number in range(start, start + 4):
                below = f"DAGM_KaggleUpload/{name}/{folder}"
                image = root.photo(f"{below}/{number:04d}.PNG", mode="L")
                images[split].append(Record(image, name))
                if number % 2:
                    mask = root.mask(f"{below}/Label/{number:04d}_label.PNG", (0, 255))
                    masked[split].append(Record(image, mask=mask))
                lines.append(f"{number}\t{number % 2}\t{number:04d}.PNG\t0\t0")
            root.lines(f"DAGM_KaggleUpload/{name}/{folder}/Label/Labels.txt", *lines)
    return [
        Reading(images).mentioning("Label", "mask"),
        Reading(masked).mentioning("without a mask", "no mask", "Labels.txt", "8 images"),
    ]


@layout(loud_is_fine=True)
def casting_product(root: Folder) -> Reading:
    """Each folder once more in itself; the same castings in another size, without splits."""
    names = ("def_front", "ok_front")
    splits = {
        "train": draw_classes(
            root, "casting_data/casting_data/train/{0}/cast_0_10{1}.jpeg", names, (1, 2, 3)
        ),
        "test": draw_classes(
            root, "casting_data/casting_data/test/{0}/cast_0_11{1}.jpeg", names, (1, 2)
        ),
    }
    draw_classes(
        root, "casting_512x512/casting_512x512/{0}/cast_0_9{1}.jpeg", names, (1, 2), size=(48, 36)
    )
    return Reading(splits, class_names=names).mentioning("casting_512x512")


@layout(loud_is_fine=True)
def kolektor_sdd(root: Folder) -> Reading:
    """A folder for each item; masks as BMP, most of them black; all sizes are different."""
    records = []
    for item in (1, 2, 3):
        for part in range(4):
            size = (WIDTH, HEIGHT + 4 * item + part)
            values = (0, 255) if part == item else (0,)
            image = root.photo(f"kos0{item}/Part{part}.jpg", size=size, mode="L")
            mask = root.mask(f"kos0{item}/Part{part}_label.bmp", values, size=size)
            records.append(Record(image, mask=mask))
    return one(records)


@layout(loud_is_fine=True)
def pcb_defects(root: Folder) -> Reading:
    """VOC in class folders, rotated images with the same names, boards without defects."""
    records: list[Record] = []
    for kind in ("Missing_hole", "Mouse_bite", "Short"):
        path = f"PCB_DATASET/images/{kind}/01_{kind.lower()}_0{{}}.jpg"
        boxed = draw_boxes(root, path, (1, 2, 3), (kind.lower(),))
        for image, record in boxed.items():
            text = _voc_xml(file_name(image), record.boxes or (), folder=kind)
            root.text(f"PCB_DATASET/Annotations/{kind}/{file_stem(image)}.xml", text)
        records += boxed.values()
        draw_images(
            root, f"PCB_DATASET/rotation/{kind}_rotation/01_{kind.lower()}_0{{}}.jpg", (1, 2)
        )
        root.lines(f"PCB_DATASET/rotation/{kind}_angles.txt", f"01_{kind.lower()}_01\t10")
    draw_images(root, "PCB_DATASET/PCB_USED/{}.JPG", ("01", "04"), size=(64, 48))
    root.text("PCB_DATASET/rotate.py", "import cv2\n")
    reading = one(records, box_tolerance=1.01)
    return reading.mentioning("PCB_USED", "rotation", "8 images")


# ---- retail --------------------------------------------------------------------------------------
@layout()
def sku_110k(root: Folder) -> Reading:
    """Boxes, class and size in tables without headers, one for each split."""
    splits = {}
    for split, file, start in (
        ("train", "train", 0),
        ("validation", "val", 4),
        ("test", "test", 6),
    ):
        items = range(start, start + 2 + 2 * (start == 0))
        records = draw_boxes(
            root, f"SKU110K_fixed/images/{file}_{{}}.jpg", items, ("object",), start
        )
        rows = [
            ",".join(map(str, (file_name(path), *box[1:], box[0], WIDTH, HEIGHT)))
            for path, record in records.items()
            for box in record.boxes or ()
        ]
        root.lines(f"SKU110K_fixed/annotations/annotations_{file}.csv", *rows)
        splits[split] = [*records.values()]
    root.text("SKU110K_fixed/LICENSE.txt", "Academic use\n")
    return Reading(splits, box_tolerance=1.01)


@layout(loud_is_fine=True)
def stanford_online_products(root: Folder) -> list[Reading]:
    """Lists with a header and spaces between columns hold splits, items and classes."""
    splits: dict[str, list[Record]] = {"train": [], "test": []}
    items: dict[str, list[Record]] = {"train": [], "test": []}
    lines: dict[str, list[str]] = {"train": [], "test": []}
    for kind, name in enumerate(("bicycle", "chair", "mug"), 1):
        for number in range(4):
            split = "train" if number < 2 else "test"
            path = f"{name}_final/11108512287{number // 2}_{number % 2}.JPG"
            image = root.photo(f"Stanford_Online_Products/{path}")
            splits[split].append(Record(image, f"{name}_final"))
            item = 10 * kind + number // 2
            items[split].append(Record(image, values={"class_id": item, "super_class_id": kind}))
            lines[split].append(f"{len(lines[split]) + 1} {item} {kind} {path}")
        root.lines(f"Stanford_Online_Products/{name}.txt", f"{name}_final/111085122870_0.JPG 1")
    for split, rows in lines.items():
        head = "image_id class_id super_class_id path"
        root.lines(f"Stanford_Online_Products/Ebay_{split}.txt", head, *rows)
    root.lines("Stanford_Online_Products/Ebay_info.txt", "image_id class_id super_class_id path")
    return [Reading(items), Reading(splits).mentioning("class_id", "Ebay_train.txt")]


@layout()
def fruits_360(root: Folder) -> Reading:
    """Classes with spaces and numbers, `Training` and `Test`, and images of several fruits."""
    below = "fruits-360_dataset_100x100/fruits-360"
    names = ("Apple 6", "Apple 10", "Apple Braeburn 1", "Cherry Wax Black 1")
    splits = {
        "train": draw_classes(
            root, f"{below}/Training/{{0}}/{{1}}_100.jpg", names, ("0", "1", "r_0")
        ),
        "test": draw_classes(root, f"{below}/Test/{{0}}/{{1}}_100.jpg", names, ("3", "r_3")),
    }
    draw_images(root, f"{below}/test-multiple_fruits/{{}}.jpg", ("apple_apricot", "cherries_wax"))
    root.text(f"{below}/readme.md", "# Fruits-360\n")
    root.text(f"{below}/papers/mihai.pdf", "%PDF-1.4\n")
    return Reading(splits).mentioning("test-multiple_fruits")
