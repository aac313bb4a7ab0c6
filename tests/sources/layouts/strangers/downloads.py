"""What Kaggle, Roboflow and courses publish, and what people leave in their folders."""

from __future__ import annotations

from ..files import Folder
from ..layout import Reading, Record, layout, one
from .drawing import HEIGHT, WIDTH, draw_boxes, draw_classes, draw_images, file_name


# ---- what Kaggle, Roboflow and courses publish ---------------------------------------------------
@layout()
def intel_image_classification(root: Folder) -> Reading:
    """Each folder once more in itself, with a prefix before the name of the split."""
    names = ("buildings", "forest", "sea")
    splits = {
        "train": draw_classes(
            root, "archive/seg_train/seg_train/{0}/{1}.jpg", names, (0, 10, 1000)
        ),
        "test": draw_classes(root, "archive/seg_test/seg_test/{0}/2{1}.jpg", names, (0, 10)),
    }
    draw_images(root, "archive/seg_pred/seg_pred/{}.jpg", (5, 6))
    return Reading(splits, class_names=names).mentioning("seg_pred")


@layout()
def brain_tumor_mri(root: Folder) -> Reading:
    """`Training` and `Testing`, with spaces and parentheses in the names of the files."""
    names = ("glioma_tumor", "no_tumor", "pituitary_tumor")
    splits = {
        "train": draw_classes(root, "Training/{0}/gg ({1}).jpg", names, (1, 2, 10)),
        "test": draw_classes(root, "Testing/{0}/image({1}).jpg", names, (1, 2)),
    }
    return Reading(splits, class_names=names)


@layout(loud_is_fine=True)
def brain_mri_twice(root: Folder) -> Reading:
    """The archive has all images twice: in `yes` and `no`, and again in a folder around both."""
    names = ("no", "yes")
    records = draw_classes(root, "{0}/{1} {0}.jpg", names, (1, 2, 17), mode="L")
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
        "train": draw_classes(root, "Data/train/{0}/000000 ({1}).png", staged, (1, 2, 3)),
        "validation": draw_classes(root, "Data/valid/{0}/000000 ({1}).png", staged, (1, 2)),
        "test": draw_classes(root, "Data/test/{0}/000108 ({1}).png", plain, (1, 2)),
    }
    return Reading(splits).mentioning("adenocarcinoma", "large.cell.carcinoma")


@layout(loud_is_fine=True)
def state_farm_drivers(root: Folder) -> Reading:
    """Class folders c0 to c9; a table has the driver of each image, whom splits must respect."""
    names = ("c0", "c1", "c2")
    train = draw_classes(root, "imgs/train/{0}/img_4473{1}.jpg", names)
    draw_images(root, "imgs/test/img_{}.jpg", (1, 10, 100))
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
        "train": draw_classes(root, "rps/rps/{0}/{0}0{1}-000.png", names),
        "test": draw_classes(
            root, "rps-test-set/rps-test-set/{0}/test{0}0{1}-00.png", names, (1, 2)
        ),
    }
    draw_images(root, "rps-validation/{}.png", ("paper1", "rock2", "scissors3"))
    return Reading(splits, class_names=names).mentioning("rps-validation")


@layout(loud_is_fine=True)
def imagenette(root: Folder) -> Reading:
    """Class folders of splits; a table of all images has wrong labels, on purpose."""
    names = ("n01440764", "n02102040", "n03888257")
    splits = {
        "train": draw_classes(root, "imagenette2-320/train/{0}/{0}_1002{1}.JPEG", names),
        "validation": draw_classes(root, "imagenette2-320/val/{0}/{0}_904{1}.JPEG", names, (1, 2)),
    }
    rows = [
        (f"{folder}/{name}/{name}_{start}{number}.JPEG", *[name] * 4, names[0], folder == "val")
        for folder, start, numbers in (("train", 1002, (1, 2, 3)), ("val", 904, (1, 2)))
        for name in names
        for number in numbers
    ]
    shares = ",".join(f"noisy_labels_{percent}" for percent in (0, 1, 5, 25, 50))
    header = f"path,{shares},is_valid"
    root.csv("imagenette2-320/noisy_imagenette.csv", header, *rows)
    return Reading(splits, class_names=names).mentioning("noisy_imagenette.csv")


@layout(loud_is_fine=True)
def food_101(root: Folder) -> Reading:
    """One folder of class folders; the splits are lists of paths without suffix, and JSON."""
    names = ("apple_pie", "baby_back_ribs", "churros")
    splits = {
        split: draw_classes(root, "food-101/images/{0}/10056{1}.jpg", names, items)
        for split, items in (("train", (49, 57, 62)), ("test", (71, 83)))
    }
    for split, items in (("train", (49, 57, 62)), ("test", (71, 83))):
        paths = {name: [f"{name}/10056{item}" for item in items] for name in names}
        root.lines(
            f"food-101/meta/{split}.txt", *(path for rows in paths.values() for path in rows)
        )
        root.json(f"food-101/meta/{split}.json", paths)
    root.lines("food-101/meta/classes.txt", *names)
    root.lines("food-101/meta/labels.txt", "Apple pie", "Baby back ribs", "Churros")
    root.text("food-101/README.txt", "Food-101\n")
    root.text("food-101/license_agreement.txt", "Images of Foodspotting\n")
    return Reading(splits, class_names=names)


