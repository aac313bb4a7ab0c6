"""`recordsmith demo`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
_LOADER = """\
dataset = rs.open("{dataset}", split="train")
image = rs.Image(size=192, fit="center-crop")
features = {{"image": image, "name": rs.Text("image/class/text")}}
for batch in rs.Loader(dataset, features, batch_size=30, shuffle=True): ..."""

_NEXT = """\
Now your own pictures, in a folder for each class: `recordsmith pack FOLDER OUT`; what else can be
packed: `recordsmith pack --help`. And any TFRecord file: `recordsmith inspect FILE` says what is in
it, `recordsmith verify FILE` what is wrong with it."""


def demo(
    out: Annotated[
        str, typer.Argument(help="The folder of the demo.", metavar="[OUT]")
    ] = "recordsmith-demo",
) -> None:
    """Draw pictures of flowers, and do the whole main job with them.

    Packs, verifies and inspects them, loads batches, and draws one of them to look at.

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

    _say("5. Train from it", *_LOADER.format(dataset=dataset).splitlines())
    loader = rs.Loader(
        rs.open(dataset, split="train"),
        {"image": rs.Image(size=192, fit="center-crop"), "name": rs.Text("image/class/text")},
        batch_size=_BATCH_SIZE,
        shuffle=True,
    )
    batch, *_ = loader
    for name, column in batch.items():
        print(f"  {name:20} {column.dtype!s:6} shape {column.shape}")
    stats = loader.stats()
    print(f"  {stats.batch_count} batches, {stats.records_per_second:,.0f} pictures a second")

    sheet = Path(out) / _SHEET_NAME
    _say(f"6. See what a model would be given: look at {sheet}")
    title = "Flowers, from TFRecord"
    rs.draw_batch(batch["image"], sheet, captions=batch["name"], title=title, overwrite=True)
    print(f"\n{_NEXT}")


def _say(title: str, *commands: str) -> None:
    print(f"\n{console.bold(title)}")
    for command in commands:
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
