"""Public datasets as they are downloaded, by someone who has not read the detector.

Each folder follows the public description of a dataset: its names, columns and classes, with
images of our own. A file that names the images and holds their labels or splits must be read, or
the folder must be refused; everything else that is left out must be mentioned.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .boxes import _voc_xml
from .files import SIZE, Folder, npy_bytes
from .layout import Box, Reading, Record, layout, one

WIDTH, HEIGHT = SIZE


def _photos(
    root: Folder, path: str, items: Iterable[object], label: str | None = None, **options: Any
) -> list[Record]:
    return [Record(root.photo(path.format(item), **options), label) for item in items]


def _classes(
    root: Folder,
    path: str,
    names: Iterable[str],
    items: Sequence[object] = (1, 2, 3),
    **options: Any,
) -> list[Record]:
    """`path` has a place for the class, {0}, and one for the item, {1}."""
    return [
        Record(root.photo(path.format(name, item), **options), name)
        for name in names
        for item in items
    ]


def _pairs(
    root: Folder,
    image: str,
    mask: str,
    items: Iterable[object],
    values: Sequence[int] = (0, 1),
    **options: Any,
) -> list[Record]:
    return [
        Record(root.photo(image.format(item)), mask=root.mask(mask.format(item), values, **options))
        for item in items
    ]


def _box(number: int, names: Sequence[str | None]) -> Box:
    """A box that is different for each number, and neither square nor centred."""
    left, top = 2 + number % 7, 1 + number % 5
    return (names[number % len(names)], left, top, left + 12 + number % 3, top + 7)


def _boxed(
    root: Folder, path: str, items: Iterable[object], names: Sequence[str | None], start: int = 0
) -> dict[str, Record]:
    """Images with one or two boxes, by their paths."""
    records = {}
    for number, item in enumerate(items, start):
        boxes = [_box(number, names), *([_box(number + 1, names)] if number % 2 else [])]
        records[path.format(item)] = Record(root.photo(path.format(item)), boxes=tuple(boxes))
    return records


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _stem(path: str) -> str:
    return _name(path).partition(".")[0]


def _sides(box: Box) -> tuple[float, float, float, float]:
    """x, y, width, height."""
    _, left, top, right, bottom = box
    return (left, top, right - left, bottom - top)


def _coco(records: Mapping[str, Record], names: Sequence[str]) -> dict[str, object]:
    images, annotations = [], []
    for number, (path, record) in enumerate(records.items(), 1):
        images.append({"id": number, "file_name": _name(path), "width": WIDTH, "height": HEIGHT})
        annotations += [
            {
                "id": len(annotations) + count,
                "image_id": number,
                "category_id": names.index(str(box[0])) + 1,
                "bbox": _sides(box),
                "area": _sides(box)[2] * _sides(box)[3],
                "iscrowd": 0,
            }
            for count, box in enumerate(record.boxes or (), 1)
        ]
    categories = [{"id": number, "name": name} for number, name in enumerate(names, 1)]
    return {"images": images, "annotations": annotations, "categories": categories}


def _all(*splits: Iterable[Record]) -> list[Record]:
    return [record for split in splits for record in split]


# ---- medicine ----------------------------------------------------------------------------------


@layout()
def isic_2018_task_3(root: Folder) -> Reading:
    """Classes as columns of 0.0 and 1.0, in a folder next to the one of the images."""
    names = ("MEL", "NV", "BCC", "AKIEC", "BKL", "DF", "VASC")
    images = "ISIC2018_Task3_Training_Input"
    ids = [f"ISIC_00243{item:02d}" for item in range(6, 14)]
    rows = [[float(number % 7 == column) for column in range(7)] for number in range(8)]
    truth = "ISIC2018_Task3_Training_GroundTruth"
    root.csv(
        f"{truth}/{truth}.csv",
        f"image,{','.join(names)}",
        *([item, *row] for item, row in zip(ids, rows, strict=True)),
    )
    root.text(f"{images}/ATTRIBUTION.txt", "Contributors of HAM10000\n")
    root.text(f"{images}/LICENSE.txt", "CC BY-NC 4.0\n")
    _photos(root, "ISIC2018_Task3_Test_Input/ISIC_00345{}.jpg", (24, 25, 26))
    records = [
        Record(root.photo(f"{images}/{item}.jpg"), values=dict(zip(names, row, strict=True)))
        for item, row in zip(ids, rows, strict=True)
    ]
    return one(records).mentioning("ISIC2018_Task3_Test_Input")


@layout(loud_is_fine=True)
def chest_x_ray14(root: Folder) -> Reading:
    """Findings in a table with commas in its header, images in 12 folders, lists of the splits."""
    findings = ("Cardiomegaly", "No Finding", "Hernia", "Cardiomegaly", "No Finding", "Hernia")
    rows = []
    records = []
    for number, finding in enumerate(findings):
        name = f"0000000{number + 1}_000.png"
        image = root.photo(f"images_00{1 + number // 3}/images/{name}", mode="L")
        records.append(Record(image, finding, values={"Patient Age": 58 + number}))
        rows.append(
            (name, finding, 0, number + 1, 58 + number, "M", "PA", 2682, 2749, 0.143, 0.1, "")
        )
    root.csv(
        "Data_Entry_2017.csv",
        "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,"
        "View Position,OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y],",
        *rows,
    )
    root.csv(
        "BBox_List_2017.csv",
        "Image Index,Finding Label,Bbox [x,y,w,h],,,",
        (rows[0][0], "Cardiomegaly", 4.5, 3.25, 12, 9, "", "", ""),
    )
    root.lines("train_val_list.txt", *(row[0] for row in rows[:4]))
    root.lines("test_list.txt", *(row[0] for row in rows[4:]))
    root.text("README_CHESTXRAY.pdf", "%PDF-1.4\n")
    splits = {"train": records[:4], "test": records[4:]}
    return Reading(splits, label_column="Finding Labels").mentioning("BBox_List_2017.csv")


@layout(loud_is_fine=True)
def busi_breast_ultrasound(root: Folder) -> list[Reading]:
    """Masks next to the images in class folders; a second mask of some; black ones of `normal`."""
    below = "Dataset_BUSI_with_GT"
    records = []
    for name in ("benign", "malignant"):
        for number in (1, 2, 3):
            path = f"{below}/{name}/{name} ({number})"
            image = root.photo(f"{path}.png")
            records.append(Record(image, name, mask=root.mask(f"{path}_mask.png", (0, 255))))
    root.mask(f"{below}/benign/benign (3)_mask_1.png", (0, 255))
    for number in (1, 2, 3):
        size = (WIDTH + number, HEIGHT)
        path = f"{below}/normal/normal ({number})"
        image = root.photo(f"{path}.png", size=size)
        mask = root.mask(f"{path}_mask.png", (0,), size=size)
        records.append(Record(image, "normal", mask=mask))
    both = one(records).mentioning("_mask_1", "benign (3)", count=1)
    return [
        both,
        both.without("mask", words=("mask",)),
        both.without("label", words=("class folders", "benign", "without labels", "no labels")),
    ]


@layout(loud_is_fine=True)
def kvasir_seg(root: Folder) -> Reading:
    """Masks as JPEG, and a JSON file of boxes with its name misspelt."""
    names = ("cju0qkwl35piu0993l0dewei2", "cju0qoxqj9q6s0835b43399p4", "cju0qx73cjw570799j4n5cjze")
    records = _pairs(root, "Kvasir-SEG/images/{}.jpg", "Kvasir-SEG/masks/{}.jpg", names, (0, 255))
    boxes = [{"label": "polyp", "xmin": 4, "ymin": 3, "xmax": 20, "ymax": 11}]
    document = {name: {"height": HEIGHT, "width": WIDTH, "bbox": boxes} for name in names}
    root.json("Kvasir-SEG/kavsir_bboxes.json", document)
    return one(records, renamed_values=True).mentioning("kavsir_bboxes.json")


@layout(loud_is_fine=True)
def drive_retina(root: Folder) -> Reading:
    """`1st_manual` has the vessels, `mask` only the field of view; test images have no truth."""
    train = []
    for number in (21, 22, 23, 24):
        image = root.photo(f"DRIVE/training/images/{number}_training.tif")
        mask = root.mask(f"DRIVE/training/1st_manual/{number}_manual1.gif", (0, 255))
        root.mask(f"DRIVE/training/mask/{number}_training_mask.gif", (0, 255))
        train.append(Record(image, mask=mask))
    for number in (1, 2):
        root.photo(f"DRIVE/test/images/0{number}_test.tif")
        root.mask(f"DRIVE/test/mask/0{number}_test_mask.gif", (0, 255))
    return one(train, renamed_values=True).mentioning("training/mask", "mask").mentioning("test")


@layout(loud_is_fine=True)
def lidc_idri_slices(root: Folder) -> list[Reading]:
    """Four readers drew a mask of each slice: which one counts is a question."""
    masks: dict[int, list[Record]] = {reader: [] for reader in range(4)}
    for patient in (1, 2):
        for number in range(3):
            below = f"LIDC-IDRI-slices/LIDC-IDRI-000{patient}/nodule-0"
            image = root.photo(f"{below}/images/slice-{number}.png", mode="L")
            for reader, records in masks.items():
                mask = root.mask(f"{below}/mask-{reader}/slice-{number}.png", (0, 255))
                records.append(Record(image, mask=mask))
    return [
        one(records).mentioning(f"mask-{(reader + 1) % 4}") for reader, records in masks.items()
    ]


@layout(loud_is_right=True)
def mrnet(root: Folder) -> None:
    """Volumes of three planes, and three tables of labels without headers."""
    for split, start in (("train", 0), ("valid", 1130)):
        for plane in ("axial", "coronal", "sagittal"):
            for number in range(start, start + 3):
                volume = root.random().integers(0, 256, (5 + number % 3, 16, 16), np.uint8)
                root.data(f"MRNet-v1.0/{split}/{plane}/{number:04d}.npy", npy_bytes(volume))
        for finding in ("abnormal", "acl", "meniscus"):
            rows = [f"{number:04d},{number % 2}" for number in range(start, start + 3)]
            root.lines(f"MRNet-v1.0/{split}-{finding}.csv", *rows)


@layout()
def ham10000(root: Folder) -> Reading:
    """Images in two folders, one table of them, and others of their pixels."""
    records, rows = [], []
    for number, dx in enumerate(("bkl", "nv", "nv", "mel", "bkl", "mel")):
        name = f"ISIC_002{7400 + number}"
        image = root.photo(f"HAM10000_images_part_{1 + number // 3}/{name}.jpg")
        records.append(Record(image, dx, values={"lesion_id": f"HAM_000011{number}"}))
        age = "" if number == 4 else 80.0
        rows.append((f"HAM_000011{number}", name, dx, "histo", age, "male", "scalp"))
    root.csv("HAM10000_metadata.csv", "lesion_id,image_id,dx,dx_type,age,sex,localization", *rows)
    header = ",".join([*(f"pixel{number:04d}" for number in range(64)), "label"])
    root.csv("hmnist_8_8_L.csv", header, *([number] * 65 for number in range(6)))
    return one(records, label_column="dx").mentioning("hmnist_8_8_L.csv")


@layout()
def kather_texture_2016(root: Folder) -> Reading:
    """Class folders with numbers in front, and a folder of larger images without classes."""
    names = ("01_TUMOR", "02_STROMA", "03_COMPLEX", "08_EMPTY")
    records = _classes(
        root,
        "Kather_texture_2016_image_tiles_5000/{0}/10009_CRC-Prim-HE-0{1}_009.tif_Row_301_Col_151.tif",
        names,
    )
    _photos(
        root,
        "Kather_texture_2016_larger_images_10000/CRC-Prim-HE-0{}_APPLICATION.tif",
        (1, 2),
        size=(96, 64),
    )
    return one(records, class_names=names).mentioning("Kather_texture_2016_larger_images_10000")


@layout(loud_is_fine=True)
def nct_crc_he(root: Folder) -> Reading:
    """Two folders with the same classes: the larger for training, the other for validation."""
    names = ("ADI", "BACK", "DEB", "LYM")
    return Reading(
        {
            "train": _classes(root, "NCT-CRC-HE-100K/{0}/{0}-AAA{1}LCLG.tif", names, "FGHI"),
            "validation": _classes(root, "CRC-VAL-HE-7K/{0}/{0}-TCGA-AAI{1}EQFN.tif", names, "CD"),
        },
        class_names=names,
    )


@layout(loud_is_fine=True)
def breakhis(root: Folder) -> list[Reading]:
    """Classes at two levels, patients and magnifications below: which level is a question."""
    readings: list[list[Record]] = [[], []]
    kinds = {
        "benign/SOB/adenosis": "SOB_B_A",
        "benign/SOB/fibroadenoma": "SOB_B_F",
        "malignant/SOB/ductal_carcinoma": "SOB_M_DC",
        "malignant/SOB/lobular_carcinoma": "SOB_M_LC",
    }
    for kind, prefix in kinds.items():
        for zoom in (40, 100):
            for number in (1, 2):
                below = f"BreaKHis_v1/histology_slides/breast/{kind}/{prefix}_14-22549AB/{zoom}X"
                image = root.photo(f"{below}/{prefix}-14-22549AB-{zoom}-00{number}.png")
                for level, records in enumerate(readings):
                    records.append(Record(image, kind.split("/")[2 * level]))
    root.text("BreaKHis_v1/histology_slides/breast/README.txt", "BreaKHis v1\n")
    root.text("BreaKHis_v1/histology_slides/breast/count_files.sh", "#!/bin/sh\n")
    return [one(records) for records in readings]


@layout(loud_is_fine=True)
def rsna_pneumonia(root: Folder) -> Reading:
    """Boxes as x, y, width, height, empty for images without findings."""
    ids = [f"00{item}cfab-14fd-4e49-80ba-63a80b6bddd6" for item in range(10, 18)]
    records, rows, classes = [], [], []
    for number, name in enumerate(ids):
        image = root.photo(f"stage_2_train_images/{name}.png", mode="L")
        boxes = [_box(number + n, (None,)) for n in range(number % 3)]
        records.append(Record(image, boxes=tuple(boxes)))
        rows += [(name, *map(float, _sides(box)), 1) for box in boxes] or [
            (name, "", "", "", "", 0)
        ]
        classes.append((name, "Lung Opacity" if boxes else "Normal"))
    header = "patientId,x,y,width,height,Target"
    root.csv("stage_2_train_labels.csv", header, *rows)
    root.csv("stage_2_detailed_class_info.csv", "patientId,class", *classes)
    root.csv("stage_2_sample_submission.csv", "patientId,PredictionString", ("0000a175", "0.5 0 0"))
    _photos(root, "stage_2_test_images/0000a175-{}.png", range(3), mode="L")
    return (
        one(records).mentioning("stage_2_detailed_class_info.csv").mentioning("stage_2_test_images")
    )


@layout()
def histopathologic_cancer_detection(root: Folder) -> Reading:
    """PatchCamelyon at Kaggle: ids in a table, and a submission that has the same columns."""
    ids = [f"f38a6374c348f90b587e046aac6079959adf3{item}" for item in range(100, 108)]
    records = [
        Record(root.photo(f"train/{name}.tif"), str(number % 2)) for number, name in enumerate(ids)
    ]
    rows = [(name, number % 2) for number, name in enumerate(ids)]
    root.csv("train_labels.csv", "id,label", *rows)
    tests = [f"0b2ea2a822ad23fdb1b5dd26653da899fbd2c{item}" for item in range(100, 104)]
    _photos(root, "test/{}.tif", tests)
    root.csv("sample_submission.csv", "id,label", *((name, 0) for name in tests))
    return one(records, label_column="label").mentioning("test")


# ---- satellites --------------------------------------------------------------------------------


@layout()
def eurosat(root: Folder) -> Reading:
    """The archive has one folder with a number for its name."""
    names = ("AnnualCrop", "Forest", "SeaLake")
    return one(_classes(root, "2750/{0}/{0}_{1}.jpg", names), class_names=names)


@layout(loud_is_fine=True)
def eurosat_with_tables_of_splits(root: Folder) -> list[Reading]:
    """Kaggle's copy: class folders, and a table for each split, whose first column has no name."""
    names = ("AnnualCrop", "Forest", "SeaLake")
    splits: dict[str, list[Record]] = {}
    numbers: dict[str, list[Record]] = {}
    for split, file, items in (
        ("train", "train", (1, 2, 3)),
        ("validation", "validation", (4,)),
        ("test", "test", (5,)),
    ):
        splits[split] = _classes(root, "EuroSAT/{0}/{0}_{1}.jpg", names, items)
        numbers[split] = [
            Record(record.image, str(names.index(str(record.label)))) for record in splits[split]
        ]
        rows = [
            (f"{name}/{name}_{item}.jpg", names.index(name), name)
            for name in names
            for item in items
        ]
        root.csv(
            f"EuroSAT/{file}.csv",
            ",Filename,Label,ClassName",
            *((number, *row) for number, row in enumerate(rows)),
        )
    root.json("EuroSAT/label_map.json", {name: number for number, name in enumerate(names)})
    return [
        Reading(splits, label_column="ClassName"),
        Reading(numbers, label_column="Label").mentioning("label_map.json", "ClassName"),
    ]


