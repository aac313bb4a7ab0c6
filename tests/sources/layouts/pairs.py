"""Images and masks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from PIL import Image

from .files import BLACK_AND_WHITE, COLOURS, Folder, encoded, pixel_digest, pixel_values
from .layout import Reading, Record, layout, one


def _pairs(
    root: Folder,
    image: str,
    mask: str,
    items: Iterable[object],
    values: tuple[int, ...] = (0, 1, 2),
    **options: object,
) -> list[Record]:
    """An image and a mask for each item, which is put into the `{}` of their paths."""
    mode = str(options.pop("mode", "RGB"))
    return [
        Record(
            root.photo(image.format(item), mode=mode),
            mask=root.mask(mask.format(item), values, **options),  # type: ignore[arg-type]
        )
        for item in items
    ]


@layout(loud_is_fine=True)
def unet_membrane(root: Folder) -> list[Reading]:
    """data/membrane with train/image, train/label, an empty train/aug and test images alone."""
    records = _pairs(
        root,
        "data/membrane/train/image/{}.png",
        "data/membrane/train/label/{}.png",
        range(6),
        (0, 255),
        mode="L",
    )
    root.folder("data/membrane/train/aug")
    test = [Record(root.photo(f"data/membrane/test/{n}.png", mode="L")) for n in range(3)]
    return [
        one(records, renamed_values=True).mentioning("test", count=3),
        Reading({"train": records, "test": test}, renamed_values=True),
    ]


@layout()
def splits_below_images_and_masks(root: Folder) -> Reading:
    return Reading(
        {
            split: _pairs(root, f"images/{folder}/{{}}.jpg", f"masks/{folder}/{{}}.png", items)
            for split, folder, items in (("train", "train", "abc"), ("validation", "val", "de"))
        }
    )


@layout()
def siblings_of_any_name(root: Folder) -> Reading:
    """foto/ and etiqueta/: same stems, one of them has palettes of few colours."""
    return one(
        _pairs(root, "foto/{}.jpg", "etiqueta/{}.png", range(5), (0, 1, 2, 255), palette=COLOURS)
    )


@layout()
def isic_in_one_folder(root: Folder) -> Reading:
    return one(
        _pairs(root, "ISIC_000{}.jpg", "ISIC_000{}_segmentation.png", range(5), (0, 255)),
        renamed_values=True,
    )


@layout()
def isic_2018(root: Folder) -> Reading:
    """The original folders of the challenge, with a licence in each."""
    image, mask = "ISIC2018_Task1-2_Training_Input", "ISIC2018_Task1_Training_GroundTruth"
    for folder in (image, mask):
        root.lines(f"{folder}/ATTRIBUTION.txt", "ISIC")
        root.lines(f"{folder}/LICENSE.txt", "CC-0")
    return one(
        _pairs(
            root,
            f"{image}/ISIC_00000{{}}.jpg",
            f"{mask}/ISIC_00000{{}}_segmentation.png",
            range(4),
            (0, 255),
        ),
        renamed_values=True,
    )


@layout(loud_is_fine=True)
def carvana(root: Folder) -> list[Reading]:
    """Kaggle: train/x_01.jpg, train_masks/x_01_mask.gif, test/ without masks, three CSV files."""
    records = _pairs(
        root,
        "train/00087a6bd4dc_0{}.jpg",
        "train_masks/00087a6bd4dc_0{}_mask.gif",
        range(1, 6),
        (0, 1),
        palette=BLACK_AND_WHITE,
    )
    test = [Record(root.photo(f"test/0004d4463b50_0{n}.jpg")) for n in (1, 2)]
    root.csv("metadata.csv", "id,year,make,model", ("00087a6bd4dc", "2008.0", "Acura", "MDX"))
    rows = [(f"00087a6bd4dc_0{n}.jpg", "1 2 4 5") for n in range(1, 6)]
    root.csv("train_masks.csv", "img,rle_mask", *rows)
    root.csv("sample_submission.csv", "img,rle_mask", ("0004d4463b50_01.jpg", "1 1"))
    return [
        one(records, renamed_values=True).mentioning("test", count=2),
        Reading({"train": records, "test": test}, renamed_values=True),
    ]


@layout()
def camvid_annot(root: Folder) -> Reading:
    """SegNet's form: train/ and trainannot/ with the same names, and lists of others' paths."""
    splits = {}
    for split, folder, items in (
        ("train", "train", (1, 2, 3)),
        ("validation", "val", (4, 5)),
        ("test", "test", (6, 7)),
    ):
        names = [f"0001TP_00{item}690" for item in items]
        splits[split] = _pairs(
            root, f"CamVid/{folder}/{{}}.png", f"CamVid/{folder}annot/{{}}.png", names, (0, 3, 11)
        )
        paths = [f"/SegNet/CamVid/{folder}{kind}/{n}.png" for n in names for kind in ("", "annot")]
        lines = [f"{a} {b}" for a, b in zip(paths[::2], paths[1::2], strict=True)]
        root.lines(f"CamVid/{folder}.txt", *lines)
    return Reading(splits)


@layout(loud_is_fine=True)
def camvid_labels_with_L_suffix(root: Folder) -> Reading:
    """Kaggle's form: train_labels/*_L.png in colours, with class_dict.csv."""
    splits = {}
    for split, folder, items in (("train", "train", (1, 2, 3)), ("validation", "val", (4, 5))):
        splits[split] = _pairs(
            root,
            f"CamVid/{folder}/0016E5_0{{}}.png",
            f"CamVid/{folder}_labels/0016E5_0{{}}_L.png",
            items,
            (0, 1, 2),
            colours=COLOURS,
        )
    rows = [
        ("Void", 0, 0, 0),
        ("Animal", 128, 0, 0),
        ("Archway", 0, 128, 0),
        ("Sky", 128, 128, 128),
    ]
    root.csv("CamVid/class_dict.csv", "name,r,g,b", *rows)
    return Reading(splits, renamed_values=True)


