"""Radiology, pathology, dermatology, endoscopy."""

from __future__ import annotations

import numpy as np

from ..files import Folder, npy_bytes
from ..layout import Reading, Record, layout, one
from .drawing import HEIGHT, WIDTH, box_at, box_sides, draw_classes, draw_images, draw_pairs


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
    draw_images(root, "ISIC2018_Task3_Test_Input/ISIC_00345{}.jpg", (24, 25, 26))
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
    both = one(records).mentioning("_mask_1", "benign (3)")
    return [
        both,
        both.without("mask", words=("mask",)),
        both.without("label", words=("class folders", "benign", "without labels", "no labels")),
    ]


@layout(loud_is_fine=True)
def kvasir_seg(root: Folder) -> Reading:
    """Masks as JPEG, and a JSON file of boxes with its name misspelt."""
    names = ("cju0qkwl35piu0993l0dewei2", "cju0qoxqj9q6s0835b43399p4", "cju0qx73cjw570799j4n5cjze")
    records = draw_pairs(
        root, "Kvasir-SEG/images/{}.jpg", "Kvasir-SEG/masks/{}.jpg", names, (0, 255)
    )
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
        one(records).mentioning(*(f"mask-{other}" for other in masks if other != reader))
        for reader, records in masks.items()
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


@layout(loud_is_fine=True)  # 2 of 14 images are much; of the real set, 10 of 5,010 are few
def kather_texture_2016(root: Folder) -> Reading:
    """Class folders with numbers in front, and a folder of larger images without classes."""
    names = ("01_TUMOR", "02_STROMA", "03_COMPLEX", "08_EMPTY")
    records = draw_classes(
        root,
        "Kather_texture_2016_image_tiles_5000/{0}/10009_CRC-Prim-HE-0{1}_009.tif_Row_301_Col_151.tif",
        names,
    )
    draw_images(
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
            "train": draw_classes(root, "NCT-CRC-HE-100K/{0}/{0}-AAA{1}LCLG.tif", names, "FGHI"),
            "validation": draw_classes(
                root, "CRC-VAL-HE-7K/{0}/{0}-TCGA-AAI{1}EQFN.tif", names, "CD"
            ),
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
        boxes = [box_at(number + n, (None,)) for n in range(number % 3)]
        records.append(Record(image, boxes=tuple(boxes)))
        rows += [(name, *map(float, box_sides(box)), 1) for box in boxes] or [
            (name, "", "", "", "", 0)
        ]
        classes.append((name, "Lung Opacity" if boxes else "Normal"))
    header = "patientId,x,y,width,height,Target"
    root.csv("stage_2_train_labels.csv", header, *rows)
    root.csv("stage_2_detailed_class_info.csv", "patientId,class", *classes)
    root.csv("stage_2_sample_submission.csv", "patientId,PredictionString", ("0000a175", "0.5 0 0"))
    draw_images(root, "stage_2_test_images/0000a175-{}.png", range(3), mode="L")
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
    draw_images(root, "test/{}.tif", tests)
    root.csv("sample_submission.csv", "id,label", *((name, 0) for name in tests))
    return one(records, label_column="label").mentioning("test")