@layout()
def uc_merced(root: Folder) -> Reading:
    """TIFF files in class folders, whose names have numbers from 00 to 99."""
    names = ("agricultural", "airplane", "baseballdiamond")
    root.text("UCMerced_LandUse/readme.txt", "UC Merced Land Use Dataset\n")
    path = "UCMerced_LandUse/Images/{0}/{0}{1:02d}.tif"
    return one(_classes(root, path, names, range(3)), class_names=names)


_LAND = {
    "urban_land": (0, 255, 255),
    "agriculture_land": (255, 255, 0),
    "rangeland": (255, 0, 255),
    "unknown": (0, 0, 0),
}


@layout(loud_is_fine=True)
def deepglobe_land_cover(root: Folder) -> Reading:
    """Masks in colours that a table names; images of two splits without masks."""
    colours = dict(enumerate(_LAND.values()))
    items = (119, 606, 855, 2334)
    train = _pairs(root, "train/{}_sat.jpg", "train/{}_mask.png", items, (3, 0, 1), colours=colours)
    _photos(root, "valid/{}_sat.jpg", (10452, 11119))
    _photos(root, "test/{}_sat.jpg", (100877, 101863))
    root.csv("class_dict.csv", "name,r,g,b", *((name, *rgb) for name, rgb in _LAND.items()))
    root.csv(
        "metadata.csv",
        "image_id,split,sat_image_path,mask_path",
        *((i, "train", f"train/{i}_sat.jpg", f"train/{i}_mask.png") for i in items),
        *((i, "valid", f"valid/{i}_sat.jpg", "") for i in (10452, 11119)),
        *((i, "test", f"test/{i}_sat.jpg", "") for i in (100877, 101863)),
    )
    return one(train, renamed_values=True).mentioning("valid").mentioning("test")