@layout(loud_is_fine=True)
def cityscapes(root: Folder) -> Reading:
    """Four annotations of each image: labelIds are the classes."""
    splits: dict[str, list[Record]] = {}
    for split, folder, city in (
        ("train", "train", "aachen"),
        ("train", "train", "bochum"),
        ("validation", "val", "munster"),
    ):
        for number in (19, 20):
            stem = f"{folder}/{city}/{city}_000000_0000{number}"
            image = root.photo(f"leftImg8bit/{stem}_leftImg8bit.png")
            mask = root.mask(f"gtFine/{stem}_gtFine_labelIds.png", (4, 7, 26))
            root.mask(f"gtFine/{stem}_gtFine_color.png", (0, 1, 2), colours=COLOURS)
            root.mask(f"gtFine/{stem}_gtFine_instanceIds.png", (4, 7, 26001))
            root.json(f"gtFine/{stem}_gtFine_polygons.json", {"imgHeight": 24, "objects": []})
            splits.setdefault(split, []).append(Record(image, mask=mask))
    root.lines("README", "The Cityscapes Dataset")
    root.lines("license.txt", "Cityscapes")
    return Reading(splits)


@layout(loud_is_fine=True)
def kvasir_with_jpeg_masks(root: Folder) -> list[Reading]:
    """Masks as JPEG: their edges have all values."""
    records, thresholded = [], []
    for number in range(5):
        image = root.photo(f"Kvasir-SEG/images/cju{number}.jpg")
        clean = root.regions((0, 255))
        path = f"Kvasir-SEG/masks/cju{number}.jpg"
        data = root.data(path, encoded(Image.fromarray(clean.astype(np.uint8)), path))
        root.masks[pixel_digest(data)] = path
        lossy = pixel_values(data)
        records.append(Record(image, mask=lossy))
        thresholded.append(Record(image, mask=(lossy > 127).astype(np.int64)))
    root.json("Kvasir-SEG/kavsir_bboxes.json", {"cju0": {"height": 24, "width": 32, "bbox": []}})
    return [one(thresholded, renamed_values=True), one(records).mentioning("jpeg", "jpg", "lossy")]


@layout(loud_is_fine=True)
def drive(root: Folder) -> Reading:
    """Retina: two folders of masks, the vessels and the field of view."""
    records = []
    for number in range(21, 26):
        image = root.photo(f"training/images/{number}_training.tif")
        vessels = root.mask(
            f"training/1st_manual/{number}_manual1.gif", (0, 1), palette=BLACK_AND_WHITE
        )
        root.mask(f"training/mask/{number}_training_mask.gif", (0, 1), palette=BLACK_AND_WHITE)
        records.append(Record(image, mask=vessels))
    return one(records, renamed_values=True).mentioning("training_mask", "training/mask")


