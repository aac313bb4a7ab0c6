"""Images whose class is the name of their folder or of their file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence

from .files import Folder
from .layout import Reading, Record, layout, one


def _classes(
    root: Folder, names: Iterable[str], file: str = "{number}.jpg", count: int = 3, below: str = ""
) -> list[Record]:
    return [
        Record(root.photo(f"{below}{name}/{file.format(number=number, name=name)}"), name)
        for name in names
        for number in range(1, count + 1)
    ]


@layout()
def class_folders_with_clutter(root: Folder) -> Reading:
    """Two classes, JPEG and PNG mixed, among everything that collects in a folder."""
    root.clutter()
    root.data("daisy/Thumbs.db", bytes(40))
    root.data("daisy/.DS_Store", bytes(40))
    records = [
        Record(root.photo(f"{name}/{file}"), name)
        for name in ("daisy", "rose")
        for file in ("1.jpg", "2.JPG", "3.jpeg", "4.png", "5.PNG")
    ]
    with zipfile.ZipFile(root.path / "flowers.zip", "w") as archive:
        archive.writestr("daisy/1.jpg", b"the same again")
    return one(records, class_names=("daisy", "rose"))


@layout()
def class_folders_train_valid_test(root: Folder) -> Reading:
    splits = {
        split: _classes(root, ("cats", "dogs"), below=f"{folder}/")
        for split, folder in (("train", "train"), ("validation", "valid"), ("test", "test"))
    }
    return Reading(splits, class_names=("cats", "dogs"))


@layout()
def captions_in_text_files(root: Folder) -> Reading:
    """kohya and img2dataset: 1.jpg next to 1.txt; the metadata of each image are left out."""
    records = []
    for n in range(5):
        values = {"image/caption": f"photo {n}, 1 dog"}
        records.append(Record(root.photo(f"10_dog/{n}.jpg"), values=values))
        root.text(f"10_dog/{n}.txt", values["image/caption"])
        root.json(f"10_dog/{n}.json", {"url": f"{n}", "width": 3})
    return one(records).mentioning("json")


@layout()
def class_folders_in_one_folder_unpacked_on_a_mac(root: Folder) -> Reading:
    """flower_photos/ and __MACOSX/, whose files are no images but are called so."""
    records = _classes(root, ("daisy", "roses"), below="flower_photos/")
    root.lines("flower_photos/LICENSE.txt", "CC-BY")
    for name in ("daisy", "roses"):
        for number in (1, 2, 3):
            root.data(f"__MACOSX/flower_photos/{name}/._{number}.jpg", b"\0\5\26\7\0\2\0\0Mac OS X")
    return one(records, class_names=("daisy", "roses"))


@layout(loud_is_fine=True)
def chest_xray_in_itself(root: Folder) -> Reading:
    """The download has the folder once more inside, next to an empty copy for Mac OS."""
    root.data("chest_xray/__MACOSX/chest_xray/._.DS_Store", b"\0\5\26\7")
    splits: dict[str, list[Record]] = {}
    for split, folder in (("train", "train"), ("validation", "val"), ("test", "test")):
        splits[split] = [
            Record(root.photo(f"chest_xray/{folder}/{name}/{prefix}{number}.jpeg", mode="L"), name)
            for name, prefix in (("NORMAL", "IM-0115-000"), ("PNEUMONIA", "person1_bacteria_"))
            for number in (1, 2)
        ]
        root.data(f"chest_xray/{folder}/.DS_Store", bytes(40))
    return Reading(splits, class_names=("NORMAL", "PNEUMONIA"))


@layout(loud_is_fine=True)
def class_named_train(root: Folder) -> Reading:
    """Vehicles: `train` is one of the classes, not a split."""
    names = ("bus", "car", "train")
    return one(_classes(root, names), class_names=names)


@layout()
def digits_as_classes(root: Folder) -> Reading:
    """mnist_png: black and white digits, few values, the same names in all folders; no masks."""
    splits = {}
    for split in ("training", "testing"):
        splits[{"training": "train", "testing": "test"}[split]] = [
            Record(root.photo(f"mnist_png/{split}/{name}/{number}.png", mode="L"), str(name))
            for name in range(3)
            for number in (1, 2)
        ]
    return Reading(splits, class_names=("0", "1", "2"))


@layout()
def binary_shapes_in_class_folders(root: Folder) -> Reading:
    """Letters in black on white with the same stems: two classes that look like masks."""
    records = []
    for name in ("circle", "square", "triangle"):
        for number in range(4):
            root.mask(f"shapes/{name}/{number}.png", (0, 255))
            digest = next(
                key for key, file in root.masks.items() if file.endswith(f"{name}/{number}.png")
            )
            records.append(Record(digest, name))
    root.masks.clear()  # they are images here
    return one(records, class_names=("circle", "square", "triangle"))


@layout(loud_is_fine=True)
def gtsrb(root: Folder) -> list[Reading]:
    """Classes as folders for training, in a CSV file for the test."""
    train, rows = [], []
    for number in (0, 1, 14):
        for item in (0, 1):
            path = f"Train/{number}/{number:05d}_00000_{item:05d}.png"
            train.append(Record(root.photo(path), str(number)))
            rows.append((32, 24, 5, 5, 27, 20, number, path))
    header = "Width,Height,Roi.X1,Roi.Y1,Roi.X2,Roi.Y2,ClassId,Path"
    root.csv("Train.csv", header, *rows)
    test, rows = [], []
    for item, number in enumerate((14, 0, 1)):
        path = f"Test/{item:05d}.png"
        test.append(Record(root.photo(path), str(number)))
        rows.append((32, 24, 5, 5, 27, 20, number, path))
    root.csv("Test.csv", header, *rows)
    root.csv("Meta.csv", "Path,ClassId,ShapeId,ColorId,SignId", ("Meta/0.png", 0, 1, 0, "3.29"))
    root.photo("Meta/0.png")
    whole = Reading({"train": train, "test": test}, label_column="ClassId")
    return [
        whole.mentioning("Meta", count=1),
        one(train).mentioning("Test", count=4),
    ]


@layout()
def faces_with_and_without_mask(root: Folder) -> Reading:
    """Face masks, not masks of pixels."""
    names = ("with_mask", "without_mask")
    records = _classes(root, names, "{name}_{number}.jpg", below="data/")
    return one(records, class_names=names)


@layout(loud_is_fine=True)
def cyclegan(root: Folder) -> list[Reading]:
    """horse2zebra: trainA, trainB, testA, testB: two domains, unpaired."""
    splits: dict[str, list[Record]] = {}
    for split in ("train", "test"):
        for domain in "AB":
            for number in (1, 2):
                path = f"horse2zebra/{split}{domain}/n0238_{number}{domain}.jpg"
                splits.setdefault(split, []).append(Record(root.photo(path), domain))
    all_four = [Record(r.image, f"{s}{r.label}") for s, records in splits.items() for r in records]
    return [Reading(splits), one(all_four).mentioning("trainA")]


@layout(loud_is_fine=True)
def classes_with_kinds(root: Folder) -> list[Reading]:
    """animals/dog/labrador/1.jpg: two levels of classes."""
    kinds = {"cat": ("siamese", "persian"), "dog": ("labrador", "poodle")}
    images = [
        (name, kind, root.photo(f"{name}/{kind}/{number}.jpg"))
        for name, all_kinds in kinds.items()
        for kind in all_kinds
        for number in (1, 2)
    ]
    return [
        one(Record(image, f"{name}/{kind}") for name, kind, image in images),
        one(Record(image, kind) for _, kind, image in images).mentioning("dog", "level", "nested"),
        one(Record(image, name) for name, _, image in images).mentioning("poodle", "level"),
    ]


@layout(loud_is_fine=True)
def caltech_101(root: Folder) -> Reading:
    """Outlines in MATLAB files next to the class folders."""
    names = ("BACKGROUND_Google", "accordion", "airplanes")
    records = _classes(root, names, "image_000{number}.jpg", below="101_ObjectCategories/")
    root.data("Annotations/accordion/annotation_0001.mat", b"MATLAB 5.0 MAT-file" + bytes(109))
    root.data("show_annotation.m", b"% shows")
    return one(records, class_names=names).mentioning("Annotations", ".mat")


@layout(loud_is_fine=True)
def cub_200(root: Folder) -> Reading:
    """Class folders below images/, and lists of the same as text."""
    names = ("001.Black_footed_Albatross", "002.Laysan_Albatross")
    records = _classes(root, names, "{name}_{number:04d}.jpg", below="CUB_200_2011/images/")
    files = [f"{name}/{name}_{number:04d}.jpg" for name in names for number in (1, 2, 3)]
    root.lines("CUB_200_2011/images.txt", *(f"{n} {file}" for n, file in enumerate(files, 1)))
    root.lines("CUB_200_2011/classes.txt", *(f"{n} {name}" for n, name in enumerate(names, 1)))
    root.lines("CUB_200_2011/image_class_labels.txt", *(f"{n} {1 + n // 4}" for n in range(1, 7)))
    root.lines("CUB_200_2011/train_test_split.txt", *(f"{n} {n % 2}" for n in range(1, 7)))
    root.lines("CUB_200_2011/bounding_boxes.txt", *(f"{n} 6 2 20 18" for n in range(1, 7)))
    root.folder("CUB_200_2011/parts")
    return one(records, class_names=names)


@layout()
def imagenet_kaggle(root: Folder) -> Reading:
    """ILSVRC/Data/CLS-LOC without class folders for validation and test."""
    below = "ILSVRC/Data/CLS-LOC/"
    train = _classes(
        root, ("n01440764", "n01443537"), "{name}_{number}.JPEG", below=f"{below}train/"
    )
    names = ["n01443537", "n01440764"]
    for split, count in (("val", 4), ("test", 2)):
        for number in range(count):
            root.photo(f"{below}{split}/ILSVRC2012_{split}_0000000{number}.JPEG")
    rows = [(f"ILSVRC2012_val_0000000{n}", f"{name} 3 4 20 20 ") for n, name in enumerate(names, 1)]
    root.csv("LOC_val_solution.csv", "ImageId,PredictionString", *rows)
    root.csv("LOC_sample_submission.csv", "ImageId,PredictionString", *rows)
    root.lines("LOC_synset_mapping.txt", "n01440764 tench, Tinca tinca", "n01443537 goldfish")
    return one(train).mentioning("val", count=4).mentioning("test", count=2)


@layout(loud_is_fine=True)
def tiny_imagenet(root: Folder) -> list[Reading]:
    """train/n0…/images/*.JPEG with boxes as text, val/images with val_annotations.txt."""
    train: list[Record] = []
    for name in ("n01443537", "n01629819"):
        boxes = []
        for number in (0, 1, 2):
            file = f"{name}_{number}.JPEG"
            train.append(Record(root.photo(f"train/{name}/images/{file}", size=(24, 24)), name))
            boxes.append(f"{file}\t0\t5\t20\t20")
        root.lines(f"train/{name}/{name}_boxes.txt", *boxes)
    val, rows = [], []
    for number, name in enumerate(("n01629819", "n01443537")):
        val.append(Record(root.photo(f"val/images/val_{number}.JPEG", size=(24, 24)), name))
        rows.append(f"val_{number}.JPEG\t{name}\t0\t0\t20\t20")
    root.lines("val/val_annotations.txt", *rows)
    for number in (0, 1):
        root.photo(f"test/images/test_{number}.JPEG", size=(24, 24))
    root.lines("wnids.txt", "n01443537", "n01629819")
    root.lines("words.txt", "n01443537\tgoldfish", "n01629819\tsalamander")
    return [
        Reading({"train": train, "validation": val}).mentioning("test", count=2),
        one(train).mentioning("val", count=4),
    ]


@layout()
def images_without_classes(root: Folder) -> Reading:
    return one(Record(root.photo(f"IMG_20240{number}.JPG")) for number in range(1, 7))


@layout(loud_is_fine=True)
def splits_without_classes(root: Folder) -> Reading:
    """train/1.jpg, val/7.jpg: splits, not the classes train and val."""
    return Reading(
        {
            "train": [Record(root.photo(f"train/{number}.jpg")) for number in range(1, 5)],
            "validation": [Record(root.photo(f"val/{number}.jpg")) for number in range(7, 9)],
        }
    )


def _cats_and_dogs(root: Folder, below: str, numbers: Sequence[int]) -> list[Record]:
    return [
        Record(root.photo(f"{below}{name}.{number}.jpg"), name)
        for name in ("cat", "dog")
        for number in numbers
    ]


_NO_CLASSES = ("class-pattern", "without class", "no class", "no label", "without label")


@layout(loud_is_fine=True)
def dogs_vs_cats(root: Folder) -> list[Reading]:
    """Kaggle: train/cat.0.jpg with the class in the name, test1/1.jpg without any."""
    train = _cats_and_dogs(root, "train/", (0, 1, 2))
    test = [Record(root.photo(f"test1/{number}.jpg")) for number in (1, 2, 3)]
    root.csv("sampleSubmission.csv", "id,label", (1, 0), (2, 0), (3, 0))
    whole = Reading({"train": train, "test": test})
    return [
        whole,
        one(train).mentioning("test1", count=3),
        whole.without("label", words=_NO_CLASSES),
    ]
