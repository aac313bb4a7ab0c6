"""`recordsmith demo`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.inspect import print_inspection
from recordsmith.cli.pack import print_pack_report
from recordsmith.cli.verify import print_verify_report
from recordsmith.errors import OptionError
from recordsmith.files import list_folder, make_folder, write_atomically

if TYPE_CHECKING:
    from PIL import Image

_PICTURES_OF_EACH = 24
_PNG_EVERY = 4
_SPLITS = {"train": 0.75, "validation": 0.25}
_BATCH_SIZE = 30
_SHEET_NAME = "contact-sheet.png"


def demo(
    out: Annotated[
        str, typer.Argument(help="The folder of the demo.", metavar="[OUT]")
    ] = "recordsmith-demo",
) -> None:
    """Draw pictures of flowers, and do the whole main job with them.

    Packs, verifies and inspects them, loads a batch, and writes a contact sheet to look at.

    Example: `recordsmith demo`
    """
    pictures, dataset = Path(out) / "pictures", Path(out) / "dataset"
    if Path(out).is_dir():
        others = {entry.name for entry in list_folder(out)} - {"pictures", "dataset", _SHEET_NAME}
        if others:
            raise OptionError(f"{out} holds other files, such as {min(others)}; name a new folder")
    _say(f"1. Draw some flowers into {pictures}")
    _draw(pictures)

    _say("2. Pack them", f"recordsmith pack {pictures} {dataset} --split {_shares()} --shards 2")
    with console.progress_bar("packing") as progress:
        report = rs.pack(
            rs.ImageFolder(pictures), dataset, splits=_SPLITS, shards=2, progress=progress
        )
    print_pack_report(report)

    _say("3. Prove them right", f"recordsmith verify {dataset}")
    findings = rs.verify(dataset)
    print_verify_report(findings)
    if not findings.is_good:
        raise typer.Exit(1)

    _say("4. See what is inside", f"recordsmith inspect {dataset}")
    print_inspection(rs.inspect(dataset))

    _say(
        "5. Load a batch",
        f'batch = next(rs.open("{dataset}", split="train").batches({_BATCH_SIZE}))',
    )
    train = rs.open(dataset, split="train")
    batch = next(train.batches(_BATCH_SIZE))
    for key in sorted(batch):
        column: Any = batch[key]
        kind = "bytes" if isinstance(column, rs.BytesArray) else str(column.dtype)
        print(f"  {key:20} {kind:6} shape {column.shape}")

    sheet = Path(out) / _SHEET_NAME
    _say(f"6. Decode it into a contact sheet: look at {sheet}")
    page = _contact_sheet(batch, f"{len(train)} records, the first {_BATCH_SIZE} of them")
    write_atomically(sheet, _encode(page, "PNG"))


def _say(title: str, command: str | None = None) -> None:
    print(f"\n{console.bold(title)}")
    if command is not None:
        print(f"  $ {command}" if command.startswith("recordsmith") else f"  >>> {command}")


def _shares() -> str:
    return ",".join(f"{name}={share:g}" for name, share in _SPLITS.items())


def _draw(folder: Path) -> None:
    from recordsmith.image.flowers import SPECIES, draw_flower

    total = len(SPECIES) * _PICTURES_OF_EACH
    with console.progress_bar("drawing") as progress:
        for done in range(total):
            species = list(SPECIES)[done // _PICTURES_OF_EACH]
            number = done % _PICTURES_OF_EACH
            form, suffix = ("JPEG", "jpg") if number % _PNG_EVERY else ("PNG", "png")
            make_folder(folder / species)
            data = _encode(draw_flower(species, number), form)
            write_atomically(folder / species / f"{species}-{number:02d}.{suffix}", data)
            progress(done + 1, total)
    print(f"  {console.count(total, 'picture')}, JPEG and PNG, a folder for each class")


def _encode(picture: Image.Image, form: str) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, form, quality=92)
    return stream.getvalue()


def _contact_sheet(batch: dict[str, Any], subtitle: str) -> Image.Image:
    from recordsmith.image import decode_image
    from recordsmith.image.contact_sheet import contact_sheet

    pictures = [
        (decode_image(encoded), f"{label}  {text.decode()}")
        for encoded, label, text in zip(
            batch["image/encoded"],
            batch["image/class/label"],
            batch["image/class/text"],
            strict=True,
        )
    ]
    return contact_sheet(pictures, title="Flowers, from TFRecord", subtitle=subtitle)
