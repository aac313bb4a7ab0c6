"""Give advice with the figures that it is based on.

A trial counts as faster only if each of its rounds was faster than each of the other's, and all
together by a fifth, or by a tenth for tiles, which change no pixel; with a single round, by two
fifths. Trials of a few batches do not count, because some of these were made before the measurement
began.
"""

from __future__ import annotations

from collections.abc import Iterator

from recordsmith.loading import BlockShuffle
from recordsmith.measuring.bench_report import BenchReport, Trial
from recordsmith.words import percent

_CLEAR, _CLEAR_IN_ONE_ROUND = 1.2, 1.4
_CLEAR_FOR_TILES = 1.1
_FEWEST_BATCHES = 8
_LARGE_SPREAD = 0.15
_MOSTLY_IDLE = 0.5
_MOSTLY_CACHED = 0.9
_ORDERS = {
    "in order": "in order",
    "shuffled": "shuffled",
    "blocks": "in blocks (BlockShuffle)",
    "buffer": "through a buffer (BufferShuffle)",
}


def advise(report: BenchReport) -> tuple[str, ...]:
    """Advice from the trials so far, the most important first."""
    if not report.trials or not report.requested.rounds:
        return ()
    return tuple(
        sentence
        for part in (_link, _packed, _threads, _order, _step, _too_little, _limits)
        for sentence in part(report)
    )


def is_faster(one: Trial, other: Trial, clear: float = _CLEAR) -> bool:
    """Whether a trial is clearly faster: by the factor `clear`, if it has several rounds."""
    if not _can_compare(one, other) or not other.records_per_second:
        return False
    needed = clear if min(len(one.rounds), len(other.rounds)) > 1 else _CLEAR_IN_ONE_ROUND
    ratio = one.records_per_second / other.records_per_second
    return ratio >= needed and one.lowest > other.highest


def _can_compare(*trials: Trial) -> bool:
    return min(trial.total.batch_count for trial in trials) >= _FEWEST_BATCHES


def _link(report: BenchReport) -> Iterator[str]:
    """Advice on a network, and the order that suits it."""
    link = report.link
    if link is None:
        return
    if not link.is_measurable:
        yield (
            f"The dataset is too small to measure the network: all of it is "
            f"{_rounded(link.dataset_bytes / 1e6)} MB. Use shuffle=True."
        )
        return
    yield (
        f"A request takes {_rounded(1000 * link.latency_seconds)} ms to its first byte, then "
        f"{_megabytes(link.request_bytes_per_second)} arrive; several requests together get "
        f"{_megabytes(link.bytes_per_second)}."
    )
    yield (
        "To read records near each other together, write this line into your program, the same for "
        f"all ranks: shuffle=rs.{BlockShuffle.for_link(link)}"
    )
    if report.requested.waiting_share and report.requested.shares["reading"] > _MOSTLY_IDLE:
        yield "Threads mostly waited for the network, which limits the loader, not decoding."


def _megabytes(bytes_per_second: float) -> str:
    return f"{_rounded(bytes_per_second / 1e6)} MB/s"


def _others(name: str, report: BenchReport) -> list[Trial]:
    """The trials with another number of threads, or another order, that can be compared."""
    return [
        trial
        for trial in report.trials
        if trial.name == name and _can_compare(trial, report.requested)
    ]


def _packed(report: BenchReport) -> Iterator[str]:
    """Advice on other ways to pack, from trials with the same images."""
    found = {trial.name: trial for trial in report.trials}
    sample, as_it_is = report.sample, found.get("sample")
    if sample is None or as_it_is is None:
        return
    of = f"{sample.count:,} of these images"
    tiles, smaller = found.get("tiles"), found.get("smaller")
    if tiles is not None and _can_compare(tiles, as_it_is):
        size = _bytes(sample.tiles_byte_count, sample.byte_count)
        if is_faster(tiles, as_it_is, _CLEAR_FOR_TILES):
            yield (
                f"Pack tiles, which change no pixel: {of}, packed with tiles, loaded "
                f"{_times(tiles, as_it_is)} as fast, {_instead(tiles, as_it_is, report)}, and "
                f"have {size}: `recordsmith reshard PATH OUT --tiles`."
            )
        else:
            yield (
                f"Tiles were not clearly faster: {of}, packed with tiles, loaded at "
                f"{_rate(tiles, report)}, as they are at {_rate(as_it_is, report)}; they have "
                f"{size}."
            )
    if smaller is not None and _can_compare(smaller, as_it_is):
        kept = percent(_pixels(smaller) / max(1, _pixels(as_it_is)))
        size = f"{kept} of the pixels and {_bytes(sample.smaller_byte_count, sample.byte_count)}"
        if is_faster(smaller, as_it_is):
            yield (
                f"Pack smaller images: {of}, packed at a shorter side of "
                f"{smaller.shorter_side}, loaded {_times(smaller, as_it_is)} as fast, "
                f"{_instead(smaller, as_it_is, report)}, and keep {size}: `recordsmith pack PATH "
                f"OUT --format shards --shorter-side {smaller.shorter_side}`."
            )
        else:
            yield (
                f"Smaller images were not clearly faster: {of}, packed at a shorter side of "
                f"{smaller.shorter_side}, loaded at {_rate(smaller, report)}, as they are at "
                f"{_rate(as_it_is, report)}; they keep {size}."
            )


