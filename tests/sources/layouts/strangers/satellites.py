"""Aerial and satellite images: classes, masks, boxes and outlines."""

from __future__ import annotations

from ..files import Folder
from ..layout import Reading, Record, layout, one
from .drawing import draw_boxes, draw_classes, draw_images, draw_pairs, file_name, file_stem


@layout()
def eurosat(root: Folder) -> Reading:
    """The archive has one folder with a number for its name."""
    names = ("AnnualCrop", "Forest", "SeaLake")
    return one(draw_classes(root, "2750/{0}/{0}_{1}.jpg", names), class_names=names)


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
        splits[split] = draw_classes(root, "EuroSAT/{0}/{0}_{1}.jpg", names, items)
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
    return one(draw_classes(root, path, names, range(3)), class_names=names)


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
    train = draw_pairs(
        root, "train/{}_sat.jpg", "train/{}_mask.png", items, (3, 0, 1), colours=colours
    )
    draw_images(root, "valid/{}_sat.jpg", (10452, 11119))
    draw_images(root, "test/{}_sat.jpg", (100877, 101863))
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
    records = draw_pairs(root, "images/{}.tif", "masks/{}.tif", items, (0, 1, 2, 3))
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
    records = draw_boxes(root, "train_images/{}.tif", (100, 102, 1036, 2355), ("73", "18"))
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Polygon", "coordinates": [[[-90.5, 29.9], [-90.5, 30.0]]]},
            "properties": {
                "bounds_imcoords": ",".join(map(str, box[1:])),
                "type_id": int(str(box[0])),
                "image_id": file_name(path),
            },
        }
        for path, record in records.items()
        for box in record.boxes or ()
    ]
    root.json("xView_train.geojson", {"type": "FeatureCollection", "features": features})
    draw_images(root, "val_images/{}.tif", (1, 2))
    return one(records.values()).mentioning("val_images")


@layout()
def dota(root: Folder) -> Reading:
    """Four corners, class and difficulty in a text file for each image, below two header lines."""
    splits = {}
    for split, folder, start in (("train", "train", 0), ("validation", "val", 4)):
        items = [f"P{number:04d}" for number in range(start, start + 4)]
        names = ("plane", "large-vehicle")
        records = draw_boxes(root, f"{folder}/images/{{}}.png", items, names, start)
        for path, record in records.items():
            lines = [
                f"{left} {top} {right} {top} {right} {bottom} {left} {bottom} {name} 0"
                for name, left, top, right, bottom in record.boxes or ()
            ]
            head = ("imagesource:GoogleEarth", "gsd:0.146343590398")
            root.lines(f"{folder}/labelTxt/{file_stem(path)}.txt", *head, *lines)
        splits[split] = [*records.values()]
    return Reading(splits)


@layout()
def inria_aerial_image(root: Folder) -> Reading:
    """`images` and `gt` with equal names, and test images of other cities without `gt`."""
    below = "AerialImageDataset"
    items = ("austin1", "austin2", "chicago1", "vienna36")
    records = draw_pairs(
        root, f"{below}/train/images/{{}}.tif", f"{below}/train/gt/{{}}.tif", items, (0, 255)
    )
    draw_images(root, f"{below}/test/images/{{}}.tif", ("bellingham1", "bloomington1"))
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
