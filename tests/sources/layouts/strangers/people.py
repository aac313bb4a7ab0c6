"""Faces, and people and vehicles that cameras see again."""

from __future__ import annotations

from ..files import Folder
from ..layout import Reading, Record, layout, one
from .drawing import box_sides, draw_boxes, draw_classes, draw_images, file_name


# ---- faces ---------------------------------------------------------------------------------------
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
        labels = tuple(name for name, flag in zip(_ATTRIBUTES, row, strict=True) if flag > 0)
        records.append(Record(root.photo(path.format(name)), labels=labels))
        rows.append((name, row))
    return {"train": records[:4], "validation": records[4:6], "test": records[6:]}, rows


@layout()
def celeba_as_published(root: Folder) -> Reading:
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


@layout()
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
    splits: dict[str, list[Record]] = {}
    for split, folder in (("train", "train"), ("validation", "val")):
        lines: list[object] = []
        splits[split] = []
        for start, event in enumerate(("0--Parade", "61--Street_Battle")):
            path = f"WIDER_{folder}/images/{event}/{event.replace('--', '_')}_{split}_1_{{}}.jpg"
            records = draw_boxes(root, path, (849, 904), (None,), 2 * start)
            splits[split] += records.values()
            for image, record in records.items():
                boxes = record.boxes or ()
                rows = [" ".join(map(str, (*box_sides(box), 0, 0, 0, 0, 0, 0))) for box in boxes]
                lines += [f"{event}/{file_name(image)}", len(boxes), *rows]
        root.lines(f"wider_face_split/wider_face_{folder}_bbx_gt.txt", *lines)
        root.data(f"wider_face_split/wider_face_{folder}.mat", b"MATLAB 5.0 MAT-file")
    draw_images(root, "WIDER_test/images/0--Parade/0_Parade_marchingband_1_{}.jpg", (9, 737))
    root.text("wider_face_split/readme.txt", "Attached the mappings between attribute names\n")
    return Reading(splits).mentioning("WIDER_test", "test")


@layout(loud_is_fine=True)
def utkface(root: Folder) -> Reading:
    """Age, gender, race and date in the names of the files, which end in two suffixes."""
    people = ("1_0_0", "26_1_2", "39_1_20", "80_0_3", "9_1_4")
    names = [f"{person}_2016121914062309{n}" for n, person in enumerate(people)]
    return one(draw_images(root, "UTKFace/{}.jpg.chip.jpg", names)).mentioning(
        "no labels", "without labels", "no class", "without class", "--class-pattern"
    )


@layout()
def fer_2013(root: Folder) -> Reading:
    names = ("angry", "happy", "neutral")
    splits = {
        "train": draw_classes(root, "train/{0}/Training_10{1}8481.jpg", names, (1, 2, 3), mode="L"),
        "test": draw_classes(root, "test/{0}/PrivateTest_88{1}3095.jpg", names, (1, 2), mode="L"),
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
    root.csv("fer2013/fer2013.csv", "emotion,pixels,Usage", *([*row.values()] for row in rows))
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
        split: draw_classes(root, f"{split}/{{0}}/000{{1}}_01.jpg", names)
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


# ---- re-identification ---------------------------------------------------------------------------
@layout(loud_is_fine=True)
def market_1501(root: Folder) -> Reading:
    """Splits that only the names of the folders tell, people and cameras in those of the files."""
    splits = {
        "train": draw_images(
            root,
            "bounding_box_train/{}.jpg",
            ("0002_c1s1_000451_03", "0002_c1s1_000551_01", "0007_c2s3_070952_01"),
        ),
        "test": draw_images(
            root,
            "bounding_box_test/{}.jpg",
            ("-1_c1s1_000401_03", "0000_c1s1_000151_01", "0001_c1s1_001051_00"),
        ),
        "query": draw_images(root, "query/{}.jpg", ("0001_c1s1_001051_00", "0003_c1s6_015971_00")),
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
        "train": draw_images(root, f"{below}/bounding_box_train/{{}}.jpg", names),
        "test": draw_images(
            root, f"{below}/bounding_box_test/{{}}.jpg", ("0002_c1_f0044158", "0003_c1_f1")
        ),
        "query": draw_images(root, f"{below}/query/{{}}.jpg", ("0005_c2_f0046985", "0023_c1_f2")),
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
    draw_images(root, "VeRi/image_test/{}", tests)
    draw_images(root, "VeRi/image_query/{}", tests)
    root.lines("VeRi/name_train.txt", *names)
    root.lines("VeRi/name_test.txt", *tests)
    root.lines("VeRi/name_query.txt", *tests)
    root.lines("VeRi/list_color.txt", "1 yellow", "2 orange", "3 green")
    return one(train).mentioning("image_test").mentioning("image_query")