def _threads(report: BenchReport) -> Iterator[str]:
    requested = report.requested
    others = _others("threads", report)
    if not others:
        if requested.thread_count == 1 and report.processor_count == 1:
            yield "There is one processor, so other numbers of threads were not tried."
        return
    best = max(others, key=lambda trial: trial.records_per_second)
    slower = [str(trial.thread_count) for trial in others if is_faster(requested, trial)]
    rates = ", ".join(
        f"{_rate(trial, report)} with {_count(trial.thread_count)}"
        for trial in sorted((requested, *others), key=lambda trial: trial.thread_count)
    )
    if is_faster(best, requested):
        yield (
            f"Use {_count(best.thread_count)}: "
            f"{_times(best, requested)} as fast, {_instead(best, requested, report)}."
        )
    elif len(slower) == len(others):
        all_of_them = requested.thread_count >= report.processor_count
        yield f"Threads help: {rates}" + (
            "; this machine has no more processors." if all_of_them else "."
        )
    elif slower:
        verb = "was" if len(slower) == 1 else "were"
        yield (
            f"No other number of threads was clearly faster than {requested.thread_count}, but "
            f"{' and '.join(slower)} {verb} clearly slower: {rates}."
        )
    else:
        yield f"No other number of threads was clearly faster or slower: {rates}."
    if requested.thread_count > 1 and requested.shares["idle"] > _MOSTLY_IDLE:
        yield (
            f"Threads were idle {percent(requested.shares['idle'])} of their time: batches of "
            f"{report.batch_size} are too small."
        )


def _order(report: BenchReport) -> Iterator[str]:
    requested = report.requested
    others = _others("order", report)
    if not others:
        return
    best = max(others, key=lambda trial: trial.records_per_second)
    if is_faster(best, requested):
        yield (
            f"Read {_ORDERS[best.order]}: {_times(best, requested)} as fast, "
            f"{_instead(best, requested, report)}."
        )
    else:
        rates = ", ".join(f"{trial.order} {_rate(trial, report)}" for trial in (requested, *others))
        if any(_spread(trial) > _LARGE_SPREAD for trial in (requested, *others)):
            yield f"The rounds are too noisy to tell which order is faster: {rates}."
        else:
            yield f"No other order was clearly faster: {rates}."


def _spread(trial: Trial) -> float:
    """Return by which share the slowest round of a trial is slower than the fastest."""
    return (trial.highest - trial.lowest) / trial.highest if trial.highest else 0.0


def _step(report: BenchReport) -> Iterator[str]:
    rate = report.requested.records_per_second
    if rate:
        count = min(report.batch_size, report.record_count)
        yield (
            f"A training step on a batch of {count:,} that takes longer than "
            f"{_rounded(1000 * count / rate)} ms will not wait for this loader."
        )


def _too_little(report: BenchReport) -> Iterator[str]:
    short = [trial.label for trial in report.trials if trial.rounds and not _can_compare(trial)]
    if short:
        yield (
            f"Too few batches to compare (less than {_FEWEST_BATCHES}): {'; '.join(short)}. Use "
            "smaller batches, or measure for longer."
        )


def _limits(report: BenchReport) -> Iterator[str]:
    requested = report.requested
    spread = _spread(requested)
    if spread > _LARGE_SPREAD:
        yield (
            f"The rounds of the requested options differ by {percent(spread)}, as on a busy "
            "machine. Measure for longer, or when it is idle."
        )
    share = report.cached_share
    if report.link is not None:
        pass  # there are no files
    elif share is None:
        yield "Whether the files were in the page cache is unknown."
    elif share >= _MOSTLY_CACHED:
        yield (
            f"{'All' if share == 1 else 'Nearly all'} files were in the page cache, so the disk "
            "was not measured."
        )
    elif share > 1 - _MOSTLY_CACHED:
        yield (
            f"{percent(share)} of the files were in the page cache; the others came from the "
            "disk once, and the later trials may have found them in the page cache."
        )
    else:
        yield (
            "The files were not in the page cache; they came from the disk once, and the later "
            "trials may have found them there."
        )
    if report.compression != "none":
        yield (
            f"The shards are compressed ({report.compression}), so every rank decompresses all of "
            "them, and records are only shuffled with their neighbours. `recordsmith pack PATH OUT "
            "--format shards` writes uncompressed shards."
        )
    if report.record_count < report.batch_size:
        yield (
            f"The dataset has less than a batch of records: each batch was an epoch of "
            f"{report.record_count:,}."
        )


def _bytes(byte_count: int | None, all_bytes: int) -> str:
    return f"{percent((byte_count or 0) / all_bytes)} of the bytes"


def _pixels(trial: Trial) -> float:
    """Stored pixels of an image, on average."""
    return trial.total.image_pixel_count / max(1, trial.total.record_count)


def _times(one: Trial, other: Trial) -> str:
    return f"{one.records_per_second / other.records_per_second:.1f} times"


def _instead(one: Trial, other: Trial, report: BenchReport) -> str:
    return f"{_number(one)} instead of {_rate(other, report)}"


def _rate(trial: Trial, report: BenchReport) -> str:
    return f"{_number(trial)} {'images' if report.image_key else 'records'}/s"


def _number(trial: Trial) -> str:
    return _rounded(trial.records_per_second)


def _rounded(number: float) -> str:
    """Round to three significant digits: 1,230; 45.6."""
    return f"{float(f'{number:.3g}'):,.10g}"


def _count(thread_count: int) -> str:
    return f"{thread_count} thread{'s' * (thread_count != 1)}"
