"""Plants and animals."""

from __future__ import annotations

from ..boxes import _voc_xml
from ..files import Folder
from ..layout import Reading, Record, layout, one
from .drawing import HEIGHT, WIDTH, box_at, draw_classes, draw_images, draw_pairs


# ---- plants --------------------------------------------------------------------------------------
@layout(loud_is_fine=True)
def plant_village(root: Folder) -> list[Reading]:
    """The same leaves three times: in colour, in grey, and cut out."""
    names = ("Apple___Apple_scab", "Apple___healthy", "Corn_(maize)___Common_rust_")
    below = "plantvillage dataset"
    kinds = {
        "color": draw_classes(
            root, f"{below}/color/{{0}}/00075aa8-d81a___FREC_Scab 333{{1}}.JPG", names
        ),
        "grayscale": draw_classes(
            root, f"{below}/grayscale/{{0}}/00075aa8-d81a___FREC_Scab 333{{1}}.JPG", names, mode="L"
        ),
        "segmented": draw_classes(
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
    records = draw_images(root, "jpg/image_0{}.jpg", [f"{number:04d}" for number in range(1, 9)])
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
            *draw_classes(
                root,
                "train/{0}/{1}",
                names,
                ("a?itok=1.jpg", "Apple%20leaf.JPG", "b.jpeg", "c.png"),
            ),
            *draw_classes(root, "train/{0}/{1}", (rare,), ("spider.jpg", "mites.jpg")),
        ],
        "test": draw_classes(root, "test/{0}/{1}", names, ("d.jpg", "e.jpg")),
    }
    root.text("LICENSE.txt", "CC BY 4.0\n")
    root.text("README.md", "# PlantDoc\n")
    return Reading(splits, class_names=(*names, rare))


@layout(loud_is_fine=True)
def inaturalist_2018(root: Folder) -> Reading:
    """Species two folders below, and files like COCO's without boxes, which hold the splits."""
    species = {7477: "Aesculus glabra", 7478: "Aesculus hippocastanum", 1003: "Anas acuta"}
    categories = [{"id": number, "name": name} for number, name in species.items()]
    splits: dict[str, list[Record]] = {}
    for split, file, items in (("train", "train", "abc"), ("validation", "val", "d")):
        images: list[object] = []
        annotations: list[object] = []
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


# ---- animals -------------------------------------------------------------------------------------
@layout(loud_is_fine=True)
def oxford_iiit_pets(root: Folder) -> Reading:
    """Files of MATLAB among the images, of Mac OS among the masks, and boxes of half of them."""
    items = ("Abyssinian_1", "Abyssinian_2", "beagle_1", "beagle_2")
    records = draw_pairs(root, "images/{}.jpg", "annotations/trimaps/{}.png", items, (1, 2, 3))
    root.data("images/Abyssinian_100.mat", b"MATLAB 5.0 MAT-file")
    lines = [f"{item} {1 + number // 2} {1 + number // 2} 1" for number, item in enumerate(items)]
    root.lines("annotations/list.txt", "#Image CLASS-ID SPECIES BREED ID", *lines)
    root.lines("annotations/trainval.txt", lines[0], lines[2])
    root.lines("annotations/test.txt", lines[1], lines[3])
    for item in items:
        root.data(f"annotations/trimaps/._{item}.png", b"\0\5\26\7\0\2\0\0Mac OS X")
    for item in items[::2]:
        text = _voc_xml(f"{item}.jpg", (("dog", 4, 5, 16, 12),), folder="OXIIIT")
        root.text(f"annotations/xmls/{item}.xml", text)
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
            box = box_at(number, (breed,))
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
    for list_name, lines in lists.items():
        root.lines(f"{below}/{list_name}.txt", *lines)
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
    records = draw_classes(root, f"{below}/JPEGImages/{{0}}/{{0}}_1000{{1}}.jpg", names)
    root.lines(f"{below}/classes.txt", *(f"{n:8d}\t{name}" for n, name in enumerate(names, 1)))
    root.lines(f"{below}/trainclasses.txt", *names[:3])
    root.lines(f"{below}/testclasses.txt", names[3])
    root.lines(f"{below}/predicate-matrix-binary.txt", *["0 1 1 0"] * 4)
    root.text(f"{below}/README-attributes.txt", "Animals with Attributes 2\n")
    return one(records, class_names=names)
