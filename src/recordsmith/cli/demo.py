"""`recordsmith demo`."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.pack import print_pack_report
from recordsmith.cli.report_text import print_report
from recordsmith.support.errors import OptionError

if TYPE_CHECKING:
    from recordsmith.stores import Location

_IMAGES_PER_CLASS = 24
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
Next, pack your own images, in one folder per class: `recordsmith pack FOLDER OUT`. For other
sources see `recordsmith pack --help`. For any TFRecord file, `recordsmith view FILE` shows its
records in a browser, `recordsmith inspect FILE` its contents, and `recordsmith verify FILE` finds
what is damaged."""


def demo(out: str = "recordsmith-demo") -> None:
    """Packs, verifies and inspects them, loads batches, and draws one batch as a preview.

    Example: `recordsmith demo`

    Args:
        out: the folder for the demo. [default: recordsmith-demo]
    """
    from recordsmith.stores import as_folder  # loads more than `--help` needs

    folder = as_folder(out)
    images, dataset = folder / "images", folder / "dataset"
    if folder.is_folder():
        names = {entry.name for entry in folder.list_entries()}
        if others := names - {"images", "dataset", _SHEET_NAME}:
            raise OptionError(
                f"{out} contains other files, such as {min(others)}",
                option="out",
                remedy="Choose a new folder.",
            )
    with _step(f"1. Draw flowers into {images}"):
        _draw(images)

    splits = ",".join(f"{name}={share:g}" for name, share in _SPLITS.items())
    pack = f"recordsmith pack {images} {dataset} --splits {splits} --stratify --shards 2"
    with _step("2. Pack them", pack), console.progress_bar("packing") as progress:
        report = rs.pack(
            rs.ImageFolder(images),
            dataset,
            splits=_SPLITS,
            stratify=True,
            shards=2,
            progress=progress,
        )
        print_pack_report(report)

    with _step("3. Verify them", f"recordsmith verify {dataset}"):
        findings = rs.verify(dataset)
        print_report(findings.content())
    if not findings.is_good:
        raise typer.Exit(1)

    with _step("4. Inspect the dataset", f"recordsmith inspect {dataset}"):
        print_report(rs.inspect(dataset).content())

    loop = _LOADER.format(dataset=dataset).splitlines()
    with _step("5. Load batches for training", *loop):
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
        print(f"  {stats.batch_count} batches, {stats.records_per_second:,.0f} images per second")

    sheet = folder / _SHEET_NAME
    with _step(f"6. Preview a batch as a model receives it: {sheet}"):
        title = "Flowers, from TFRecord"
        rs.draw_batch(batch["image"], sheet, captions=batch["name"], title=title, overwrite=True)
    print(f"\n{_NEXT}")


@contextmanager
def _step(title: str, *commands: str) -> Iterator[None]:
    """Print the title and commands of the step in the block, and how long it took."""
    print(f"\n{console.bold(title)}")
    for command in commands:
        print(f"  $ {command}" if command.startswith("recordsmith") else f"  >>> {command}")
    sys.stdout.flush()
    begin = time.perf_counter()
    yield
    print(f"  took {time.perf_counter() - begin:.1f} s", flush=True)


def _draw(folder: Location) -> None:
    from recordsmith.image import SPECIES, draw_flower

    folder.make_folder()
    total = len(SPECIES) * _IMAGES_PER_CLASS
    with console.progress_bar("drawing") as progress:
        for done in range(total):
            species = list(SPECIES)[done // _IMAGES_PER_CLASS]
            number = done % _IMAGES_PER_CLASS
            form, suffix = ("JPEG", "jpg") if number % _PNG_EVERY else ("PNG", "png")
            stream = io.BytesIO()
            draw_flower(species, number).save(stream, form, quality=92)
            (folder / species / f"{species}-{number:02d}.{suffix}").put(stream.getvalue())
            progress(done + 1, total)
    print(f"  {console.count(total, 'image')}, JPEG and PNG, one folder per class")
