"""`recordsmith pack` and `detect`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import Json, Out, Source, SourceOptions
from recordsmith.cli.wording import option_in_shell
from recordsmith.errors import MAX_PROBLEMS, with_options
from recordsmith.words import note_text

if TYPE_CHECKING:
    from recordsmith.linting import LintReport
    from recordsmith.packing import PackReport
    from recordsmith.sources import Detection
    from recordsmith.sources import Source as SampleSource

_NOUNS = {"table": "row", "shards": "record", "tfds": "record", "webdataset": "sample"}
_IMAGES = "How images are stored"
_PANELS = {
    "Splits and shards": (
        "splits resplit shards shard_size_bytes seed stratify in_order shard_names"
    ),
    "Records": "keys compression like",
    _IMAGES: "check_images",
}


def pack(
    source: Source,
    out: Out,
    options: Annotated[dict[str, Any], OptionsOf("pack", panels=_PANELS)],
    source_options: SourceOptions,
    image_options: Annotated[dict[str, Any], OptionsOf("ImageOptions", _IMAGES)],
    *,
    in_order: bool = False,
    json: Json = False,
) -> None:
    """Detects the type of SOURCE and prints it. Images are stored unchanged by default. Each shard
    is read back and verified before it gets its final name. If the job is interrupted, rerun it to
    resume: it keeps the finished shards. Until then, every command refuses OUT as unfinished.

    Example: `recordsmith pack flowers out --splits train=0.8,test=0.2`

    Args:
        in_order: keep the order of the source.
    """
    from recordsmith.linting import lint_listing
    from recordsmith.sources import ListedSource
    from recordsmith.stores import as_folder
    from recordsmith.stores.checks import check_writable
    from recordsmith.work import Work

    check_writable(as_folder(out).store, out)
    detected = rs.detect(source, **source_options)
    if image_options:
        options["image_options"] = rs.ImageOptions(**image_options)
    if in_order:
        options["shuffle"] = False
    listed = print_detected(detected, json=json)
    with console.progress_bar("packing") as progress:
        listing = listed.list_samples()
        _print_findings(lint_listing(listing, Work(1, None), deep=False))
        source_listed = ListedSource(listed, listing)
        report = rs.pack(source_listed, out, **options, progress=progress)
    form = detected.reading.format
    if json:
        read = {"format": form, "options": dict(detected.reading.options)}
        console.print_json(report.to_json() | read)
        return
    noun = _NOUNS.get(form, "image")
    print_pack_report(report, noun)
    typed = shlex.quote(out)
    preview = f"sheet {typed} sheet.png" if noun == "image" else f"head {typed}"
    console.print_hint(
        f"next: preview them with `recordsmith {preview}`, or print a program that reads them "
        f"with `recordsmith inspect {typed} --reader torch` (or tf, dali, grain)"
    )


def _print_findings(report: LintReport) -> None:
    """Print errors and warnings before packing, on standard error."""
    for finding in report.findings:
        if finding.severity != "note":
            first = finding.examples[0].describe()
            more = f" (and {finding.count - 1:,} more)" if finding.count > 1 else ""
            console.print_aside(f"{finding.severity}: {finding.check}: {first}{more}")


def detect(source: Source, source_options: SourceOptions, json: Json = False) -> None:
    """Lists the samples and opens some files, but packs nothing. If several readings fit, prints
    the options that choose each of them; `detect` and `pack` take the same ones.

    Example: `recordsmith detect photos`
    """
    document = rs.detect(source, **source_options).to_json()
    if json:
        console.print_json(document)
        return
    number = console.count(document["count"], document["noun"].removesuffix("s"))
    print(f"{console.printable(document['what'])}: {number}")
    print(f"  {console.printable(_options_in_shell(document['format'], document['options']))}")
    if document["splits"]:
        print(f"  splits: {console.printable(', '.join(document['splits']))}")
    console.print_list("not read", document["left_out"])
    console.print_list("notices", document["notices"])
    others = [
        f"{other['what']}: {_options_in_shell(other['format'], other['options'])}"
        for other in document["alternatives"]
        if other["strength"] != "possible"
    ]
    console.print_list("other readings", others)


# -- printing, for other commands as well ----------------------------------------------------------


def print_detected(detected: Detection, *, json: bool) -> SampleSource:
    """Print what was detected, and return the source, which is not listed again."""
    if detected.given_format is not None:
        return detected.source
    from recordsmith.sources import ListedSource

    listing = detected.source.list_samples()
    if not json:
        described = with_options(detected.describe(listing))
        console.print_aside(f"Detected: {console.printable(described)}")
        shown = _options_in_shell(detected.reading.format, detected.reading.options)
        console.print_aside(console.printable(shown))
    return ListedSource(detected.source, listing)


def _options_in_shell(format: str, options: Mapping[str, Any]) -> str:
    """Return the options of `pack` that read a source in the same way."""
    given = {"format": format, **options}
    return " ".join(option_in_shell(name, repr(value)) for name, value in given.items())


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

    _print_skipped(report.skipped, report.skipped_count)
    for sentence, noted in report.notes.items():
        title = note_text(noted.count, sentence)
        if sentence in REQUESTED:
            console.print_line(title)
        else:
            console.print_list(title, noted.places, most=3, number=noted.count)
    console.print_list("notices", report.notices)


def _print_skipped(skipped: list[str], number: int) -> None:
    with console.not_quiet():
        console.print_list(f"skipped {number:,}", skipped, MAX_PROBLEMS, number=number)


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