@layout(loud_is_fine=True)
def landcover_ai(root: Folder) -> Reading:
    """Large tiles with masks; the lists of the splits name tiles that a script has yet to cut."""
    items = ("M-33-20-D-c-4-2", "M-33-20-D-d-3-3", "M-34-51-C-b-2-1", "N-33-60-D-c-4-2")
    records = _pairs(root, "images/{}.tif", "masks/{}.tif", items, (0, 1, 2, 3))
    for split, item in zip(("train", "val", "test"), items, strict=False):
        root.lines(f"{split}.txt", *(f"{item}_{number}" for number in range(5)))
    root.text("split.py", "import cv2\n")
    return one(records).mentioning("train.txt", "val.txt", "test.txt")


@layout(loud_is_right=True)
def spacenet_2(root: Folder) -> None:
    """Outlines of buildings as GeoJSON and as WKT in a table: nothing else can train a model."""
    below = "AOI_2_Vegas_Train"
    rows = []
    for number in (1, 2, 3, 10):
        name = f"AOI_2_Vegas_img{number}"
        root.photo(f"{below}/RGB-PanSharpen/RGB-PanSharpen_{name}.tif")
        root.photo(f"{below}/PAN/PAN_{name}.tif", mode="I;16")
        ring = [[-115.1, 36.1], [-115.2, 36.1], [-115.2, 36.2], [-115.1, 36.1]]
        geometry = {"type": "Polygon", "coordinates": [ring]}
        root.json(
            f"{below}/geojson/buildings/buildings_{name}.geojson",
            {
                "type": "FeatureCollection",
                "features": [{"type": "Feature", "properties": {}, "geometry": geometry}],
            },
        )
        polygon = '"POLYGON ((3 4 0,9 4 0,9 12 0,3 4 0))"'
        rows.append((name, 1, polygon, polygon))
    root.csv(
        f"{below}/summaryData/{below}_Building_Solutions.csv",
        "ImageId,BuildingId,PolygonWKT_Pix,PolygonWKT_Geo",
        *rows,
    )


@layout(loud_is_fine=True)
def xview(root: Folder) -> Reading:
    """One GeoJSON file with the boxes of all images, in pixels, as text."""
    records = _boxed(root, "train_images/{}.tif", (100, 102, 1036, 2355), ("73", "18"))
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Polygon", "coordinates": [[[-90.5, 29.9], [-90.5, 30.0]]]},
            "properties": {
                "bounds_imcoords": ",".join(map(str, box[1:])),
                "type_id": int(str(box[0])),
                "image_id": _name(path),
            },
        }
        for path, record in records.items()
        for box in record.boxes or ()
    ]
    root.json("xView_train.geojson", {"type": "FeatureCollection", "features": features})
    _photos(root, "val_images/{}.tif", (1, 2))
    return one(records.values()).mentioning("val_images")


@layout(loud_is_fine=True)
def dota(root: Folder) -> Reading:
    """Four corners, class and difficulty in a text file for each image, below two header lines."""
    splits = {}
    for split, folder, start in (("train", "train", 0), ("validation", "val", 4)):
        items = [f"P{number:04d}" for number in range(start, start + 4)]
        names = ("plane", "large-vehicle")
        records = _boxed(root, f"{folder}/images/{{}}.png", items, names, start)
        for path, record in records.items():
            lines = [
                f"{left} {top} {right} {top} {right} {bottom} {left} {bottom} {name} 0"
                for name, left, top, right, bottom in record.boxes or ()
            ]
            head = ("imagesource:GoogleEarth", "gsd:0.146343590398")
            root.lines(f"{folder}/labelTxt/{_stem(path)}.txt", *head, *lines)
        splits[split] = [*records.values()]
    return Reading(splits)


@layout()
def inria_aerial_image(root: Folder) -> Reading:
    """`images` and `gt` with equal names, and test images of other cities without `gt`."""
    below = "AerialImageDataset"
    items = ("austin1", "austin2", "chicago1", "vienna36")
    records = _pairs(
        root, f"{below}/train/images/{{}}.tif", f"{below}/train/gt/{{}}.tif", items, (0, 255)
    )
    _photos(root, f"{below}/test/images/{{}}.tif", ("bellingham1", "bloomington1"))
    return one(records).mentioning("test")


@layout(loud_is_right=True)
def bigearthnet(root: Folder) -> None:
    """A folder for each patch, with its bands in files of different sizes and labels in JSON."""
    for row in range(4):
        patch = f"S2A_MSIL2A_20170613T101031_{row}_45"
        below = f"BigEarthNet-v1.0/{patch}/{patch}"
        for band, size in (("B01", (8, 8)), ("B02", (48, 48)), ("B05", (24, 24))):
            root.photo(f"{below}_{band}.tif", mode="I;16", size=size)
        labels = ["Mixed forest", "Water bodies"][: 1 + row % 2]
        document = {"labels": labels, "tile_source": f"{patch}.SAFE", "projection": "PROJCS[]"}
        root.json(f"{below}_labels_metadata.json", document)


# ---- faces -------------------------------------------------------------------------------------


@layout()
def lfw_with_tables(root: Folder) -> Reading:
    """Kaggle's copy: a folder in itself, most people with one image, tables of pairs around it."""
    below = "lfw-deepfunneled/lfw-deepfunneled"
    counts = {"Aaron_Eckhart": 1, "Aaron_Peirsol": 4, "Zico": 2, "Zorica_Radovic": 1}
    records = [
        Record(root.photo(f"{below}/{name}/{name}_000{number}.jpg"), name)
        for name, count in counts.items()
        for number in range(1, count + 1)
    ]
    root.csv("lfw_allnames.csv", "name,images", *counts.items())
    root.csv("people.csv", "name,images", *[*counts.items()][:2])
    root.csv("matchpairsDevTrain.csv", "name,imagenum1,imagenum2", ("Aaron_Peirsol", 1, 2))
    return one(records, class_names=tuple(counts)).mentioning("lfw_allnames.csv", "people.csv")


_ATTRIBUTES = ("5_o_Clock_Shadow", "Bald", "Male", "Smiling")


def _celeba(root: Folder, path: str) -> tuple[dict[str, list[Record]], list[tuple[str, list[int]]]]:
    records, rows = [], []
    for number in range(1, 9):
        name = f"{number:06d}.jpg"
        row = [1 if number >> bit & 1 else -1 for bit in range(4)]
        values = dict(zip(_ATTRIBUTES, row, strict=True))
        records.append(Record(root.photo(path.format(name)), values=values))
        rows.append((name, row))
    return {"train": records[:4], "validation": records[4:6], "test": records[6:]}, rows


@layout(loud_is_fine=True)
def celeba(root: Folder) -> Reading:
    """Text files with a line of the count, then one of the columns; 0, 1 and 2 are the splits."""
    splits, rows = _celeba(root, "Img/img_align_celeba/{}")
    cells = [f"{name} {' '.join(f'{value:2d}' for value in row)}" for name, row in rows]
    root.lines("Anno/list_attr_celeba.txt", len(rows), " ".join(_ATTRIBUTES), *cells)
    boxes = [f"{name}    95  71 226 313" for name, _ in rows]
    root.lines("Anno/list_bbox_celeba.txt", len(rows), "image_id x_1 y_1 width height", *boxes)
    root.lines("Anno/identity_CelebA.txt", *(f"{name} 2880" for name, _ in rows))
    parts = [f"{row[0]} {part}" for row, part in zip(rows, (0, 0, 0, 0, 1, 1, 2, 2), strict=True)]
    root.lines("Eval/list_eval_partition.txt", *parts)
    return Reading(splits).mentioning("list_bbox_celeba.txt").mentioning("identity_CelebA.txt")


@layout(loud_is_fine=True)
def celeba_with_tables(root: Folder) -> Reading:
    """Kaggle's copy: the same as CSV. The boxes are those of the images before alignment."""
    splits, rows = _celeba(root, "img_align_celeba/img_align_celeba/{}")
    attributes = ",".join(("image_id", *_ATTRIBUTES))
    root.csv("list_attr_celeba.csv", attributes, *((name, *row) for name, row in rows))
    boxes = [(name, 95, 71, 226, 313) for name, _ in rows]
    root.csv("list_bbox_celeba.csv", "image_id,x_1,y_1,width,height", *boxes)
    parts = [(row[0], part) for row, part in zip(rows, (0, 0, 0, 0, 1, 1, 2, 2), strict=True)]
    root.csv("list_eval_partition.csv", "image_id,partition", *parts)
    return Reading(splits).mentioning("list_bbox_celeba.csv")


@layout(loud_is_fine=True)
def wider_face(root: Folder) -> Reading:
    """Text files of all boxes: a path, a count, and as many lines of ten numbers."""
    splits = {}
    for split, folder in (("train", "train"), ("validation", "val")):
        lines: list[object] = []
        splits[split] = []
        for start, event in enumerate(("0--Parade", "61--Street_Battle")):
            path = f"WIDER_{folder}/images/{event}/{event.replace('--', '_')}_{split}_1_{{}}.jpg"
            records = _boxed(root, path, (849, 904), (None,), 2 * start)
            splits[split] += records.values()
            for image, record in records.items():
                boxes = record.boxes or ()
                rows = [" ".join(map(str, (*_sides(box), 0, 0, 0, 0, 0, 0))) for box in boxes]
                lines += [f"{event}/{_name(image)}", len(boxes), *rows]
        root.lines(f"wider_face_split/wider_face_{folder}_bbx_gt.txt", *lines)
        root.data(f"wider_face_split/wider_face_{folder}.mat", b"MATLAB 5.0 MAT-file")
    _photos(root, "WIDER_test/images/0--Parade/0_Parade_marchingband_1_{}.jpg", (9, 737))
    root.text("wider_face_split/readme.txt", "Attached the mappings between attribute names\n")
    return Reading(splits).mentioning("WIDER_test", "test")