@layout()
def caltech_101_with_outlines(root: Folder) -> Reading:
    """Class folders, one of which has other images than the rest, next to outlines of MATLAB."""
    names = ("BACKGROUND_Google", "Faces", "accordion", "yin_yang")
    records = draw_classes(root, "caltech-101/101_ObjectCategories/{0}/image_000{1}.jpg", names)
    for name in names[1:]:
        root.data(f"caltech-101/Annotations/{name}/annotation_0001.mat", b"MATLAB 5.0 MAT-file")
    root.text("caltech-101/show_annotation.m", "function show_annotation(imgfile)\n")
    return one(records, class_names=names).mentioning("Annotations", ".mat")


@layout()
def roboflow_folder_export(root: Folder) -> Reading:
    """Two read-me files, names with a hash, and a class that `valid` lacks."""
    path = "{{0}}/{{1}}_jpg.rf.0a1b2c3d4e5f60718293a4b5c6d7e8f{}.jpg".format
    names = ("Ripe Tomato", "Unripe-Tomato")
    splits = {
        "train": draw_classes(
            root, f"train/{path(0)}", names, ("IMG_0984", "IMG_0991", "WIN_20_Pro")
        ),
        "validation": draw_classes(root, f"valid/{path(1)}", names[:1], ("IMG_0984", "IMG_1002")),
        "test": draw_classes(root, f"test/{path(2)}", names, ("IMG_0984",)),
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
        records = draw_boxes(root, f"{folder}/images/{{}}.jpg", items, names, start)
        for path, record in records.items():
            lines = []
            for name, left, top, right, bottom in record.boxes or ():
                x, y = (left + right) / 2 / WIDTH, (top + bottom) / 2 / HEIGHT
                size = f"{(right - left) / WIDTH} {(bottom - top) / HEIGHT}"
                lines.append(f"{names.index(str(name))} {x} {y} {size}")
            root.lines(f"{folder}/labels/{file_name(path).removesuffix('.jpg')}.txt", *lines)
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
    records = draw_classes(root, f"{below}/{{0}}/{{0}}_00{{1}}.JPG", names)
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
        "train": draw_classes(root, "train/{0}/{0[0]}{1}.jpg", names),
        "validation": draw_classes(root, "val/{0}/{0[0]}{1}.jpg", names),
    }
    root.photo("train/cats/.ipynb_checkpoints/c1-checkpoint.jpg")
    root.folder("train/.ipynb_checkpoints")
    root.folder("val/.ipynb_checkpoints")
    root.json(".ipynb_checkpoints/train-checkpoint.ipynb", {"cells": []})
    root.json("train.ipynb", {"cells": [], "metadata": {}, "nbformat": 4})
    return Reading(splits, class_names=names)


# ---- small oddities ------------------------------------------------------------------------------
@layout()
def preview_next_to_splits(root: Folder) -> Reading:
    names = ("bees", "ants")
    splits = {
        "train": draw_classes(root, "hymenoptera_data/train/{0}/0{1}_3be1.jpg", names),
        "validation": draw_classes(root, "hymenoptera_data/val/{0}/5{1}_abd2.jpg", names, (1, 2)),
    }
    root.photo("dataset-cover.png", size=(64, 48))
    return Reading(splits).mentioning("dataset-cover.png", "1 image")


@layout(loud_is_fine=True)
def stray_images_among_classes(root: Folder) -> Reading:
    """A chart of the classes next to their folders, and one image that no one sorted."""
    names = ("cardboard", "glass", "metal", "trash")
    records = draw_classes(root, "{0}/{0}{1}.jpg", names)
    root.photo("class_distribution.png", size=(64, 48))
    root.photo("IMG_2041.jpg")
    return one(records, class_names=names).mentioning("class_distribution.png", "2 images")


@layout()
def windows_and_cameras(root: Folder) -> Reading:
    """Upper-case suffixes, spaces, parentheses, commas, ampersands, and German words for a copy."""
    files = ("IMG_0001.JPG", "New Image (2).jpeg", "Foto - Kopie.PNG", "a,b & c.Jpg", "scan#1.TIF")
    names = ("Bolts & Nuts", "Screws (M4)", "Washers, flat")
    return one(draw_classes(root, "{0}/{1}", names, files), class_names=names)


@layout()
def chinese_names(root: Folder) -> Reading:
    """Folders of splits in English, classes and files in Chinese, one list of them."""
    names = ("可回收物", "有害垃圾", "厨余垃圾")
    splits = {
        "train": draw_classes(root, "垃圾分类/train/{0}/图片_{1}.jpg", names),
        "validation": draw_classes(root, "垃圾分类/val/{0}/图片_{1}.jpg", names, (4, 5)),
    }
    root.text("垃圾分类/说明.txt", "数据集说明\n", encoding="gb18030")
    return Reading(splits, class_names=tuple(sorted(names)))


@layout()
def project_folder(root: Folder) -> Reading:
    """A repository: data next to a notebook, scripts, requirements and a saved model."""
    names = ("healthy", "rust", "scab")
    splits = {
        "train": draw_classes(root, "data/train/{0}/leaf_{1}.jpg", names),
        "test": draw_classes(root, "data/test/{0}/leaf_{1}.jpg", names, (1, 2)),
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
        "train": draw_images(root, "frames/train/frame_{:04d}.png", range(6)),
        "test": draw_images(root, "frames/test/frame_{:04d}.png", range(6, 9)),
    }
    draw_images(root, "runs/exp1/{}.png", ("confusion_matrix", "results"), size=(64, 48))
    root.csv("runs/exp1/results.csv", "epoch,loss,accuracy", (1, 0.5, 0.8), (2, 0.4, 0.9))
    return Reading(splits).mentioning("runs", "results.csv", "2 images")