@layout(loud_is_fine=True)
def massachusetts_roads(root: Folder) -> Reading:
    """tiff/train and tiff/train_labels, whose suffixes differ."""
    splits = {
        split: _pairs(
            root,
            f"tiff/{folder}/100783{{}}_15.tiff",
            f"tiff/{folder}_labels/100783{{}}_15.tif",
            items,
            (0, 255),
        )
        for split, folder, items in (("train", "train", "234"), ("validation", "val", "56"))
    }
    root.csv("label_class_dict.csv", "name,r,g,b", ("background", 0, 0, 0), ("road", 255, 255, 255))
    return Reading(splits, renamed_values=True)


@layout(loud_is_fine=True)
def deepglobe(root: Folder) -> list[Reading]:
    """train/1_sat.jpg and train/1_mask.png in colours; valid/ has only images."""
    records = _pairs(
        root, "train/{}_sat.jpg", "train/{}_mask.png", (119, 266, 606), (0, 1, 2), colours=COLOURS
    )
    valid = [Record(root.photo(f"valid/{n}_sat.jpg")) for n in (1187, 4411)]
    root.csv("class_dict.csv", "name,r,g,b", ("a", 0, 0, 0), ("b", 128, 0, 0), ("c", 0, 128, 0))
    rows = [(n, "train", f"train/{n}_sat.jpg", f"train/{n}_mask.png") for n in (119, 266, 606)]
    root.csv("metadata.csv", "image_id,split,sat_image_path,mask_path", *rows)
    return [
        one(records, renamed_values=True).mentioning("valid", count=2),
        Reading({"train": records, "validation": valid}, renamed_values=True),
    ]


@layout(loud_is_right=True)
def nuclei_with_many_masks_each(root: Folder) -> None:
    """Data Science Bowl 2018: a folder for each image, and a mask for each nucleus in it."""
    for number in range(4):
        name = f"{number:02d}ae65df8"
        root.photo(f"stage1_train/{name}/images/{name}.png")
        for nucleus in range(3):
            root.mask(f"stage1_train/{name}/masks/{nucleus}b1f8cb{number}.png", (0, 255))


@layout(loud_is_fine=True)
def busi(root: Folder) -> list[Reading]:
    """Class folders with masks in them: benign/benign (1).png and benign (1)_mask.png."""
    records = []
    for name in ("benign", "malignant", "normal"):
        for number in (1, 2, 3):
            stem = f"Dataset_BUSI_with_GT/{name}/{name} ({number})"
            image = root.photo(f"{stem}.png")
            mask = root.mask(f"{stem}_mask.png", (0, 255))
            records.append(Record(image, name, mask=mask))
    whole = one(records, renamed_values=True)
    return [
        whole,
        whole.without("label", words=("class", "benign")),
        whole.without("mask", words=("mask",)),
    ]


@layout(loud_is_fine=True)
def ade20k(root: Folder) -> Reading:
    """ADEChallengeData2016: images/training and annotations/training."""
    below = "ADEChallengeData2016"
    root.lines(
        f"{below}/objectInfo150.txt", "Idx\tRatio\tTrain\tVal\tStuff\tName", "1\t0.1\t1\t1\t1\twall"
    )
    root.lines(f"{below}/sceneCategories.txt", "ADE_train_00000001 airport_terminal")
    splits = {
        split: _pairs(
            root,
            f"{below}/images/{folder}/ADE_{short}_0000000{{}}.jpg",
            f"{below}/annotations/{folder}/ADE_{short}_0000000{{}}.png",
            items,
            (0, 1, 150),
        )
        for split, folder, short, items in (
            ("train", "training", "train", "123"),
            ("validation", "validation", "val", "12"),
        )
    }
    return Reading(splits)


@layout(loud_is_fine=True)
def masks_below_class_folders(root: Folder) -> list[Reading]:
    """images/cat/1.jpg and masks/cat/1.png."""
    records = [
        Record(root.photo(f"images/{name}/{n}.jpg"), name, mask=root.mask(f"masks/{name}/{n}.png"))
        for name in ("cat", "dog")
        for n in (1, 2, 3)
    ]
    whole = one(records)
    return [whole, whole.without("label", words=("class", "label"))]