@layout(loud_is_fine=True)
def utkface(root: Folder) -> Reading:
    """Age, gender, race and date in the names of the files, which end in two suffixes."""
    people = ("1_0_0", "26_1_2", "39_1_20", "80_0_3", "9_1_4")
    names = [f"{person}_2016121914062309{n}" for n, person in enumerate(people)]
    return one(_photos(root, "UTKFace/{}.jpg.chip.jpg", names)).mentioning(
        "no labels", "without labels", "no class", "without class", "--class-pattern"
    )


@layout()
def fer_2013(root: Folder) -> Reading:
    names = ("angry", "happy", "neutral")
    splits = {
        "train": _classes(root, "train/{0}/Training_10{1}8481.jpg", names, (1, 2, 3), mode="L"),
        "test": _classes(root, "test/{0}/PrivateTest_88{1}3095.jpg", names, (1, 2), mode="L"),
    }
    return Reading(splits, class_names=names)


@layout(loud_is_fine=True)
def fer_2013_table(root: Folder) -> list[Reading]:
    """Pixels as text in a column; the column of the splits is called Usage."""
    rows = []
    for number in range(9):
        pixels = " ".join(map(str, root.random().integers(0, 256, 64)))
        usage = ("Training", "Training", "PublicTest", "PrivateTest")[number % 4]
        rows.append({"emotion": number % 7, "pixels": pixels, "Usage": usage})
    root.csv("fer2013/fer2013.csv", "emotion,pixels,Usage", *(row.values() for row in rows))
    root.text("fer2013/fer2013.bib", "@article{goodfellow2013}\n")
    root.text("fer2013/README", "Challenges in Representation Learning\n")
    records = [Record(None, values=row) for row in rows]
    without = [
        Record(None, values={"emotion": row["emotion"], "pixels": row["pixels"]}) for row in rows
    ]
    usages = [str(row["Usage"]) for row in rows]
    return [
        one(records),
        Reading(
            {
                split: [
                    record for record, usage in zip(without, usages, strict=True) if usage == name
                ]
                for split, name in (
                    ("train", "Training"),
                    ("publictest", "PublicTest"),
                    ("privatetest", "PrivateTest"),
                )
            }
        ),
    ]


@layout(loud_is_fine=True)
def vggface2(root: Folder) -> Reading:
    """People as class folders; those of `test` are others than those of `train`."""
    people = {"train": ("n000002", "n000003"), "test": ("n000001", "n000009")}
    splits = {
        split: _classes(root, f"{split}/{{0}}/000{{1}}_01.jpg", names)
        for split, names in people.items()
    }
    for split, names in people.items():
        paths = [f"{name}/000{number}_01.jpg" for name in names for number in (1, 2, 3)]
        root.lines(f"{split}_list.txt", *paths)
    root.lines(
        "meta/identity_meta.csv",
        "Class_ID, Name, Sample_Num, Flag, Gender",
        'n000001, "14th_Dalai_Lama", 424, 0, m',
        'n000002, "A_Fine_Frenzy", 315, 1, f',
    )
    return Reading(splits).mentioning("identity_meta.csv")


# ---- re-identification -------------------------------------------------------------------------


@layout(loud_is_fine=True)
def market_1501(root: Folder) -> Reading:
    """Splits that only the names of the folders tell, people and cameras in those of the files."""
    splits = {
        "train": _photos(
            root,
            "bounding_box_train/{}.jpg",
            ("0002_c1s1_000451_03", "0002_c1s1_000551_01", "0007_c2s3_070952_01"),
        ),
        "test": _photos(
            root,
            "bounding_box_test/{}.jpg",
            ("-1_c1s1_000401_03", "0000_c1s1_000151_01", "0001_c1s1_001051_00"),
        ),
        "query": _photos(root, "query/{}.jpg", ("0001_c1s1_001051_00", "0003_c1s6_015971_00")),
    }
    root.data("gt_query/0001_c1s1_001051_00_good.mat", b"MATLAB 5.0 MAT-file")
    root.data("gt_query/0001_c1s1_001051_00_junk.mat", b"MATLAB 5.0 MAT-file")
    root.data("bounding_box_test/Thumbs.db", bytes(40))
    root.text("readme.txt", "The Market-1501 dataset\n")
    return Reading(splits).mentioning("gt_query", ".mat")


@layout(loud_is_fine=True)
def duke_mtmc_reid(root: Folder) -> Reading:
    below = "DukeMTMC-reID"
    names = ("0001_c2_f0046182", "0001_c2_f0046302", "0005_c1_f0050000")
    root.text(f"{below}/CITATION_DukeMTMC.txt", "Performance Measures and a Data Set\n")
    root.text(f"{below}/LICENSE_DukeMTMC-reID.txt", "CC BY-NC-SA 4.0\n")
    splits = {
        "train": _photos(root, f"{below}/bounding_box_train/{{}}.jpg", names),
        "test": _photos(
            root, f"{below}/bounding_box_test/{{}}.jpg", ("0002_c1_f0044158", "0003_c1_f1")
        ),
        "query": _photos(root, f"{below}/query/{{}}.jpg", ("0005_c2_f0046985", "0023_c1_f2")),
    }
    return Reading(splits)


@layout(loud_is_fine=True)
def veri_776(root: Folder) -> Reading:
    """Vehicles, colours and types of the training images in XML that says gb2312."""
    names = [
        f"{vehicle}_c00{n}_0003{n}600_0.jpg" for vehicle in ("0001", "0003") for n in (1, 2, 3)
    ]
    train = [Record(root.photo(f"VeRi/image_train/{name}"), name[:4]) for name in names]
    items = "".join(
        f'<Item imageName="{name}" vehicleID="{name[:4]}" cameraID="{name[5:9]}" colorID="1" '
        'typeID="4" />\n'
        for name in names
    )
    root.text(
        "VeRi/train_label.xml",
        '<?xml version="1.0" encoding="gb2312"?>\n<TrainingImages Version="1.0">\n'
        f'<Items number="{len(names)}">\n{items}</Items>\n</TrainingImages>\n',
    )
    tests = ("0002_c002_00030600_0.jpg", "0005_c003_00077625_0.jpg")
    _photos(root, "VeRi/image_test/{}", tests)
    _photos(root, "VeRi/image_query/{}", tests)
    root.lines("VeRi/name_train.txt", *names)
    root.lines("VeRi/name_test.txt", *tests)
    root.lines("VeRi/name_query.txt", *tests)
    root.lines("VeRi/list_color.txt", "1 yellow", "2 orange", "3 green")
    return one(train).mentioning("image_test").mentioning("image_query")


# ---- driving -----------------------------------------------------------------------------------


@layout(loud_is_fine=True)
def kitti_object(root: Folder) -> Reading:
    """A text file for each image with class, angles and boxes, and one of the calibration."""
    items = [f"{number:06d}" for number in range(5)]
    names = ("Car", "Pedestrian", "Cyclist")
    records = _boxed(root, "training/image_2/{}.png", items, names)
    for path, record in records.items():
        lines = [
            f"{name} 0.00 0 -1.58 {left:.2f} {top:.2f} {right:.2f} {bottom:.2f} "
            "1.65 1.67 3.64 -0.65 1.71 46.70 -1.59"
            for name, left, top, right, bottom in record.boxes or ()
        ]
        root.lines(f"training/label_2/{_stem(path)}.txt", *lines)
        root.lines(
            f"training/calib/{_stem(path)}.txt", "P0: 7.215377e+02 0.000000e+00 6.095593e+02"
        )
    _photos(root, "testing/image_2/{}.png", items[:2])
    root.lines("testing/calib/000000.txt", "P0: 7.215377e+02 0.000000e+00 6.095593e+02")
    return one(records.values()).mentioning("testing", "test")


@layout()
def cityscapes_as_unpacked(root: Folder) -> Reading:
    """Both archives unpacked into folders of their own."""
    splits = {}
    for split, folder, city in (("train", "train", "aachen"), ("validation", "val", "lindau")):
        splits[split] = []
        for number in (0, 1, 2):
            name = f"{folder}/{city}/{city}_00000{number}_000019"
            image = root.photo(f"leftImg8bit_trainvaltest/leftImg8bit/{name}_leftImg8bit.png")
            truth = f"gtFine_trainvaltest/gtFine/{name}_gtFine"
            mask = root.mask(f"{truth}_labelIds.png", (0, 7, 26))
            root.mask(f"{truth}_instanceIds.png", (0, 7, 26001))
            root.mask(
                f"{truth}_color.png", (0, 7, 26), colours={7: (128, 64, 128), 26: (0, 0, 142)}
            )
            root.json(f"{truth}_polygons.json", {"imgHeight": HEIGHT, "objects": []})
            splits[split].append(Record(image, mask=mask))
    root.text("gtFine_trainvaltest/README", "The Cityscapes Dataset\n")
    root.text("leftImg8bit_trainvaltest/license.txt", "License agreement\n")
    return Reading(splits).mentioning("_color", "color").mentioning("_instanceIds", "instance")


_ROAD = {"Void": (0, 0, 0), "Road": (128, 64, 128), "Car": (64, 0, 128), "Sky": (128, 128, 128)}


