"""`recordsmith pack`."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.kept import telling_what_is_kept
from recordsmith.cli.options import (
    Json,
    Out,
    Overwrite,
    WritingThreads,
    parse_colour,
    parse_keys,
    parse_numbers,
    parse_shares,
    shard_names_option,
    shard_options,
    shard_size_option,
    shards_option,
)
from recordsmith.cli.wording import in_options
from recordsmith.errors import OptionError

_NOUNS = {"table": "row", "shards": "record", "webdataset": "sample"}
_SPLITS, _SOURCE, _PICTURES, _RECORDS, _MACHINES = (
    "Splits and shards",
    "The source",
    "How pictures are stored",
    "Records",
    "Many machines",
)


def pack(
    source: Annotated[
        str,
        typer.Argument(
            help="What is packed: class folders, pictures and masks, VOC, COCO or YOLO boxes, a "
            "table, tar files, or TFRecord shards.",
            metavar="SOURCE",
            show_default=False,
        ),
    ],
    out: Out,
    split: Annotated[
        str | None,
        typer.Option(
            help="Names and shares, such as train=0.7,validation=0.3 or train=70%,validation=30%. "
            "[default: train=1]",
            metavar="NAME=SHARE,…",
            rich_help_panel=_SPLITS,
        ),
    ] = None,
    shards: Annotated[str | None, shards_option(_SPLITS)] = None,
    shard_size: Annotated[str | None, shard_size_option(_SPLITS)] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Decides the shuffled order.", rich_help_panel=_SPLITS)
    ] = 0,
    stratify: Annotated[
        bool,
        typer.Option(
            "--stratify", help="Give all splits the same mix of classes.", rich_help_panel=_SPLITS
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
            "--as",
            help="folder, files, pairs, voc, coco, yolo, table, webdataset or shards. "
            "[default: recognised]",
            metavar="KIND",
            rich_help_panel=_SOURCE,
        ),
    ] = None,
    class_pattern: Annotated[
        str | None,
        typer.Option(
            help="files: a regular expression that finds the class in each path.",
            metavar="REGEX",
            rich_help_panel=_SOURCE,
        ),
    ] = None,
    pictures: Annotated[
        str | None,
        typer.Option(
            help="pairs, coco, table: the folder of the pictures. [default: found]",
            metavar="FOLDER",
            rich_help_panel=_SOURCE,
        ),
    ] = None,
    masks: Annotated[
        str | None,
        typer.Option(
            help="pairs: the folder of the masks. [default: found]",
            metavar="FOLDER",
            rich_help_panel=_SOURCE,
        ),
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            help="pairs: a file with a picture and its mask on each line.",
            metavar="FILE",
            rich_help_panel=_SOURCE,
        ),
    ] = None,
    colours: Annotated[
        str | None,
        typer.Option(
            help="pairs: what the colours of masks mean: voc, or grey (brightness is the number). "
            "[default: masks have numbers]",
            metavar="NAME",
            rich_help_panel=_SOURCE,
        ),
    ] = None,
    annotations: Annotated[
        str | None,
        typer.Option(
            help="coco: the JSON file of the annotations. [default: found]",
            metavar="FILE",
            rich_help_panel=_SOURCE,
        ),
    ] = None,
    object_masks: Annotated[
        str | None,
        typer.Option(
            help="coco: draw masks from the outlines: instance or class. [default: none]",
            metavar="KIND",
            rich_help_panel=_SOURCE,
        ),
    ] = None,
    label_map: Annotated[
        str | None,
        typer.Option(
            help="voc, coco, yolo: a label_map.pbtxt that numbers the classes. "
            "[default: made from the data]",
            metavar="FILE",
            rich_help_panel=_SOURCE,
        ),
    ] = None,
    boxes: Annotated[
        str | None,
        typer.Option(
            help="voc, coco, yolo: what a bad box does: stop (the job, with the list of all), clip "
            "(it is cut or put right) or drop (it is left out). [default: stop]",
            metavar="POLICY",
            rich_help_panel=_SOURCE,
        ),
    ] = None,
    picture_column: Annotated[
        str | None,
        typer.Option(
            help="table: the column that names picture files.",
            metavar="NAME",
            rich_help_panel=_SOURCE,
        ),
    ] = None,
    split_column: Annotated[
        str | None,
        typer.Option(
            help="table: the column that tells the split.",
            metavar="NAME",
            rich_help_panel=_SOURCE,
        ),
    ] = None,
    group_column: Annotated[
        str | None,
        typer.Option(
            help="table: rows that are alike here stay in one split.",
            metavar="NAME",
            rich_help_panel=_SOURCE,
        ),
    ] = None,
    label_column: Annotated[
        str | None,
        typer.Option(
            help="table: the column that tells the class.",
            metavar="NAME",
            rich_help_panel=_SOURCE,
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            help="table: of its text, such as cp1252 or utf-16. [default: utf-8]",
            metavar="NAME",
            rich_help_panel=_SOURCE,
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            help="original (the files' bytes, untouched), jpeg, png or raw. [default: original]",
            metavar="FORMAT",
            rich_help_panel=_PICTURES,
        ),
    ] = None,
    quality: Annotated[
        int | None,
        typer.Option(
            help="Of pictures that become JPEG, 1 to 100. [default: 95]",
            metavar="N",
            rich_help_panel=_PICTURES,
        ),
    ] = None,
    recompress: Annotated[
        bool,
        typer.Option(
            "--recompress",
            help="Encode also pictures that have the format already.",
            rich_help_panel=_PICTURES,
        ),
    ] = False,
    background: Annotated[
        str | None,
        typer.Option(
            help="What transparent pictures are laid on for JPEG: white, black or #rrggbb.",
            metavar="COLOUR",
            rich_help_panel=_PICTURES,
        ),
    ] = None,
    drop_alpha: Annotated[
        bool,
        typer.Option(
            "--drop-alpha",
            help="Leave alpha out for JPEG and raw, and keep the colours under it.",
            rich_help_panel=_PICTURES,
        ),
    ] = False,
    shorter_side: Annotated[
        int | None,
        typer.Option(
            help="Scale pictures down until this side has so many pixels. [default: not scaled]",
            metavar="PIXELS",
            rich_help_panel=_PICTURES,
        ),
    ] = None,
    longer_side: Annotated[
        int | None,
        typer.Option(
            help="The same for the longer side.", metavar="PIXELS", rich_help_panel=_PICTURES
        ),
    ] = None,
    shrink: Annotated[
        bool,
        typer.Option(
            "--shrink",
            help="Make files smaller without touching a pixel.",
            rich_help_panel=_PICTURES,
        ),
    ] = False,
    baseline: Annotated[
        bool,
        typer.Option(
            "--baseline",
            help="Turn progressive JPEGs, which decode slowly, to baseline; pixels stay the same.",
            rich_help_panel=_PICTURES,
        ),
    ] = False,
    upright: Annotated[
        bool,
        typer.Option(
            "--upright",
            help="Turn pictures, masks and boxes as the EXIF orientation says.",
            rich_help_panel=_PICTURES,
        ),
    ] = False,
    max_pixels: Annotated[
        int | None,
        typer.Option(
            help="Pictures of more pixels are refused where they would have to be decoded. "
            "[default: 89,478,485]",
            metavar="PIXELS",
            rich_help_panel=_PICTURES,
        ),
    ] = None,
    keys: Annotated[
        str | None,
        typer.Option(
            help="What features are called: slim, raw-pairs, rows-cols, label-text-encoded, or "
            "OLD=NEW,… (OLD= leaves one out). [default: the usual keys]",
            metavar="NAMES",
            rich_help_panel=_RECORDS,
        ),
    ] = None,
    compression: Annotated[
        str,
        typer.Option(help="none, gzip or zlib.", metavar="NAME", rich_help_panel=_RECORDS),
    ] = "none",
    skip_errors: Annotated[
        bool,
        typer.Option(
            "--skip-errors", help="Leave out samples that cannot be read, and report them."
        ),
    ] = False,
    overwrite: Overwrite = False,
    write_plan: Annotated[
        str | None,
        typer.Option(
            help="Write down which shards there will be, and pack nothing yet.",
            metavar="FILE",
            rich_help_panel=_MACHINES,
        ),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(
            help="Pack by such a plan, with the options that it holds.",
            metavar="FILE",
            rich_help_panel=_MACHINES,
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            help="Write these shards of the plan only, such as 3 or 0-9; without it, complete the "
            "dataset.",
            metavar="NUMBERS",
            rich_help_panel=_MACHINES,
        ),
    ] = None,
    threads: WritingThreads = None,
    json: Json = False,
) -> None:
    """Pack pictures, masks, boxes or tables into TFRecord shards, and prove them right.

    What SOURCE is, is recognised, and said. Pictures are stored as they are unless told otherwise.
    Each shard is read back and checked before it gets its name. A job that is stopped shows
    nothing by halves; run again, it goes on where it was.

    Example: `recordsmith pack flowers out --split train=0.7,validation=0.3 --shards 2`
    """
    from recordsmith.sources import make_source

    recognised = make_source(
        source,
        kind,
        class_pattern=class_pattern,
        pictures=pictures,
        masks=masks,
        pairs=pairs,
        colours=colours,
        annotations=annotations,
        object_masks=object_masks,
        label_map=label_map,
        boxes=boxes,
        picture_column=picture_column,
        split_column=split_column,
        group_column=group_column,
        label_column=label_column,
        encoding=encoding,
    )
    options: dict[str, Any] = {
        "splits": None if split is None else parse_shares(split, "--split"),
        **shard_options(shards, shard_size),
        "seed": seed or None,
        "stratify": stratify or None,
        "shuffle": False if in_order else None,
        "shard_names": shard_names,
        "pictures": _picture_options(
            format=store,
            quality=quality,
            recompress=recompress or None,
            background=None if background is None else parse_colour(background, "--background"),
            drop_alpha=drop_alpha or None,
            shorter_side=shorter_side,
            longer_side=longer_side,
            shrink=shrink or None,
            baseline=baseline or None,
            orientation="apply" if upright else None,
            max_pixels=max_pixels,
        ),
        "keys": None if keys is None else parse_keys(keys, "--keys"),
        "compression": None if compression == "none" else compression,
    }
    options = {name: value for name, value in options.items() if value is not None}
    if recognised.reason and not json:
        console.print_aside(f"{source} is packed as {recognised.kind}: {recognised.reason}")
    if write_plan is not None:
        if plan is not None or only is not None:
            raise OptionError("--write-plan makes a plan, --plan and --only work by one; say which")
        _write_plan(recognised.source, options, write_plan, json=json)
        return
    if only is not None and plan is None:
        raise OptionError("--only chooses shards of a plan; name that with --plan")
    if plan is not None and options:
        raise OptionError(f"{', '.join(options)} is decided by the plan already; leave it out")
    loaded = None if plan is None else rs.PackPlan.load(plan)
    doing: dict[str, Any] = {"threads": threads}
    if loaded is None or only is None:
        doing |= {"on_error": "skip" if skip_errors else "stop", "overwrite": overwrite}
    with telling_what_is_kept(out), console.progress_bar("packing") as progress:
        doing["progress"] = progress
        if loaded is None:
            report = rs.pack(recognised.source, out, **options, **doing)
        elif only is None:
            report = loaded.pack(recognised.source, out, **doing)
        else:
            numbers = parse_numbers(only, "--only")
            results = loaded.pack_shards(recognised.source, out, numbers, **doing)
            _print_shards(results, json=json)
            return
    if json:
        console.print_json(report.to_json() | {"kind": recognised.kind})
    else:
        noun = _NOUNS.get(recognised.kind, "picture")
        print_pack_report(report, noun)
        typed = shlex.quote(out)
        look = f"sheet {typed} sheet.png" if noun == "picture" else f"head {typed}"
        console.print_hint(
            f"next: `recordsmith {look}` to look at them, `recordsmith inspect {typed} --reader "
            "torch` (tf, dali, grain) for a program that reads them"
        )


def _picture_options(**options: Any) -> rs.PictureOptions | None:
    said = {name: value for name, value in options.items() if value is not None}
    return rs.PictureOptions(**said) if said else None


def _write_plan(source: Any, options: dict[str, Any], path: str, *, json: bool) -> None:
    plan = rs.plan(source, **options)
    plan.save(path)
    if json:
        console.print_json({"plan": path, "shards": len(plan.shards)})
        return
    print(console.bold(f"{console.count(len(plan.shards), 'shard')} planned in {path}"))
    command = f"recordsmith pack SOURCE OUT --plan {path}"
    print(f"  write some of them, on any machine:  {command} --only 0-{len(plan.shards) - 1}")
    print(f"  then complete the dataset:           {command}")


def _print_shards(results: Any, *, json: bool) -> None:
    if json:
        shards = [
            {
                "file": result.file,
                "records": result.record_count,
                "size_bytes": result.size_bytes,
                "is_new": not result.was_kept,
                "skipped": list(result.skipped.values()),
            }
            for result in results
        ]
        console.print_json({"shards": shards})
        return
    for result in results:
        print(
            f"{console.printable(result.file)}: {console.count(result.record_count, 'record')}, "
            f"{console.size(result.size_bytes)}"
            + (", complete from before" if result.was_kept else "")
        )
        skipped = [*map(in_options, result.skipped.values())]
        console.print_list(f"skipped {len(skipped):,}", skipped, indent="  ")


def print_pack_report(report: rs.PackReport, noun: str = "picture") -> None:
    """The summary of a job, in a few lines; `noun` is what one sample is."""
    of_classes = "" if report.class_count is None else f" of {_classes(report.class_count)}"
    what = f"{console.count(report.sample_count, noun)}{of_classes}"
    console.print_written(report, "packed", what)
    if report.is_new:
        print("  every record was read back and its checksums are right")
    skipped = [*map(in_options, report.skipped)]
    console.print_list(f"skipped {len(skipped):,}", skipped)
    for sentence, noted in report.notes.items():
        title = f"{in_options(sentence)} ({console.count(noted.count, 'time')})"
        console.print_list(title, noted.places, most=3, number=noted.count)
    console.print_list("notices", [*map(in_options, report.notices)])


def _classes(number: int) -> str:
    return console.count(number, "class", "classes")
