"""`recordsmith.draw_verify_report`: write a verification report as one HTML file.

The page has the verdict, an explanation of each kind of defect, their locations, and a list of all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

from recordsmith.drawing.html_page import cards, paragraphs, text
from recordsmith.errors import DataError, Defect
from recordsmith.examining.verification import ShardFindings, VerifyReport
from recordsmith.examining.verification.defect_explanations import explain
from recordsmith.wire import Compression
from recordsmith.words import count as counted
from recordsmith.words import size as format_size

_STYLE = """
.shards { display: grid; gap: 6px; }
.shard { display: grid; grid-template-columns: minmax(120px, 260px) 1fr minmax(150px, 250px);
  gap: 12px; align-items: center; font-size: 13px; }
.name { overflow-wrap: anywhere; }
.summary { color: var(--quiet); text-align: right; font-variant-numeric: tabular-nums; }
.bar { position: relative; height: 14px; border-radius: 4px; background: var(--good-soft);
  overflow: hidden; }
.bar.good { background: var(--good); opacity: .45; }
.bar.bad { background: var(--bad-soft); }
.bar.whole { background: repeating-linear-gradient(135deg, var(--bad) 0 6px,
  var(--bad-soft) 6px 12px); }
.bar u { position: absolute; top: 0; bottom: 0; right: 0; background: var(--unseen); }
.bar i { position: absolute; top: 0; bottom: 0; width: 3px; background: var(--bad); }
td.name { min-width: 150px; }
td > code:first-child { color: var(--bad); }
@media (max-width: 700px) { .summary { text-align: left; }
  .shard { grid-template-columns: 1fr; gap: 2px; margin-bottom: 10px; } }