@layout(loud_is_fine=True)
def camvid_with_class_dict(root: Folder) -> Reading:
    """`train` and `train_labels`, masks with `_L` in colours that a table names."""
    colours = dict(enumerate(_ROAD.values()))
    splits = {}
    for split, folder, start in (
        ("train", "train", 0),
        ("validation", "val", 4),
        ("test", "test", 6),
    ):
        splits[split] = _pairs(
            root,
            f"CamVid/{folder}/0001TP_0066{{}}.png",
            f"CamVid/{folder}_labels/0001TP_0066{{}}_L.png",
            [90 + number for number in range(start, start + 2 + 2 * (start == 0))],
            (1, 2, 3),
            colours=colours,
        )
    root.csv("CamVid/class_dict.csv", "name,r,g,b", *((name, *rgb) for name, rgb in _ROAD.items()))
    return Reading(splits, renamed_values=True)


@layout(loud_is_fine=True)
def bdd100k(root: Folder) -> Reading:
    """One JSON file for each split, with boxes as x1, y1, x2, y2, and lanes."""
    splits = {}
    for split, folder, start in (("train", "train", 0), ("validation", "val", 4)):
        items = [f"0000f77c-6257be{number}8" for number in range(start, start + 4)]
        path = f"bdd100k/images/100k/{folder}/{{}}.jpg"
        records = _boxed(root, path, items, ("car", "traffic sign"), start)
        document = [
            {
                "name": _name(image),
                "attributes": {"weather": "clear", "scene": "city street", "timeofday": "daytime"},
                "timestamp": 10000,
                "labels": [
                    {
                        "category": box[0],
                        "attributes": {"occluded": False},
                        "box2d": dict(zip(("x1", "y1", "x2", "y2"), box[1:], strict=True)),
                        "id": number,
                    }
                    for number, box in enumerate(record.boxes or ())
                ],
            }
            for image, record in records.items()
        ]
        root.json(f"bdd100k/labels/bdd100k_labels_images_{folder}.json", document)
        splits[split] = [*records.values()]
    _photos(root, "bdd100k/images/100k/test/cabc30fc-e7726{}.jpg", (578, 579))
    return Reading(splits).mentioning("test")


@layout(loud_is_fine=True)
def mapillary_vistas(root: Folder) -> Reading:
    """Three kinds of masks for each image, and test images without any."""
    splits = {}
    palette = {0: (165, 42, 42), 13: (128, 64, 128), 55: (0, 0, 142)}
    for split, folder, start in (("train", "training", 0), ("validation", "validation", 3)):
        items = [f"_CxCvrWxF1AAR9JODTE{number}" for number in range(start, start + 3)]
        splits[split] = _pairs(
            root,
            f"{folder}/images/{{}}.jpg",
            f"{folder}/labels/{{}}.png",
            items,
            (0, 13, 55),
            palette=palette,
        )
        for item in items:
            root.mask(f"{folder}/instances/{item}.png", (0, 3328, 14080))
            root.mask(
                f"{folder}/panoptic/{item}.png", (0, 1, 2), colours={1: (9, 0, 0), 2: (0, 9, 0)}
            )
        root.json(f"{folder}/panoptic/panoptic_2018.json", {"images": [], "annotations": []})
    _photos(root, "testing/images/{}.jpg", ("a_-1cXlZ6hyFJNRZJQfb", "a0eCmIkEbWPyLQ8P5"))
    root.json("config.json", {"labels": [{"name": "animal--bird", "readable": "Bird"}]})
    root.text("LICENSE", "CC BY-NC-SA\n")
    return Reading(splits).mentioning("instances").mentioning("testing", "test")


@layout(loud_is_fine=True)
def tusimple_lanes(root: Folder) -> Reading:
    """Lines of JSON in a `.json` file, which name only the last of the frames of each clip."""
    records = []
    for file, clip in (("0313", "0313-1"), ("0531", "0531")):
        rows = []
        for number in (60, 5320):
            for frame in (1, 10):
                root.photo(f"train_set/clips/{clip}/{number}/{frame}.jpg")
            path = f"clips/{clip}/{number}/20.jpg"
            lanes = [[-2, -2, 12 + number % 7], [-2, 20, 21]]
            rows.append({"lanes": lanes, "h_samples": [10, 15, 20], "raw_file": path})
            records.append(
                Record(root.photo(f"train_set/{path}"), values={"h_samples": [10, 15, 20]})
            )
        root.lines(f"train_set/label_data_{file}.json", *map(json.dumps, rows))
    root.text("train_set/readme.md", "# Lane Detection Challenge\n")
    return one(records).mentioning("1.jpg", "10.jpg", count=8)


@layout(loud_is_fine=True)
def gtsrb(root: Folder) -> list[Reading]:
    """Numbered class folders, each with its own table of signs in the images."""
    records, boxed = [], []
    for label in (0, 1, 14):
        rows = []
        for number in range(3):
            name = f"00000_0000{number}.ppm"
            image = root.photo(f"GTSRB/Final_Training/Images/{label:05d}/{name}")
            records.append(Record(image, f"{label:05d}"))
            box = _box(number + label, (None,))
            boxed.append(Record(image, boxes=(box,)))
            rows.append(";".join(map(str, (name, WIDTH, HEIGHT, *box[1:], label))))
        header = "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId"
        root.lines(f"GTSRB/Final_Training/Images/{label:05d}/GT-{label:05d}.csv", header, *rows)
    tests = [f"{number:05d}.ppm" for number in range(3)]
    _photos(root, "GTSRB/Final_Test/Images/{}", tests)
    root.lines(
        "GTSRB/Final_Test/Images/GT-final_test.test.csv",
        "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2",
        *(f"{name};{WIDTH};{HEIGHT};5;6;20;16" for name in tests),
    )
    root.text("GTSRB/Readme-Images.txt", "Image format: ppm\n")
    return [
        one(records).mentioning("GT-00000.csv", "GT-").mentioning("Final_Test"),
        one(boxed).mentioning("Final_Test"),
    ]


@layout(loud_is_fine=True)
def gtsrb_with_tables(root: Folder) -> list[Reading]:
    """Kaggle's copy: the classes of the test images are only in `Test.csv`."""
    classes: dict[str, list[Record]] = {"train": [], "test": []}
    boxed: dict[str, list[Record]] = {"train": [], "test": []}
    rows: dict[str, list[Sequence[object]]] = {"train": [], "test": []}
    for number in range(12):
        label = (0, 2, 10)[number % 3]
        split = "train" if number < 9 else "test"
        name = f"000{label:02d}_00000_000{number:02d}.png" if number < 9 else f"{number:05d}.png"
        path = f"Train/{label}/{name}" if number < 9 else f"Test/{name}"
        image = root.photo(path)
        box = _box(number, (str(label),))
        classes[split].append(Record(image, str(label)))
        boxed[split].append(Record(image, boxes=(box,)))
        rows[split].append((WIDTH, HEIGHT, *box[1:], label, path))
    header = "Width,Height,Roi.X1,Roi.Y1,Roi.X2,Roi.Y2,ClassId,Path"
    root.csv("Train.csv", header, *rows["train"])
    root.csv("Test.csv", header, *rows["test"])
    _photos(root, "Meta/{}.png", (0, 2, 10))
    metas = [(f"Meta/{label}.png", label, 1, 0, "1.1") for label in (0, 2, 10)]
    root.csv("Meta.csv", "Path,ClassId,ShapeId,ColorId,SignId", *metas)
    return [
        Reading(boxed).mentioning("Meta", "Meta.csv"),
        Reading(classes, label_column="ClassId").mentioning("Meta", "Meta.csv"),
    ]


@layout(loud_is_fine=True)
def comma10k(root: Folder) -> Reading:
    """`imgs` and `masks` with equal names, in five colours, and a list of finished masks."""
    colours = {
        0: (64, 32, 32),
        1: (255, 0, 0),
        2: (128, 128, 96),
        3: (0, 255, 102),
        4: (204, 0, 255),
    }
    items = [f"000{n}_0085e9e41513078a_2018-08-19--13-26-08_11_86{n}" for n in range(5)]
    path = "{}/{{}}.png".format
    records = _pairs(root, path("imgs"), path("masks"), items, (0, 1, 2, 3), colours=colours)
    root.lines("files_trainable", *(f"masks/{item}.png" for item in items))
    root.text("README.md", "# comma10k\n")
    root.text("tools/viewer.py", "import cv2\n")
    return one(records, renamed_values=True).mentioning("files_trainable")


@layout(loud_is_right=True)
def nuimages(root: Folder) -> None:
    """Tables of JSON that refer to each other by tokens."""
    samples = []
    for camera in ("CAM_FRONT", "CAM_BACK"):
        for number in range(3):
            name = f"n003-2018-01-02-11-48-43+0800__{camera}__151486492513370{number}.jpg"
            path = f"samples/{camera}/{name}"
            root.photo(path)
            samples.append({"token": f"{camera}{number}", "filename": path, "is_key_frame": True})
    root.json("v1.0-mini/sample_data.json", samples)
    objects = [
        {
            "token": f"o{n}",
            "sample_data_token": sample["token"],
            "category_token": "c1",
            "bbox": [2, 3, 14, 9],
        }
        for n, sample in enumerate(samples)
    ]
    root.json("v1.0-mini/object_ann.json", objects)
    root.json("v1.0-mini/category.json", [{"token": "c1", "name": "vehicle.car"}])
    root.json("v1.0-mini/log.json", [{"token": "l1", "location": "singapore"}])


