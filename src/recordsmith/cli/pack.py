"""`recordsmith pack` and the commands around it: detect, run and finish."""

from __future__ import annotations

import json as json_module
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import Json, Out, Source, SourceOptions, argument
from recordsmith.cli.parsing import parse_numbers
from recordsmith.cli.wording import option_in_shell
from recordsmith.support.errors import OptionError, option, with_options
from recordsmith.support.problems import MAX_PROBLEMS
from recordsmith.support.words import first_of, note_text

if TYPE_CHECKING:
    from recordsmith.checking import LintReport
    from recordsmith.sources import Detection, ListedSource
    from recordsmith.writing import PackReport, ShardResult

_NOUNS = {"table": "row", "shards": "record", "tfds": "record", "webdataset": "sample"}
_IMAGES = "How images are stored"
_PANELS = {
    "More about splits and shards": (
        "resplit group_pattern groups folds shard_size_bytes shard_names in_order"
    ),
    "Records": "keys compression like license citation numbers_of",
    _IMAGES: "check_images",
    "Where it runs": "engine threads write_plan",
}
_CLASSES = 10
"""How many classes of a split are printed, those first that deviate most."""

_NOT_PLANNED = frozenset({"like", "skip_errors", "overwrite", "engine", "threads"})
"""Options of `pack` that a plan does not take."""

_PlanPath: TypeAlias = Annotated[
    str, argument("PLAN", "A plan, as `recordsmith pack --write-plan` writes it.")
]


def pack(
    source: Source,
    out: Out,
    options: Annotated[dict[str, Any], OptionsOf("pack", panels=_PANELS)],
    source_options: SourceOptions,
    image_options: Annotated[dict[str, Any], OptionsOf("ImageOptions", _IMAGES)],
    *,
    in_order: bool = False,
    write_plan: str | None = None,
    json: Json = False,
) -> None:
    """Detects the type of SOURCE and prints it. Images are stored unchanged by default. Each shard
    is read back and verified before it gets its final name (of uncompressed copies of rows, what is
    copied is verified). If the job is interrupted, rerun it to resume: it keeps the finished
    shards. Until then, every command refuses OUT as unfinished.

    Example: `recordsmith pack flowers out --splits train=0.8,test=0.2`

    Args:
        in_order: keep the order of the source.
        write_plan: write a plan of the shards to a file, and pack nothing.
    """
    from recordsmith.checking import lint_listing
    from recordsmith.stores import as_folder
    from recordsmith.support.work import WorkerPool

    if write_plan is None:
        as_folder(out).store.check_writable(out)
    detected = rs.detect(source, **source_options)
    if image_options:
        options["image_options"] = rs.ImageOptions(**image_options)
    if in_order:
        options["shuffle"] = False
    listed = print_detected(detected, json=json)
    if write_plan is not None:
        _write_plan(listed, out, options, write_plan, json=json)
        return
    with console.progress_bar("packing") as progress:
        _print_lint_findings(lint_listing(listed.list_samples(), WorkerPool(1, None), deep=False))
        report = rs.pack(listed, out, **options, progress=progress)
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
        f"in TensorFlow with `recordsmith inspect {typed} --reader tf` (or dali)"
    )


def _print_lint_findings(report: LintReport) -> None:
    for finding in report.findings:
        if finding.severity != "note":
            first = finding.examples[0].describe()
            more = f" (and {finding.count - 1:,} more)" if finding.count > 1 else ""
            console.print_aside(f"warning: {finding.check}: {first}{more}")  # as it goes on


def _write_plan(source: Any, out: str, options: dict[str, Any], path: str, *, json: bool) -> None:
    if "like" in options:
        raise OptionError(
            f"{option('like')} excludes {option('write_plan')}",
            option="like",
            value=options["like"],
            remedy="Pass the options of that dataset to the plan.",
        )
    planned = {name: value for name, value in options.items() if name not in _NOT_PLANNED}
    plan = rs.plan(source, out, **planned)
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