"""
_ENDS_READING = (Defect.LENGTH_CRC, Defect.BROKEN_COMPRESSION, Defect.DECOMPRESSION_LIMIT)
_BINS = 240  # marks in the bar of a shard; more would not be distinguishable
_MOST_BARS = 300
_MOST_ROWS = 2000


def verify_page(report: VerifyReport, title: str) -> tuple[str, str, Iterable[str]]:
    """Return the title of the page, its style and its parts."""
    verdict = "good" if report.is_good else counted(report.defect_count, "defect")
    names = _names(report)
    parts = (
        _head(report, title, verdict),
        _kinds(report),
        _shards(report, names),
        _list("Defects", report.defects, report.defect_count, names, report.compressions),
        _list("Notices", report.notices, len(report.notices), names, report.compressions),
    )
    return f"{title}: {verdict}", _STYLE, parts


def _names(report: VerifyReport) -> dict[str, str]:
    """The displayed name of each file, by its path."""
    of_errors = (error.path for error in (*report.defects, *report.notices) if error.path)
    return distinct_names(dict.fromkeys([*(shard.path for shard in report.shards), *of_errors]))


def _head(report: VerifyReport, title: str, verdict: str) -> str:
    what = "Every checksum, payload and image" if report.is_deep else "Every checksum"
    reached = "" if report.is_good else " that could be reached"
    sentence = f"{what}{reached} was checked{', with exceptions:' if report.unchecked else '.'}"
    intact = "intact records"
    if report.expected_record_count not in (None, report.record_count):
        intact = f"intact of {report.expected_record_count:,} records"
    figures = [
        (f"{report.record_count:,}", intact),
        (f"{report.shard_count:,}", "shards"),
        (format_size(report.size_bytes), "read"),
    ]
    if report.image_count:
        figures.append((f"{report.image_count:,}", "images decoded"))
    unchecked = "".join(f"<li>{paragraphs(reason)}</li>" for reason in report.unchecked)
    return (
        f"<header><h1>{text(title)}</h1>"
        f'<p class="verdict {"good" if report.is_good else "bad"}">{verdict}</p></header>'
        f'<p class="quiet">{sentence}</p>{cards(figures)}'
        + (f'<ul class="unchecked">{unchecked}</ul>' if unchecked else "")
    )


def _kinds(report: VerifyReport) -> str:
    """Explain each kind of defect."""
    rows = []
    for errors, is_notice in ((report.defects, False), (report.notices, True)):
        for name, often in Counter(str(error.defect) for error in errors).most_common():
            explanation = explain(name)
            rows.append(
                f'<article class="kind {"notice" if is_notice else ""}"><h3><code>{name}</code>'
                f'<span class="badge">{often:,}</span></h3><p>{paragraphs(explanation.meaning)}</p>'
                f'<p class="advice">{paragraphs(explanation.advice)}</p></article>'
            )
    if not rows:
        return ""
    return f'<section><h2>What it means</h2><div class="kinds">{"".join(rows)}</div></section>'


def _shards(report: VerifyReport, names: Mapping[str, str]) -> str:
    if not report.shards:
        return ""
    shown = sorted(report.shards, key=lambda shard: shard.is_good)  # bad ones first, in order
    bars = "".join(_bar(shard, names[shard.path]) for shard in shown[:_MOST_BARS])
    more = len(shown) - _MOST_BARS
    rest = ""
    if more > 0:
        bad = sum(not shard.is_good for shard in shown[_MOST_BARS:])
        rest = (
            f'<p class="quiet">and {counted(more, "other shard")}, {bad:,} of them with defects</p>'
        )
    title, legend = ("Shards", "") if report.is_good else ("Location of defects", _legend(report))
    return f'<section><h2>{title}</h2>{legend}<div class="shards">{bars}</div>{rest}</section>'


def _legend(report: VerifyReport) -> str:
    compressed = ", or for a compressed file from its first record to the last one read"
    return (
        '<p class="quiet">Each bar is a file from its first byte to its last'
        f"{compressed if report.compressions else ''}. Grey: skipped, because the framing before "
        "it is damaged; striped: the whole file is invalid.</p>"
    )


def _bar(shard: ShardFindings, name: str) -> str:
    bins: dict[int, list[DataError]] = defaultdict(list)
    for error in shard.defects:
        share = _share(shard, error)
        if share is not None:
            bins[min(_BINS - 1, int(share * _BINS))].append(error)
    marks = "".join(
        f'<i style="left:{100 * place / _BINS:.2f}%" title="{text(_tip(errors))}"></i>'
        for place, errors in sorted(bins.items())
    )
    lost = [_share(shard, error) for error in shard.defects if error.defect in _ENDS_READING]
    if lost and lost[0] is not None:
        marks = f'<u style="left:{100 * lost[0]:.2f}%" title="skipped"></u>{marks}'
    state = "good" if shard.is_good else "bad"
    note = f"{counted(shard.record_count, 'record')}, {format_size(shard.size_bytes)}"
    if not shard.is_good:
        note += f", {counted(shard.defect_count, 'defect')}"
    whole = " whole" if not shard.is_good and not bins else ""
    return (
        f'<div class="shard"><span class="name" title="{text(shard.path)}">'
        f'{text(name)}</span><span class="bar {state}{whole}">{marks}</span>'
        f'<span class="summary">{note}</span></div>'
    )


def _share(shard: ShardFindings, error: DataError) -> float | None:
    """The position of a defect in the file, from 0 to 1; None if it affects the whole file."""
    if error.defect is Defect.NOT_A_TFRECORD and not shard.seen_count:
        return None
    is_plain = shard.compression in (None, "none")  # otherwise offsets count decompressed bytes
    if is_plain and error.offset is not None and error.offset < shard.size_bytes:
        return error.offset / shard.size_bytes
    if error.record is not None and shard.seen_count:
        return min(1.0, error.record / shard.seen_count)
    return None


def _tip(errors: Sequence[DataError]) -> str:
    first = errors[0]
    place = "" if first.record is None else f"record {first.record:,}: "
    more = f" and {len(errors) - 1:,} more" if len(errors) > 1 else ""
    return f"{place}{first.defect}{more}"


def _list(
    title: str,
    errors: Iterable[DataError],
    total: int,
    names: Mapping[str, str],
    compressions: Mapping[str, Compression],
) -> str:
    errors = list(errors)
    if not errors:
        return ""
    unexplained = dict(compressions)  # files without a note on their offsets so far
    rows = ""
    for error in errors[:_MOST_ROWS]:
        has_place = error.offset is not None
        compression = unexplained.pop(error.path or "", None) if has_place else None
        rows += _row(error, names, compression)
    left = total - min(len(errors), _MOST_ROWS)
    rest = f'<p class="quiet">and {left:,} more</p>' if left > 0 else ""
    return (
        f"<section><h2>{title}</h2><table><thead><tr><th>file</th>"
        '<th class="number">record</th><th class="number">byte</th>'
        f"<th>what</th></tr></thead><tbody>{rows}</tbody></table>{rest}</section>"
    )


def _row(error: DataError, names: Mapping[str, str], compression: Compression | None) -> str:
    """`compression`: if set, add a note on how offsets are counted."""
    name = names[error.path] if error.path else ""
    position = "" if error.record is None else f"{error.record:,}"
    offset = "" if error.offset is None else f"{error.offset:,}"
    note = ""
    if compression is not None:
        note = f'<div class="quiet">{compression}: offsets count decompressed bytes</div>'
    return (
        f'<tr><td class="name" title="{text(error.path or "")}">{text(name)}{note}</td>'
        f'<td class="number">{position}</td><td class="number">{offset}</td>'
        f"<td><code>{error.defect}</code> {paragraphs(error.detail)}</td></tr>"
    )


def distinct_names(paths: Iterable[str]) -> dict[str, str]:
    """Map each path to its name, with as many parent folders as needed to be unique."""
    parts = {path: PurePath(path).parts for path in paths}
    names: dict[str, str] = {}
    waiting, kept = list(parts), 1
    while waiting:
        ends: dict[tuple[str, ...], list[str]] = {}
        for path in waiting:
            ends.setdefault(parts[path][-kept:], []).append(path)
        waiting = []
        for end, having in ends.items():
            alike = [path for path in having if len(parts[path]) > kept]
            if len(having) == 1:
                (path,) = having
                names[path] = str(PurePath(*end)) if end != parts[path] else path
            else:
                names |= {path: path for path in having if path not in alike}
                waiting += alike
        kept += 1
    return names