# ---- documents ---------------------------------------------------------------------------------


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
            a, b, c = "rge", "khw", "abc"[number % 3]
            path = f"images{a[0]}/{a[0]}/{b[0]}/{c}/{a}3{number}d00/50321003{number}+-0034.tif"
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
        records = _boxed(root, f"dataset/{folder}/images/{{}}.png", items, names, start)
        for path, record in records.items():
            form = [
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
            root.json(f"dataset/{folder}/annotations/{_stem(path)}.json", {"form": form})
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
        records = _boxed(root, f"SROIE2019/{split}/img/{{}}.jpg", items, (None,), start)
        for path, record in records.items():
            lines = [
                f"{left},{top},{right},{top},{right},{bottom},{left},{bottom},NO. 5, JALAN TAMAN"
                for _, left, top, right, bottom in record.boxes or ()
            ]
            root.lines(f"SROIE2019/{split}/box/{_stem(path)}.txt", *lines)
            entities = {"company": "BOOK TA .K SDN BHD", "date": "25/12/2018", "total": "9.00"}
            root.json(f"SROIE2019/{split}/entities/{_stem(path)}.txt", entities)
        splits[split] = [*records.values()]
    return Reading(splits).mentioning("entities")


@layout()
def publaynet(root: Folder) -> Reading:
    """COCO with `train.json` next to `train/`, and test images without annotations."""
    names = ("text", "title", "list", "table", "figure")
    splits = {}
    for split, folder, start in (("train", "train", 0), ("validation", "val", 4)):
        items = [f"PMC499122{number}_00003" for number in range(start, start + 4)]
        records = _boxed(root, f"publaynet/{folder}/{{}}.jpg", items, names, start)
        root.json(f"publaynet/{folder}.json", _coco(records, names))
        splits[split] = [*records.values()]
    _photos(root, "publaynet/test/PMC387749{}_00001.jpg", (1, 2))
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
        records = _boxed(root, "PNG/{}.png", items, names, start)
        root.json(f"COCO/{file}.json", _coco(records, names))
        for item in items:
            cells = [{"bbox": [1.5, 2.5, 8, 3], "text": "Annual report"}]
            root.json(f"JSON/{item}.json", {"metadata": {"page_no": 1}, "cells": cells})
        splits[split] = [*records.values()]
    return Reading(splits).mentioning("JSON")


# ---- plants ------------------------------------------------------------------------------------


@layout(loud_is_fine=True)
def plant_village(root: Folder) -> list[Reading]:
    """The same leaves three times: in colour, in grey, and cut out."""
    names = ("Apple___Apple_scab", "Apple___healthy", "Corn_(maize)___Common_rust_")
    below = "plantvillage dataset"
    kinds = {
        "color": _classes(
            root, f"{below}/color/{{0}}/00075aa8-d81a___FREC_Scab 333{{1}}.JPG", names
        ),
        "grayscale": _classes(
            root, f"{below}/grayscale/{{0}}/00075aa8-d81a___FREC_Scab 333{{1}}.JPG", names, mode="L"
        ),
        "segmented": _classes(
            root,
            f"{below}/segmented/{{0}}/00075aa8-d81a___FREC_Scab 333{{1}}_final_masked.jpg",
            names,
        ),
    }
    return [
        one(records, class_names=names).mentioning(*(other for other in kinds if other != kind))
        for kind, records in kinds.items()
    ]


@layout(loud_is_fine=True)
def oxford_flowers_102(root: Folder) -> Reading:
    """Labels and splits are in files of MATLAB, which must at least be named."""
    records = _photos(root, "jpg/image_0{}.jpg", [f"{number:04d}" for number in range(1, 9)])
    for name in ("imagelabels.mat", "setid.mat"):
        root.data(name, b"MATLAB 5.0 MAT-file, Platform: GLNX86".ljust(128) + bytes(64))
    root.text("README.txt", "102 category flower dataset\n")
    return one(records).mentioning("imagelabels.mat").mentioning("setid.mat")


@layout()
def plant_doc(root: Folder) -> Reading:
    """Classes with spaces, one of which has no test images; suffixes in all spellings."""
    names = ("Apple leaf", "Corn rust leaf", "Tomato leaf")
    rare = "Tomato two spotted spider mites leaf"
    splits = {
        "train": [
            *_classes(
                root,
                "train/{0}/{1}",
                names,
                ("a?itok=1.jpg", "Apple%20leaf.JPG", "b.jpeg", "c.png"),
            ),
            *_classes(root, "train/{0}/{1}", (rare,), ("spider.jpg", "mites.jpg")),
        ],
        "test": _classes(root, "test/{0}/{1}", names, ("d.jpg", "e.jpg")),
    }
    root.text("LICENSE.txt", "CC BY 4.0\n")
    root.text("README.md", "# PlantDoc\n")
    return Reading(splits, class_names=(*names, rare))


@layout(loud_is_fine=True)
def inaturalist_2018(root: Folder) -> Reading:
    """Species two folders below, and files like COCO's without boxes, which hold the splits."""
    species = {7477: "Aesculus glabra", 7478: "Aesculus hippocastanum", 1003: "Anas acuta"}
    categories = [{"id": number, "name": name} for number, name in species.items()]
    splits = {}
    for split, file, items in (("train", "train", "abc"), ("validation", "val", "d")):
        images, annotations = [], []
        splits[split] = []
        for number, name in species.items():
            kingdom = "Plantae" if number > 7000 else "Aves"
            for item in items:
                path = f"train_val2018/{kingdom}/{number}/3b60c9486db1d2ee875f11a669fbde4{item}.jpg"
                splits[split].append(Record(root.photo(path), name))
                key = len(images) + 1
                images.append({"id": key, "file_name": path, "width": WIDTH, "height": HEIGHT})
                annotations.append({"id": key, "image_id": key, "category_id": number})
        document = {"images": images, "annotations": annotations, "categories": categories}
        root.json(f"{file}2018.json", document)
    return Reading(splits)


@layout(loud_is_fine=True)
def leaf_counting(root: Folder) -> Reading:
    """Three images of each plant: the photo, its leaves, and their centres; counts in a table."""
    records = []
    for folder in ("A1", "A2"):
        rows = []
        for number in (1, 2, 3):
            below = f"CVPPP2017_LCC_training/training/{folder}/plant00{number}"
            image = root.photo(f"{below}_rgb.png")
            mask = root.mask(f"{below}_label.png", (0, 1, 2, 3))
            root.mask(f"{below}_centers.png", (0, 255))
            records.append(Record(image, mask=mask))
            rows.append(f"plant00{number}_rgb.png, 3")
        root.lines(f"CVPPP2017_LCC_training/training/{folder}/{folder}.csv", *rows)
    return one(records).mentioning("_centers", "centers").mentioning("A1.csv", ".csv")


# ---- industry ----------------------------------------------------------------------------------


@layout(loud_is_fine=True)
def mvtec_ad(root: Folder) -> list[Reading]:
    """`train` has only good ones; masks of the defects are in a third folder."""
    root.text("bottle/readme.txt", "MVTec AD\n")
    root.text("bottle/license.txt", "CC BY-NC-SA 4.0\n")
    train = _photos(root, "bottle/train/good/00{}.png", range(5), "good")
    test = _photos(root, "bottle/test/good/00{}.png", range(2), "good")
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
            records = _boxed(root, path, range(start, start + count), (name,), start)
            for image, record in records.items():
                text = _voc_xml(_name(image), record.boxes or (), folder="cr")
                root.text(f"NEU-DET/{split}/annotations/{_stem(image)}.xml", text)
            splits[split] += records.values()
    return Reading(splits, box_tolerance=1.01)


def _run_lengths(pixels: NDArray[np.bool_]) -> str:
    """Starts and lengths, counted from 1 down the columns."""
    edges = np.flatnonzero(np.diff(pixels.T.ravel(), prepend=False, append=False))
    starts, ends = edges[::2], edges[1::2]
    return " ".join(f"{start + 1} {end - start}" for start, end in zip(starts, ends, strict=True))


@layout(loud_is_fine=True)
def severstal(root: Folder) -> Reading:
    """Masks as run lengths in a table, with a row for each class of an image."""
    records, rows = [], []
    for number in range(6):
        name = f"0002cc93{number}.jpg"
        mask = root.regions((0, 1 + number % 2, 3) if number % 3 == 0 else (0, 1 + number % 3))
        records.append(Record(root.photo(f"train_images/{name}"), mask=mask))
        rows += [
            (name, value, _run_lengths(mask == value)) for value in np.unique(mask)[1:].tolist()
        ]
    root.csv("train.csv", "ImageId,ClassId,EncodedPixels", *rows)
    _photos(root, "test_images/0000f269{}.jpg", range(2))
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
        Reading(masked).mentioning("without a mask", "no mask", "Labels.txt", count=8),
    ]