@layout(loud_is_fine=True)
def roboflow_semantic_masks(root: Folder) -> Reading:
    """x.jpg and x_mask.png in each split, with _classes.csv."""
    root.lines("README.dataset.txt", "# Roads")
    root.lines("README.roboflow.txt", "Roads - v1")
    splits = {}
    for split, folder, items in (("train", "train", "abc"), ("validation", "valid", "de")):
        stem = f"{folder}/{{}}_jpg.rf.5e1c0ffee"
        splits[split] = _pairs(root, f"{stem}.jpg", f"{stem}_mask.png", items)
        root.csv(f"{folder}/_classes.csv", "Pixel Value, Class", (0, " background"), (1, " road"))
    return Reading(splits)


@layout(loud_is_fine=True)
def oxford_pet(root: Folder) -> list[Reading]:
    """Images with trimaps, boxes of some heads, classes in a list and in the names of the files."""
    items = [(name, n) for name in ("Abyssinian", "great_pyrenees", "Birman") for n in (1, 2)]
    records, rows = [], []
    for name, number in items:
        stem = f"{name}_{number}"
        image = root.photo(f"images/{stem}.jpg")
        mask = root.mask(f"annotations/trimaps/{stem}.png", (1, 2, 3))
        root.data(f"annotations/trimaps/._{stem}.png", b"\0\5\26\7\0\2\0\0Mac OS X")
        records.append(Record(image, name, mask=mask))
        rows.append(f"{stem} {1 + [n for n, _ in items].index(name) // 2} {1 + (name < 'a')} 1")
    root.data("images/Abyssinian_100.mat", b"MATLAB 5.0 MAT-file" + bytes(109))
    root.lines("annotations/list.txt", "#Image CLASS-ID SPECIES BREED ID", *rows)
    root.lines("annotations/trainval.txt", *rows[::2])
    root.lines("annotations/test.txt", *rows[1::2])
    root.lines("annotations/README", "OXFORD-IIIT PET Dataset")
    root.text(
        "annotations/xmls/Abyssinian_1.xml",
        "<annotation><filename>Abyssinian_1.jpg</filename><size><width>32</width><height>24</height>"
        "<depth>3</depth></size><object><name>cat</name><bndbox><xmin>4</xmin><ymin>4</ymin>"
        "<xmax>20</xmax><ymax>20</ymax></bndbox></object></annotation>",
    )
    splits = {"trainval": records[::2], "test": records[1::2]}  # as the lists are named
    others = ("xmls", "list.txt", "boxes", "voc")
    return [
        reading.mentioning(*others)
        for whole in (one(records), Reading(splits))
        for reading in (whole, whole.without("label", words=("class", *others)))
    ]


@layout(loud_is_fine=True)
def voc_segmentation(root: Folder) -> list[Reading]:
    """VOC2012 without boxes: more images than masks, and lists of the splits."""
    below = "VOCdevkit/VOC2012"
    splits = {}
    for split, file, items in (("train", "train", (32, 39, 63)), ("validation", "val", (33, 42))):
        names = [f"2007_0000{item}" for item in items]
        splits[split] = _pairs(
            root,
            f"{below}/JPEGImages/{{}}.jpg",
            f"{below}/SegmentationClass/{{}}.png",
            names,
            (0, 1, 3, 255),
            palette=COLOURS,
        )
        for name in names:
            root.mask(f"{below}/SegmentationObject/{name}.png", (0, 1, 2, 255), palette=COLOURS)
        root.lines(f"{below}/ImageSets/Segmentation/{file}.txt", *names)
    for number in (1, 2, 3):
        root.photo(f"{below}/JPEGImages/2008_00000{number}.jpg")
    return [Reading(splits).mentioning("mask", "list", count=3)]


@layout(loud_is_fine=True)
def coco_stuff_pixel_maps(root: Folder) -> Reading:
    """train2017/ and stuffthingmaps/train2017/."""
    return Reading(
        {
            split: _pairs(
                root,
                f"{folder}2017/0000000{{}}.jpg",
                f"stuffthingmaps/{folder}2017/0000000{{}}.png",
                items,
                (0, 91, 255),
            )
            for split, folder, items in (
                ("train2017", "train", (10, 11, 12)),
                ("val2017", "val", (20, 21)),
            )
        }
    )
