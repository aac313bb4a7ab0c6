"""Commands that print a report: inspect, stats, verify, diff, lint, forecast, bench and schema."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import (
    WHICH,
    Html,
    Json,
    OverwritePage,
    Paths,
    Source,
    SourceOptions,
    check_html,
    one_or_all,
)
from recordsmith.cli.pack import print_detected
from recordsmith.cli.report_text import print_report
from recordsmith.support.errors import OptionError, option
from recordsmith.support.words import first_of

if TYPE_CHECKING:
    from recordsmith.loading import BenchReport
    from recordsmith.stores import Location
    from recordsmith.support.reports import ReportContent

_WHICH = {WHICH: "split"}


def _out(default: str) -> Any:
    text = f"The file to write. [default: {default}]"
    return typer.Option("--out", "-o", help=text, metavar="FILE")


def inspect(
    paths: Paths,
    options: Annotated[dict[str, Any], OptionsOf("inspect", panels=_WHICH)],
    *,
    reader: str | None = None,
    json: Json = False,
) -> None:
    """With --reader, prints Python code that reads the dataset with all its features.

    Example: `recordsmith inspect out`

    Python code: `recordsmith inspect out --reader tf > read_it.py`

    Args:
        reader: print Python code that reads the dataset: with TensorFlow (tf) or dali.
    """
    if reader is not None and json:
        raise OptionError(
            f"{option('reader')} and {option('json')} exclude each other",
            option="reader",
            remedy="Pass only one of them.",
        )
    with console.progress_bar("reading", of_bytes=True) as progress:
        if reader is None:
            report = rs.inspect(one_or_all(paths), **options, progress=progress)
        else:
            name: Any = reader
            code = rs.reader_code(one_or_all(paths), name, **options, progress=progress)
    if reader is None:
        _show(report, json)
    else:
        print(code, end="")


def stats(
    paths: Paths,
    options: Annotated[dict[str, Any], OptionsOf("stats", panels=_WHICH)],
    html: Html = None,
    json: Json = False,
) -> None:
    """Reads every record. Covers ranges and frequent values, classes, image sizes, masks and boxes.

    Example: `recordsmith stats out`

    HTML page: `recordsmith stats out --html stats.html`
    """
    check_html(html, options)
    with console.progress_bar("reading", of_bytes=True) as progress:
        report = rs.stats(one_or_all(paths), **options, progress=progress)
    _show(report, json, html, paths, options)


def verify(
    paths: Paths,
    options: Annotated[dict[str, Any], OptionsOf("verify", panels=_WHICH)],
    html: Html = None,
    json: Json = False,
) -> None:
    """Prints the defects and exits with 1 if there are any.

    Example: `recordsmith verify out --deep`

    Own rules: `recordsmith verify new --schema schema.json`
    """
    check_html(html, options)
    with console.progress_bar("verifying", of_bytes=True) as progress:
        report = rs.verify(one_or_all(paths), **options, progress=progress)
    content = report.content()
    if "schema" in options and not report.unchecked:
        checked = content.summary.removesuffix(".")
        content = replace(content, summary=f"{checked}, and the rules of {options['schema']}")
    _show(report, json, html, paths, options, content=content)
    if not report.is_good:
        raise typer.Exit(1)


def diff(
    a: str,
    b: str,
    options: Annotated[dict[str, Any], OptionsOf("diff", panels=_WHICH)],
    *,
    json: Json = False,
) -> None:
    """Exits with 1 if they differ.

    Example: `recordsmith diff out old`

    By a feature: `recordsmith diff a.tfrecord b.tfrecord --by id`

    Args:
        a: a TFRecord file, a folder, or a quoted pattern such as 'data/*.tfrecord'.
        b: the dataset to compare it with.
    """
    with console.progress_bar("comparing", of_bytes=True) as progress:
        report = rs.diff(a, b, **options, progress=progress)
    _show(report, json, options=options)
    if not report.is_equal:
        raise typer.Exit(1)


def lint(
    source: Source,
    options: Annotated[dict[str, Any], OptionsOf("lint")],
    source_options: SourceOptions,
    *,
    quick: bool = False,
    html: Html = None,
    json: Json = False,
) -> None:
    """Finds damaged images, invalid boxes and masks, misspelt classes, duplicates and images that
    are in two splits. Exits with 1 if there are errors or warnings, with 0 if there are only notes.

    Example: `recordsmith lint flowers`

    HTML page: `recordsmith lint flowers --html lint.html`

    Args:
        quick: check only names, classes and orphans, without opening images.
    """
    check_html(html, options)
    listed, read = _list_source(source, source_options, json=json)
    with console.progress_bar("checking") as progress:
        report = rs.lint(listed, deep=not quick, **options, progress=progress)
    _show(report, json, html, [source], options, more=read)
    if not report.is_clean:
        if not json and html is None:
            shown = f"recordsmith lint {shlex.quote(source)} --html lint.html"
            console.print_hint(f"next: preview them with `{shown}`")
        raise typer.Exit(1)


def forecast(
    source: Source,
    options: Annotated[dict[str, Any], OptionsOf("forecast")],
    source_options: SourceOptions,
    *,
    html: Html = None,
    overwrite: OverwritePage = False,
    json: Json = False,
) -> None:
    """Stores a random sample of the images as raw pixels, PNG, JPEG and smaller images, and writes
    nothing. The error is estimated from the spread in the sample.

    Example: `recordsmith forecast flowers --qualities 95,80 --html forecast.html`
    """
    check_html(html, {"overwrite": overwrite})
    listed, read = _list_source(source, source_options, json=json)
    with console.progress_bar("forecasting", speed=False) as progress:
        report = rs.forecast(listed, **options, progress=progress)
    _show(report, json, html, [source], {"overwrite": overwrite}, more=read)


def bench(
    paths: Paths,
    options: Annotated[dict[str, Any], OptionsOf("bench", panels=_WHICH)],
    threads: Annotated[
        int | None,
        typer.Option(
            help="Decoding threads; 0 decodes in the main thread. [default: one per processor]",
            min=0,
            metavar="N",
        ),
    ] = None,
    shuffle: Annotated[
        bool, typer.Option("--shuffle/--no-shuffle", help="Whether to shuffle.")
    ] = True,
    json: Json = False,
) -> None:
    """Loads it with the given options. Ctrl-C prints the results so far.

    Example: `recordsmith bench out --split train --batch-size 32 --size 224`
    """
    report: BenchReport | None = None
    try:
        with console.progress_bar("measuring, seconds", speed=False) as progress:

            def keep(now: BenchReport) -> None:
                nonlocal report
                report = now
                progress(int(now.elapsed_seconds), int(now.total_seconds))

            report = rs.bench(
                one_or_all(paths), threads=threads, shuffle=shuffle, on_update=keep, **options
            )
    except KeyboardInterrupt:
        if report is not None and report.measured.batch_count:
            _show(report, json)
        raise
    _show(report, json)


def normalisation(
    paths: Paths,
    features: Annotated[
        list[str],
        typer.Option("--feature", "-f", help="A feature with numbers.", metavar="KEY"),
    ],
    options: Annotated[dict[str, Any], OptionsOf("normalisation", panels=_WHICH)],
    out: Annotated[str | None, _out("normalisation.json next to the manifest")] = None,
    overwrite: OverwritePage = False,
) -> None:
    """`Tensor(KEY, shape=…, normalise="q99")` uses the file to load numbers from -1 to 1.

    Example: `recordsmith normalisation out -f steps/action -f steps/state`
    """
    from recordsmith.stores import as_location

    target = _normalisation_of(paths) if out is None else as_location(out)
    target.check_target(overwrite=overwrite)
    with console.progress_bar("reading", of_bytes=True) as progress:
        statistics = rs.normalisation(one_or_all(paths), features, **options, progress=progress)
    statistics.save(target, overwrite=overwrite)
    of_split = "" if statistics.split is None else f" of the split {statistics.split}"
    print(
        f"{console.printable(str(target))}: {console.count(len(features), 'feature')} in "
        f"{console.count(statistics.record_count, 'record')}{console.printable(of_split)}"
    )
    for key, feature in statistics.features.items():
        if left_out := feature.nan + feature.infinite:
            print(f"  {console.printable(key)}: left out {left_out:,} NaN or infinite values")


def _normalisation_of(paths: list[str]) -> Location:
    """Return where the statistics of a dataset with a manifest are."""
    from recordsmith.checking import NORMALISATION_NAME
    from recordsmith.dataset import MANIFEST_NAME
    from recordsmith.stores import as_folder

    folder = as_folder(paths[0])
    if len(paths) > 1 or not (folder / MANIFEST_NAME).exists():
        raise OptionError(
            f"{paths[0]} is not the folder of a dataset with a manifest, which has a place for the "
            "statistics",
            option="out",
            remedy="Name the file to write with --out.",
        )
    return folder / NORMALISATION_NAME


def schema(
    paths: Paths,
    options: Annotated[dict[str, Any], OptionsOf("schema", panels=_WHICH)],
    out: Annotated[str | None, _out("standard output")] = None,
    overwrite: OverwritePage = False,
) -> None:
    """Edit the rules as needed. `recordsmith verify PATH --schema FILE` checks records against
    them.

    Example: `recordsmith schema out -o schema.json`
    """
    if out is not None:
        from recordsmith.stores import as_location

        as_location(out).check_target(overwrite=overwrite)
    with console.progress_bar("reading", of_bytes=True) as progress:
        rules = rs.schema(one_or_all(paths), **options, progress=progress)
    if out is None:
        console.print_json(rules.to_json())
        return
    rules.save(out, overwrite=overwrite)
    count = sum(map(len, rules.sections.values()))
    print(f"{console.printable(out)}: rules for {console.count(count, 'feature')}")


def _list_source(source: str, options: dict[str, Any], *, json: bool) -> tuple[Any, dict[str, str]]:
    """Detect and list a source; return it with what the document says about it."""
    detected = rs.detect(source, **options)
    return print_detected(detected, json=json), {"format": detected.reading.format}


def _show(
    report: Any,
    json: bool,
    html: str | None = None,
    paths: Sequence[str] = (),
    options: Mapping[str, Any] = {},
    *,
    content: ReportContent | None = None,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Print a report, or its JSON with `more` keys, and write its page.

    Args:
        options: those of the command, such as `overwrite` and `findings`.
    """
    if html is not None:
        overwrite = bool(options.get("overwrite"))
        rs.save_html(report, html, title=first_of(paths, 1), overwrite=overwrite)
    if json:
        console.print_json(report.to_json() | (more or {}))
    else:
        print_report(content or report.content())
    for name, path in {"report": html, "findings": options.get("findings")}.items():
        if path is not None:
            console.print_aside(f"{name}: {path}")
