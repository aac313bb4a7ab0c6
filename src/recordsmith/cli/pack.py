"""`recordsmith pack`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.detected import print_detected
from recordsmith.cli.options import (
    EngineName,
    Json,
    Out,
    Overwrite,
    WritingThreads,
    parse_colour,
    parse_keys,
    parse_names,
    parse_shares,
    shard_names_option,
    shard_options,
    shard_size_option,
    shards_option,
)
from recordsmith.engines import parse_engine
from recordsmith.errors import MOST_PROBLEMS, OptionError, option
from recordsmith.words import note_text

if TYPE_CHECKING:
    from recordsmith.linting import LintReport
    from recordsmith.packing import PackReport


_NOUNS = {"table": "row", "shards": "record", "tfds": "record", "webdataset": "sample"}
_SPLITS, SOURCE_PANEL, _IMAGES, _RECORDS, _MACHINES = (
    "Splits and shards",
    "The source",
    "How images are stored",
    "Records",
    "Many machines",
)


def pack(
    source: Annotated[
        str,
        typer.Argument(
            help="Class folders, images and masks, VOC, COCO or YOLO annotations, a table, tar "
            "files, a folder of TensorFlow Datasets, or TFRecord shards.",
            metavar="SOURCE",
            show_default=False,
        ),
    ],
    out: Out,
    splits: Annotated[
        str | None,
        typer.Option(
            help="Names and shares of random splits, such as train=0.8,test=0.2. "
            "[default: train=1]",
            metavar="NAME=SHARE,…",
            rich_help_panel=_SPLITS,
        ),
    ] = None,
    resplit: Annotated[
        str | None,
        typer.Option(
            help="Splits of the source to divide into those of --splits; the others are kept. "
            "Needed if the source has several.",
            metavar="NAMES",
            rich_help_panel=_SPLITS,
        ),
    ] = None,
    shards: Annotated[str | None, shards_option(_SPLITS)] = None,
    shard_size: Annotated[str | None, shard_size_option(_SPLITS)] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Random seed.", rich_help_panel=_SPLITS)
    ] = 0,
    stratify: Annotated[
        bool,
        typer.Option(
            "--stratify",
            help="Give each split the same share of every class.",
            rich_help_panel=_SPLITS,
        ),
    ] = False,
    in_order: Annotated[
        bool,
        typer.Option("--in-order", help="Keep the order of the source.", rich_help_panel=_SPLITS),
    ] = False,
    shard_names: Annotated[str | None, shard_names_option(_SPLITS)] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="folder, files, pairs, voc, coco, yolo, labelme, cvat, csv-boxes, table, arrays, "
            "webdataset, tfds or shards. [default: detected]",
            metavar="FORMAT",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    class_pattern: Annotated[
        str | None,
        typer.Option(
            help="files, pairs: regular expression that finds the class in each path.",
            metavar="REGEX",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    images: Annotated[
        str | None,
        typer.Option(
            help="folder, files, pairs, coco, cvat, csv-boxes, table: folder of the images. For "
            "pairs, a * stands for a name that is also in --masks: */images and */masks. "
            "[default: detected]",
            metavar="FOLDER",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    masks: Annotated[
        str | None,
        typer.Option(
            help="pairs: folder of the masks. [default: detected]",
            metavar="FOLDER",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    image_names: Annotated[
        str | None,
        typer.Option(
            help="pairs: names of images, with * for what they share with their masks, such as "
            "*_leftImg8bit. [default: detected]",
            metavar="PATTERN",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    mask_names: Annotated[
        str | None,
        typer.Option(
            help="pairs: names of masks, such as *_gtFine_labelIds. [default: detected]",
            metavar="PATTERN",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    split_lists: Annotated[
        str | None,
        typer.Option(
            help="pairs: folder with a list of names for each split, such as train.txt. "
            "[default: detected]",
            metavar="FOLDER",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="folder: list with the class of each image of a split without class folders. "
            "[default: detected]",
            metavar="FILE",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            help="pairs: file with an image and its mask on each line.",
            metavar="FILE",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    colours: Annotated[
        str | None,
        typer.Option(
            help="pairs: colours of masks: voc, grey (brightness is the class number), or a file "
            "with red, green, blue and name of each class. [default: pixels are class numbers]",
            metavar="NAME",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    annotations: Annotated[
        str | None,
        typer.Option(
            help="coco, cvat, csv-boxes: file of the annotations. [default: detected]",
            metavar="FILE",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    object_masks: Annotated[
        str | None,
        typer.Option(
            help="coco, yolo, labelme, cvat: draw masks from the polygons: instance or class. "
            "[default: none]",
            metavar="KIND",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    label_map: Annotated[
        str | None,
        typer.Option(
            help="annotations with boxes: label_map.pbtxt with the class numbers. "
            "[default: created from the data]",
            metavar="FILE",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    boxes: Annotated[
        str | None,
        typer.Option(
            help="annotations with boxes: handling of invalid boxes: stop (fail and list them), "
            "clip (fix them) or drop (leave them out). [default: stop]",
            metavar="POLICY",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            help="table: file to read in a folder with several tables; or several, with commas "
            "between them. [default: all]",
            metavar="FILE",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    image_column: Annotated[
        str | None,
        typer.Option(
            help="table: column of image paths, which may lack their suffix.",
            metavar="NAME",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    split_column: Annotated[
        str | None,
        typer.Option(
            help="table: column of splits.",
            metavar="NAME",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    group_column: Annotated[
        str | None,
        typer.Option(
            help="table: column of groups, which stay in one split.",
            metavar="NAME",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    label_column: Annotated[
        str | None,
        typer.Option(
            help="table: column of classes.",
            metavar="NAME",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            help="table: text encoding, such as cp1252 or utf-16. [default: utf-8]",
            metavar="NAME",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            help="tfds: cut episodes into samples of this number of consecutive steps. "
            "[default: whole episodes]",
            metavar="STEPS",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    stride: Annotated[
        int | None,
        typer.Option(
            help="tfds: steps between the starts of windows. [default: 1]",
            metavar="STEPS",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            help="original (unchanged bytes), jpeg, png or raw. [default: original]",
            metavar="FORMAT",
            rich_help_panel=_IMAGES,
        ),
    ] = None,
    quality: Annotated[
        int | None,
        typer.Option(
            help="Quality of encoded JPEGs, 1 to 100. [default: 95]",
            metavar="N",
            rich_help_panel=_IMAGES,
        ),
    ] = None,
    recompress: Annotated[
        bool,
        typer.Option(
            "--recompress",
            help="Also encode images that already have the format.",
            rich_help_panel=_IMAGES,
        ),
    ] = False,
    background: Annotated[
        str | None,
        typer.Option(
            help="Background of transparent images in JPEG: white, black or #rrggbb.",
            metavar="COLOUR",
            rich_help_panel=_IMAGES,
        ),
    ] = None,
    drop_alpha: Annotated[
        bool,
        typer.Option(
            "--drop-alpha",
            help="Drop the alpha channel in JPEG and raw.",
            rich_help_panel=_IMAGES,
        ),
    ] = False,
    shorter_side: Annotated[
        int | None,
        typer.Option(
            help="Scale images down to this length of the shorter side. [default: no scaling]",
            metavar="PIXELS",
            rich_help_panel=_IMAGES,
        ),
    ] = None,
    longer_side: Annotated[
        int | None,
        typer.Option(
            help="Scale down by the longer side.", metavar="PIXELS", rich_help_panel=_IMAGES
        ),
    ] = None,
    shrink: Annotated[
        bool,
        typer.Option(
            "--shrink",
            help="Compress images further without changing pixels.",
            rich_help_panel=_IMAGES,
        ),
    ] = False,
    baseline: Annotated[
        bool,
        typer.Option(
            "--baseline",
            help="Convert progressive JPEGs, which decode slowly, to baseline, without loss.",
            rich_help_panel=_IMAGES,
        ),
    ] = False,
    tiles: Annotated[
        bool,
        typer.Option(
            "--tiles",
            help="Divide baseline JPEGs into tiles, without loss, so that crops decode faster.",
            rich_help_panel=_IMAGES,
        ),
    ] = False,
    upright: Annotated[
        bool,
        typer.Option(
            "--upright",
            help="Rotate images, masks and boxes by the EXIF orientation.",
            rich_help_panel=_IMAGES,
        ),
    ] = False,
    max_pixels: Annotated[
        int | None,
        typer.Option(
            help="Reject images with more pixels if they have to be decoded. [default: 89,478,485]",
            metavar="PIXELS",
            rich_help_panel=_IMAGES,
        ),
    ] = None,
    keys: Annotated[
        str | None,
        typer.Option(
            help="Names of features: new names as OLD=NEW,… (OLD= drops one); or a preset: slim "
            "(standard names; only image, format, label, height, width), raw-pairs (image_raw, "
            "mask_raw, height, width), rows-cols (image, label, filename, rows, cols, channels), "
            "label-text-encoded (label, text, encoded), tfds (a folder that TensorFlow Datasets "
            "loads). [default: image/encoded, "
            "image/class/label and other standard names]",
            metavar="NAMES",
            rich_help_panel=_RECORDS,
        ),
    ] = None,
    compression: Annotated[
        str | None,
        typer.Option(
            help="Compression of the shards: none, gzip or zlib. [default: none]",
            metavar="NAME",
            rich_help_panel=_RECORDS,
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            help="Use names of features, image options, compression and class numbers of this "
            "dataset, so that `recordsmith append` can add the records to it.",
            metavar="DATASET",
            rich_help_panel=_RECORDS,
        ),
    ] = None,
    check_images: Annotated[
        bool,
        typer.Option(
            "--check-images",
            help="Decode every image completely. [default: check headers and PNG checksums]",
            rich_help_panel=_IMAGES,
        ),
    ] = False,
    skip_errors: Annotated[
        bool,
        typer.Option("--skip-errors", help="Skip samples that cannot be read and report them."),
    ] = False,
    lint: Annotated[
        str | None,
        typer.Option(
            help="Checks before packing: warn (print errors and warnings), strict (pack nothing if "
            "there are any) or off. `recordsmith lint` checks more. [default: warn]",
            metavar="POLICY",
        ),
    ] = None,
    overwrite: Overwrite = False,
    write_plan: Annotated[
        str | None,
        typer.Option(
            help="Write a plan of the shards to a file, and pack nothing.",
            metavar="FILE",
            rich_help_panel=_MACHINES,
        ),
    ] = None,
    engine: EngineName = None,
    threads: WritingThreads = None,
    json: Json = False,
) -> None:
    """Pack images, masks, boxes or tables into TFRecord shards and verify them.

    Detects the type of SOURCE and prints it. Images are stored unchanged by default. Each shard is
    read back and verified before it gets its final name. If the job is interrupted, rerun it to
    resume: it keeps the finished shards. Until then, every command refuses OUT as unfinished.

    Example: `recordsmith pack flowers out --splits train=0.8,test=0.2`
    """
    from recordsmith.stores import as_folder
    from recordsmith.stores.checks import check_writable

    run_on = parse_engine(engine)  # before the source is scanned
    if write_plan is None:
        check_writable(as_folder(out).store, out)
    detected = rs.detect(
        source,
        kind,
        class_pattern=class_pattern,
        images=images,
        masks=masks,
        image_names=image_names,
        mask_names=mask_names,
        split_lists=split_lists,
        labels=labels,
        pairs=pairs,
        colours=colours,
        annotations=annotations,
        object_masks=object_masks,
        label_map=label_map,
        boxes=boxes,
        table=table,
        image_column=image_column,
        split_column=split_column,
        group_column=group_column,
        label_column=label_column,
        encoding=encoding,
        window=window,
        stride=stride,
    )
    options: dict[str, Any] = {
        "splits": None if splits is None else parse_shares(splits, "splits"),
        "resplit": None if resplit is None else parse_names(resplit),
        **shard_options(shards, shard_size),
        "seed": seed or None,
        "stratify": stratify or None,
        "shuffle": False if in_order else None,
        "shard_names": shard_names,
        "image_options": _image_options(
            store=store,
            quality=quality,
            recompress=recompress or None,
            background=None if background is None else parse_colour(background, "background"),
            drop_alpha=drop_alpha or None,
            shorter_side=shorter_side,
            longer_side=longer_side,
            shrink=shrink or None,
            baseline=baseline or None,
            tiles=tiles or None,
            orientation="apply" if upright else None,
            max_pixels=max_pixels,
        ),
        "keys": None if keys is None else parse_keys(keys, "keys"),
        "compression": compression,
        "check_images": check_images or None,
    }
    options = {name: value for name, value in options.items() if value is not None}
    packed = print_detected(detected, json=json)
    if write_plan is not None:
        if like is not None:
            raise OptionError(
                f"{option('like')} excludes {option('write_plan')}",
                option="like",
                value=like,
                remedy="Pass the options of that dataset to the plan.",
            )
        _write_plan(packed, out, options, write_plan, json=json)
        return
    with console.progress_bar("packing") as progress:
        report = rs.pack(
            packed,
            out,
            **options,
            like=like,
            skip_errors=skip_errors,
            lint=_print_findings if lint in (None, "warn") else lint,  # type: ignore[arg-type]
            overwrite=overwrite,
            engine=run_on,
            threads=threads,
            progress=progress,
        )
    if json:
        console.print_json(
            report.to_json()
            | {"format": detected.reading.format, "options": dict(detected.reading.options)}
        )
    else:
        noun = _NOUNS.get(detected.reading.format, "image")
        print_pack_report(report, noun)
        typed = shlex.quote(out)
        preview = f"sheet {typed} sheet.png" if noun == "image" else f"head {typed}"
        console.print_hint(
            f"next: preview them with `recordsmith {preview}`, or print a program that reads them "
            f"with `recordsmith inspect {typed} --reader torch` (or tf, dali, grain)"
        )


def _print_findings(report: LintReport) -> None:
    """Print errors and warnings before packing, on standard error."""
    for found in report.findings:
        if found.severity != "note":
            first = found.examples[0].describe()
            more = f" (and {found.count - 1:,} more)" if found.count > 1 else ""
            console.print_aside(f"{found.severity}: {found.check}: {first}{more}")


def _image_options(**options: Any) -> rs.ImageOptions | None:
    given = {name: value for name, value in options.items() if value is not None}
    return rs.ImageOptions(**given) if given else None


def _write_plan(source: Any, out: str, options: dict[str, Any], path: str, *, json: bool) -> None:
    plan = rs.plan(source, out, **options)
    plan.save(path)
    if json:
        console.print_json({"plan": path, "shards": len(plan.shards)})
        return
    shown = shlex.quote(console.printable(path))
    title = f"{console.count(len(plan.shards), 'shard')} planned in {shown}"
    console.print_line(title, title=title)
    print(
        "  write some of them, on any machine:  "
        f"recordsmith run {shown} --only 0-{len(plan.shards) - 1}"
    )
    print(f"  then complete the dataset:           recordsmith finish {shown}")


def print_pack_report(report: PackReport, noun: str = "image") -> None:
    """Print the summary of a job; a sample is called `noun`."""
    of_classes = "" if report.class_count is None else f" of {_classes(report.class_count)}"
    what = f"{console.count(report.sample_count, noun)}{of_classes}"
    read = "encoded rows" if noun == "row" else f"{noun}s"
    console.print_written(report, "packed", what, read)
    if report.is_new:
        console.print_line(_checked(report, noun), "  ")
    print_findings(report)


def print_findings(report: PackReport) -> None:
    """Print what was skipped, changed and noticed; of requested changes only the number."""
    from recordsmith.packing.images import REQUESTED  # loads more than `--help` needs

    print_skipped(report.skipped, report.skipped_count)
    for sentence, noted in report.notes.items():
        title = note_text(noted.count, sentence)
        if sentence in REQUESTED:
            console.print_line(title)
        else:
            console.print_list(title, noted.places, most=3, number=noted.count)
    console.print_list("notices", report.notices)


def print_skipped(skipped: list[str], number: int, indent: str = "") -> None:
    with console.not_quiet():
        title = f"skipped {number:,}"
        console.print_list(title, skipped, MOST_PROBLEMS, number=number, indent=indent)


def _checked(report: PackReport, noun: str) -> str:
    """Describe what was verified and what was not."""
    records = "verified: all checksums"
    if report.images_are_checked:
        return f"{records}; every image was decoded"
    if noun in ("record", "row"):
        return records
    return f"{records} (images were not decoded; see --check-images)"


def _classes(number: int) -> str:
    return console.count(number, "class", "classes")