@layout(loud_is_fine=True)
def casting_product(root: Folder) -> Reading:
    """Each folder once more in itself; the same castings in another size, without splits."""
    names = ("def_front", "ok_front")
    splits = {
        "train": _classes(
            root, "casting_data/casting_data/train/{0}/cast_0_10{1}.jpeg", names, (1, 2, 3)
        ),
        "test": _classes(
            root, "casting_data/casting_data/test/{0}/cast_0_11{1}.jpeg", names, (1, 2)
        ),
    }
    _classes(
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
        boxed = _boxed(root, path, (1, 2, 3), (kind.lower(),))
        for image, record in boxed.items():
            text = _voc_xml(_name(image), record.boxes or (), folder=kind)
            root.text(f"PCB_DATASET/Annotations/{kind}/{_stem(image)}.xml", text)
        records += boxed.values()
        _photos(root, f"PCB_DATASET/rotation/{kind}_rotation/01_{kind.lower()}_0{{}}.jpg", (1, 2))
        root.lines(f"PCB_DATASET/rotation/{kind}_angles.txt", f"01_{kind.lower()}_01\t10")
    _photos(root, "PCB_DATASET/PCB_USED/{}.JPG", ("01", "04"), size=(64, 48))
    root.text("PCB_DATASET/rotate.py", "import cv2\n")
    reading = one(records, box_tolerance=1.01)
    return reading.mentioning(
        "PCB_USED", "rotation", "no annotation", "without annotation", count=8
    )


# ---- retail ------------------------------------------------------------------------------------


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
        records = _boxed(root, f"SKU110K_fixed/images/{file}_{{}}.jpg", items, ("object",), start)
        rows = [
            ",".join(map(str, (_name(path), *box[1:], box[0], WIDTH, HEIGHT)))
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
        "train": _classes(root, f"{below}/Training/{{0}}/{{1}}_100.jpg", names, ("0", "1", "r_0")),
        "test": _classes(root, f"{below}/Test/{{0}}/{{1}}_100.jpg", names, ("3", "r_3")),
    }
    _photos(root, f"{below}/test-multiple_fruits/{{}}.jpg", ("apple_apricot", "cherries_wax"))
    root.text(f"{below}/readme.md", "# Fruits-360\n")
    root.text(f"{below}/papers/mihai.pdf", "%PDF-1.4\n")
    return Reading(splits).mentioning("test-multiple_fruits")


# ---- animals -----------------------------------------------------------------------------------


@layout(loud_is_fine=True)
def oxford_iiit_pets(root: Folder) -> Reading:
    """Files of MATLAB among the images, of Mac OS among the masks, and boxes of some."""
    items = ("Abyssinian_1", "Abyssinian_2", "beagle_1", "beagle_2")
    records = _pairs(root, "images/{}.jpg", "annotations/trimaps/{}.png", items, (1, 2, 3))
    root.data("images/Abyssinian_100.mat", b"MATLAB 5.0 MAT-file")
    lines = [f"{item} {1 + number // 2} {1 + number // 2} 1" for number, item in enumerate(items)]
    root.lines("annotations/list.txt", "#Image CLASS-ID SPECIES BREED ID", *lines)
    root.lines("annotations/trainval.txt", lines[0], lines[2])
    root.lines("annotations/test.txt", lines[1], lines[3])
    for item in items:
        root.data(f"annotations/trimaps/._{item}.png", b"\0\5\26\7\0\2\0\0Mac OS X")
    text = _voc_xml("beagle_1.jpg", (("dog", 4, 5, 16, 12),), folder="OXIIIT")
    root.text("annotations/xmls/beagle_1.xml", text)
    splits = {"train": [records[0], records[2]], "test": [records[1], records[3]]}
    return Reading(splits).mentioning("xmls", "boxes")


@layout(loud_is_fine=True)
def stanford_dogs(root: Folder) -> list[Reading]:
    """VOC's XML in files without suffix, below class folders, next to images in the same ones."""
    labelled, boxed = [], []
    for name in (
        "n02085620-Chihuahua",
        "n02085782-Japanese_spaniel",
        "n02116738-African_hunting_dog",
    ):
        key, _, breed = name.partition("-")
        for number in (10074, 10131, 10621):
            image = root.photo(f"images/Images/{name}/{key}_{number}.jpg")
            box = _box(number, (breed,))
            labelled.append(Record(image, name))
            boxed.append(Record(image, boxes=(box,)))
            text = _voc_xml("%s", (box,), folder=key[1:])
            root.text(f"annotations/Annotation/{name}/{key}_{number}", text)
    return [
        one(labelled).mentioning("Annotation", "annotations"),
        one(boxed, box_tolerance=1.01),
    ]


@layout(loud_is_fine=True)
def cub_200_2011(root: Folder) -> Reading:
    """Class folders, and numbered lists of images, splits, boxes and parts."""
    names = ("001.Black_footed_Albatross", "002.Laysan_Albatross", "200.Common_Yellowthroat")
    below = "CUB_200_2011"
    splits: dict[str, list[Record]] = {"train": [], "test": []}
    lists: dict[str, list[str]] = {
        key: [] for key in ("images", "image_class_labels", "train_test_split", "bounding_boxes")
    }
    for label, name in enumerate(names, 1):
        for number in range(4):
            key = len(lists["images"]) + 1
            file = f"{name}/{name[4:]}_000{number}_79611{number}.jpg"
            split = "train" if number % 2 else "test"
            splits[split].append(Record(root.photo(f"{below}/images/{file}"), name))
            lists["images"].append(f"{key} {file}")
            lists["image_class_labels"].append(f"{key} {label}")
            lists["train_test_split"].append(f"{key} {number % 2}")
            lists["bounding_boxes"].append(f"{key} 4.0 3.0 12.0 9.0")
    for key, lines in lists.items():
        root.lines(f"{below}/{key}.txt", *lines)
    root.lines(f"{below}/classes.txt", *(f"{n} {name}" for n, name in enumerate(names, 1)))
    root.lines(f"{below}/parts/part_locs.txt", "1 1 0.0 0.0 0")
    root.lines(f"{below}/attributes/image_attribute_labels.txt", "1 1 0 3 27.7080")
    root.lines("attributes.txt", "1 has_bill_shape::curved_(up_or_down)")
    return Reading(splits, class_names=names).mentioning("bounding_boxes.txt")


@layout()
def animals_with_attributes_2(root: Folder) -> Reading:
    """Class folders in `JPEGImages` without annotations of VOC; lists of classes around them."""
    below = "Animals_with_Attributes2"
    names = ("antelope", "grizzly+bear", "killer+whale", "ox")
    records = _classes(root, f"{below}/JPEGImages/{{0}}/{{0}}_1000{{1}}.jpg", names)
    root.lines(f"{below}/classes.txt", *(f"{n:8d}\t{name}" for n, name in enumerate(names, 1)))
    root.lines(f"{below}/trainclasses.txt", *names[:3])
    root.lines(f"{below}/testclasses.txt", names[3])
    root.lines(f"{below}/predicate-matrix-binary.txt", *["0 1 1 0"] * 4)
    root.text(f"{below}/README-attributes.txt", "Animals with Attributes 2\n")
    return one(records, class_names=names)


# ---- what Kaggle, Roboflow and courses publish -------------------------------------------------


@layout()
def intel_image_classification(root: Folder) -> Reading:
    """Each folder once more in itself, with a prefix before the name of the split."""
    names = ("buildings", "forest", "sea")
    splits = {
        "train": _classes(root, "archive/seg_train/seg_train/{0}/{1}.jpg", names, (0, 10, 1000)),
        "test": _classes(root, "archive/seg_test/seg_test/{0}/2{1}.jpg", names, (0, 10)),
    }
    _photos(root, "archive/seg_pred/seg_pred/{}.jpg", (5, 6))
    return Reading(splits, class_names=names).mentioning("seg_pred")


@layout()
def brain_tumor_mri(root: Folder) -> Reading:
    """`Training` and `Testing`, with spaces and parentheses in the names of the files."""
    names = ("glioma_tumor", "no_tumor", "pituitary_tumor")
    splits = {
        "train": _classes(root, "Training/{0}/gg ({1}).jpg", names, (1, 2, 10)),
        "test": _classes(root, "Testing/{0}/image({1}).jpg", names, (1, 2)),
    }
    return Reading(splits, class_names=names)


@layout(loud_is_fine=True)
def brain_mri_twice(root: Folder) -> Reading:
    """The archive has all images twice: in `yes` and `no`, and again in a folder around both."""
    names = ("no", "yes")
    records = _classes(root, "{0}/{1} {0}.jpg", names, (1, 2, 17), mode="L")
    for name in names:
        for number in (1, 2, 17):
            file = f"{name}/{number} {name}.jpg"
            root.data(f"brain_tumor_dataset/{file}", (root.path / file).read_bytes())
    return one(records, class_names=names).mentioning("brain_tumor_dataset")


@layout(loud_is_fine=True)
def chest_ct_scan(root: Folder) -> Reading:
    """Classes of `train` and `valid` have the stage in their names, those of `test` do not."""
    staged = (
        "adenocarcinoma_left.lower.lobe_T2_N0_M0_Ib",
        "large.cell.carcinoma_left.hilum_T2_N2_M0_IIIa",
        "normal",
    )
    plain = ("adenocarcinoma", "large.cell.carcinoma", "normal")
    splits = {
        "train": _classes(root, "Data/train/{0}/000000 ({1}).png", staged, (1, 2, 3)),
        "validation": _classes(root, "Data/valid/{0}/000000 ({1}).png", staged, (1, 2)),
        "test": _classes(root, "Data/test/{0}/000108 ({1}).png", plain, (1, 2)),
    }
    return Reading(splits).mentioning("adenocarcinoma", "large.cell.carcinoma")


@layout(loud_is_fine=True)
def state_farm_drivers(root: Folder) -> Reading:
    """Class folders c0 to c9; a table has the driver of each image, whom splits must respect."""
    names = ("c0", "c1", "c2")
    train = _classes(root, "imgs/train/{0}/img_4473{1}.jpg", names)
    _photos(root, "imgs/test/img_{}.jpg", (1, 10, 100))
    rows = [(f"p00{n}", name, f"img_4473{n}.jpg") for name in names for n in (1, 2, 3)]
    root.csv("driver_imgs_list.csv", "subject,classname,img", *rows)
    submission = [(f"img_{number}.jpg", 0.5, 0.5, 0) for number in (1, 10, 100)]
    root.csv("sample_submission.csv", "img,c0,c1,c2", *submission)
    return one(train, class_names=names).mentioning("driver_imgs_list.csv").mentioning("test")


@layout(loud_is_fine=True)
def cassava_leaf_disease(root: Folder) -> list[Reading]:
    """A table of class numbers, their names in JSON, and the same images as TFRecord."""
    diseases = ("Cassava Bacterial Blight (CBB)", "Cassava Brown Streak Disease (CBSD)", "Healthy")
    ids = [f"100001515{number}.jpg" for number in range(8)]
    images = [root.photo(f"train_images/{name}") for name in ids]
    root.csv("train.csv", "image_id,label", *((name, n % 3) for n, name in enumerate(ids)))
    root.json("label_num_to_disease_map.json", {str(n): name for n, name in enumerate(diseases)})
    root.photo("test_images/2216849948.jpg")
    root.csv("sample_submission.csv", "image_id,label", ("2216849948.jpg", 4))
    root.data("train_tfrecords/ld_train00-1338.tfrec", bytes(64))
    root.data("test_tfrecords/ld_test00-1.tfrec", bytes(64))
    labels: list[list[str]] = [[str(n % 3) for n in range(8)], [diseases[n % 3] for n in range(8)]]
    numbers, names = (
        one([Record(*pair) for pair in zip(images, label, strict=True)], label_column="label")
        .mentioning("test_images")
        .mentioning("train_tfrecords", ".tfrec")
        for label in labels
    )
    return [numbers.mentioning("label_num_to_disease_map.json"), names]


@layout(loud_is_fine=True)
def rock_paper_scissors(root: Folder) -> Reading:
    """A course's archives next to each other: class folders twice, and images without classes."""
    names = ("paper", "rock", "scissors")
    splits = {
        "train": _classes(root, "rps/rps/{0}/{0}0{1}-000.png", names),
        "test": _classes(root, "rps-test-set/rps-test-set/{0}/test{0}0{1}-00.png", names, (1, 2)),
    }
    _photos(root, "rps-validation/{}.png", ("paper1", "rock2", "scissors3"))
    return Reading(splits, class_names=names).mentioning("rps-validation")


@layout()
def roboflow_folder_export(root: Folder) -> Reading:
    """Two read-me files, names with a hash, and a class that `valid` lacks."""
    path = "{{0}}/{{1}}_jpg.rf.0a1b2c3d4e5f60718293a4b5c6d7e8f{}.jpg".format
    names = ("Ripe Tomato", "Unripe-Tomato")
    splits = {
        "train": _classes(root, f"train/{path(0)}", names, ("IMG_0984", "IMG_0991", "WIN_20_Pro")),
        "validation": _classes(root, f"valid/{path(1)}", names[:1], ("IMG_0984", "IMG_1002")),
        "test": _classes(root, f"test/{path(2)}", names, ("IMG_0984",)),
    }
    root.text("README.dataset.txt", "# Tomatoes > 2023-05-01\n")
    root.text("README.roboflow.txt", "Tomatoes - v1\nThe dataset includes 9 images.\n")
    return Reading(splits, class_names=names)


@layout()
def roboflow_yolo_export(root: Folder) -> Reading:
    """Paths in data.yaml that lead out of the folder, and an image without objects."""
    names = ("helmet", "no-helmet")
    splits = {}
    for split, folder, start in (("train", "train", 0), ("validation", "valid", 5)):
        items = [
            f"hard_hat_{n}_jpg.rf.0a1b2c3d4e5f60718293a4b5c6d7e8f{n}"
            for n in range(start, start + 4)
        ]
        records = _boxed(root, f"{folder}/images/{{}}.jpg", items, names, start)
        for path, record in records.items():
            lines = []
            for name, left, top, right, bottom in record.boxes or ():
                x, y = (left + right) / 2 / WIDTH, (top + bottom) / 2 / HEIGHT
                size = f"{(right - left) / WIDTH} {(bottom - top) / HEIGHT}"
                lines.append(f"{names.index(str(name))} {x} {y} {size}")
            root.lines(f"{folder}/labels/{_name(path).removesuffix('.jpg')}.txt", *lines)
        splits[split] = [*records.values()]
    root.text("train/labels/background_jpg.rf.77.txt", "")
    splits["train"].append(Record(root.photo("train/images/background_jpg.rf.77.jpg"), boxes=()))
    root.lines(
        "data.yaml",
        "train: ../train/images",
        "val: ../valid/images",
        "test: ../test/images",
        "",
        "nc: 2",
        f"names: {[*names]}",
        "",
        "roboflow:",
        "  workspace: someone",
        "  url: https://universe.roboflow.com/someone/hard-hats/dataset/1",
    )
    root.text("README.roboflow.txt", "hard-hats - v1\n")
    return Reading(splits)


@layout()
def archive_in_itself(root: Folder) -> Reading:
    """`archive/`, two folders in themselves, a copy for Mac OS, and everything that collects."""
    below = "archive/Rice Leaf Disease Images/Rice Leaf Disease Images"
    names = ("Bacterialblight", "Blast", "Tungro")
    records = _classes(root, f"{below}/{{0}}/{{0}}_00{{1}}.JPG", names)
    for name in names:
        root.data(f"{below}/{name}/.DS_Store", bytes(40))
        root.data(f"__MACOSX/{below}/{name}/._{name}_001.JPG", b"\0\5\26\7\0\2\0\0Mac OS X")
    root.data("archive/Thumbs.db", bytes(40))
    root.data(f"{below}/desktop.ini", b"[.ShellClassInfo]\r\n")
    root.text("archive/README.md", "# Rice leaves\n")
    return one(records, class_names=names)


@layout()
def checkpoints_of_notebooks(root: Folder) -> Reading:
    """Jupyter's copies of images that were opened, between and inside the class folders."""
    names = ("cats", "dogs")
    splits = {
        "train": _classes(root, "train/{0}/{0[0]}{1}.jpg", names),
        "validation": _classes(root, "val/{0}/{0[0]}{1}.jpg", names),
    }
    root.photo("train/cats/.ipynb_checkpoints/c1-checkpoint.jpg")
    root.folder("train/.ipynb_checkpoints")
    root.folder("val/.ipynb_checkpoints")
    root.json(".ipynb_checkpoints/train-checkpoint.ipynb", {"cells": []})
    root.json("train.ipynb", {"cells": [], "metadata": {}, "nbformat": 4})
    return Reading(splits, class_names=names)


# ---- small oddities ----------------------------------------------------------------------------


@layout(loud_is_fine=True)
def preview_next_to_splits(root: Folder) -> Reading:
    names = ("bees", "ants")
    splits = {
        "train": _classes(root, "hymenoptera_data/train/{0}/0{1}_3be1.jpg", names),
        "validation": _classes(root, "hymenoptera_data/val/{0}/5{1}_abd2.jpg", names, (1, 2)),
    }
    root.photo("dataset-cover.png", size=(64, 48))
    return Reading(splits).mentioning("dataset-cover.png", "1 image", count=1)


@layout(loud_is_fine=True)
def stray_images_among_classes(root: Folder) -> Reading:
    """A chart of the classes next to their folders, and one image that no one sorted."""
    names = ("cardboard", "glass", "metal", "trash")
    records = _classes(root, "{0}/{0}{1}.jpg", names)
    root.photo("class_distribution.png", size=(64, 48))
    root.photo("IMG_2041.jpg")
    return one(records, class_names=names).mentioning("class_distribution.png", count=2)


@layout()
def windows_and_cameras(root: Folder) -> Reading:
    """Upper-case suffixes, spaces, parentheses, commas, ampersands, and German words for a copy."""
    files = ("IMG_0001.JPG", "New Image (2).jpeg", "Foto - Kopie.PNG", "a,b & c.Jpg", "scan#1.TIF")
    names = ("Bolts & Nuts", "Screws (M4)", "Washers, flat")
    return one(_classes(root, "{0}/{1}", names, files), class_names=names)


@layout()
def chinese_names(root: Folder) -> Reading:
    """Folders of splits in English, classes and files in Chinese, one list of them."""
    names = ("可回收物", "有害垃圾", "厨余垃圾")
    splits = {
        "train": _classes(root, "垃圾分类/train/{0}/图片_{1}.jpg", names),
        "validation": _classes(root, "垃圾分类/val/{0}/图片_{1}.jpg", names, (4, 5)),
    }
    root.text("垃圾分类/说明.txt", "数据集说明\n", encoding="gb18030")
    return Reading(splits, class_names=tuple(sorted(names)))


@layout()
def project_folder(root: Folder) -> Reading:
    """A repository: data next to a notebook, scripts, requirements and a saved model."""
    names = ("healthy", "rust", "scab")
    splits = {
        "train": _classes(root, "data/train/{0}/leaf_{1}.jpg", names),
        "test": _classes(root, "data/test/{0}/leaf_{1}.jpg", names, (1, 2)),
    }
    root.json("notebooks/eda.ipynb", {"cells": [], "metadata": {}, "nbformat": 4})
    root.text("train.py", "import torch\n")
    root.text("requirements.txt", "torch\ntorchvision\n")
    root.json("config.json", {"epochs": 10, "classes": [*names]})
    root.data("models/best.pt", b"PK\3\4" + bytes(64))
    root.text(".gitignore", "data/\n")
    root.text("data/README.md", "Leaves\n")
    return Reading(splits, class_names=names)


@layout(loud_is_fine=True)
def results_next_to_data(root: Folder) -> Reading:
    """Plots of a training run, next to splits of images without classes."""
    splits = {
        "train": _photos(root, "frames/train/frame_{:04d}.png", range(6)),
        "test": _photos(root, "frames/test/frame_{:04d}.png", range(6, 9)),
    }
    _photos(root, "runs/exp1/{}.png", ("confusion_matrix", "results"), size=(64, 48))
    root.csv("runs/exp1/results.csv", "epoch,loss,accuracy", (1, 0.5, 0.8), (2, 0.4, 0.9))
    return Reading(splits).mentioning("runs", "results.csv", count=2)