def run(
    plan: _PlanPath,
    *,
    only: str | None = None,
    results: str | None = None,
    json: Json = False,
) -> None:
    """Each task writes one shard and verifies it. Shards that are complete already are kept, unless
    samples could not be read. When all tasks have run, `recordsmith finish PLAN` completes the
    dataset.

    Example: `recordsmith run plan.jsonl --only 0-9`

    Args:
        only: only these tasks, such as 3 or 0-9. [default: all]
        results: write the results to this file, for `recordsmith finish`. [default: it finds them
            in the folder of the dataset]
    """
    from recordsmith.stores import write_document

    loaded = rs.PackPlan.load(plan)
    numbers = range(len(loaded.shards)) if only is None else parse_numbers(only, "only")
    written: list[ShardResult] = []
    with console.progress_bar("packing") as progress:
        total = sum(loaded.shards[number].sample_count for number in numbers)
        done = 0
        for task in loaded.tasks(numbers):
            written.append(rs.run(task))
            done += task.size
            progress(done, total)
    if results is not None:
        lines = (json_module.dumps(result.to_json()).encode() + b"\n" for result in written)
        write_document(results, b"".join(lines), overwrite=True)
    planned = {shard.file: shard.sample_count for shard in loaded.shards}
    _print_shards(written, planned, json=json)


def _print_shards(results: list[ShardResult], planned: dict[str, int], *, json: bool) -> None:
    """Print results of tasks; `planned` is the number of samples of each shard."""
    skipped = {result.file: planned[result.file] - result.record_count for result in results}
    if json:
        shards = [
            {
                "file": result.file,
                "records": result.record_count,
                "size_bytes": result.entry.size_bytes,
                "is_new": not result.was_reused,
                "skipped": list(result.skipped.values()),
                "skipped_count": skipped[result.file],
            }
            for result in results
        ]
        console.print_json({"shards": shards})
        return
    for result in results:
        print(
            f"{console.printable(result.file)}: {console.count(result.record_count, 'record')}, "
            f"{console.size(result.entry.size_bytes)}"
            + (", already complete" if result.was_reused else "")
        )
        _print_skipped(list(result.skipped.values()), skipped[result.file])


def finish(
    plan: _PlanPath,
    options: Annotated[dict[str, Any], OptionsOf("finish")],
    results: list[str] | None = None,
    *,
    json: Json = False,
) -> None:
    """Writes names, labels and the manifest. Reads no shard. Fails if the result of a task is
    missing.

    Example: `recordsmith finish plan.jsonl`

    Args:
        results: what `recordsmith run --results` wrote. [default: found in the folder of the
            dataset]
    """
    from recordsmith.writing import read_results

    loaded = rs.PackPlan.load(plan)
    report = rs.finish(
        loaded, read_results(results) if results else loaded.noted_results(), **options
    )
    console.print_result(report, lambda: print_pack_report(report, "sample"), json=json)


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
    account = document["account"] or {"files": 0, "read": [], "left_out": []}
    number = sum(line["files"] for line in account["read"])
    title = f"read, {number:,} of {console.count(account['files'], 'file')}"
    console.print_list(title, [line["what"] for line in account["read"]])
    left_out = [line["notice"] for line in account["left_out"]]
    console.print_list("left out", left_out)
    console.print_list("hints", document["hints"])
    notices = [notice for notice in document["notices"] if notice not in left_out]
    console.print_list("notices", notices)
    stops = (
        f"pack stops, as these may be needed (leave them out by name with {option('leave_out')})"
    )
    console.print_list(with_options(stops), document["stops"])
    others = [
        f"{other['what']}: {_options_in_shell(other['format'], other['options'])}"
        for other in document["alternatives"]
        if other["strength"] != "possible"
    ]
    console.print_list("other readings", others)


# -- printing, for other commands as well ----------------------------------------------------------


def print_detected(detected: Detection, *, json: bool) -> ListedSource:
    """Print what was detected, unless the format was given; list the source once."""
    from recordsmith.sources import ListedSource

    listing = detected.source.list_samples()
    if detected.given_format is None and not json:
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
    what = console.count(report.sample_count, noun)
    if report.class_count is not None:
        what += f" of {console.count(report.class_count, 'class', 'classes')}"
    read = "encoded rows" if noun == "row" else f"{noun}s"
    console.print_written(report, "packed", what, read)
    if report.is_new:
        console.print_line(_checked(report, noun), "  ")
    print_findings(report)


def print_findings(report: PackReport) -> None:
    """Print what was skipped, changed and noticed; of requested changes only the number."""
    from recordsmith.writing import is_requested

    _print_skipped(report.skipped, report.skipped_count)
    lines = []
    for split, deviations in report.deviations.items():
        shown = [f"{name} {found:+.1%}" for name, found in deviations.items()]
        lines.append(f"{split}: {first_of(shown, _CLASSES)}")
    console.print_list("deviation of the share of each class", lines, most=100)
    for sentence, noted in report.notes.items():
        title = note_text(noted.count, sentence)
        if is_requested(sentence):
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
