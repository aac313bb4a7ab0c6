"""`recordsmith.draw_verify_report`: what a verification found, as one HTML file to look at or send.

The verdict stands on top; then what each kind of defect means, where they lie, and all of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from recordsmith.drawing.file_names import distinct_names
from recordsmith.drawing.html_page import cards, check_html_path, prose, text, write_html
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.examining.verification import ShardFindings, VerifyReport
from recordsmith.examining.verification.explanations import explain
from recordsmith.files import PathLike, as_path
from recordsmith.wire import Compression
from recordsmith.words import count as counted
from recordsmith.words import size as size_in_words

_STYLE = """
.shards { display: grid; gap: 6px; }
.shard { display: grid; grid-template-columns: minmax(120px, 260px) 1fr minmax(150px, 250px);
  gap: 12px; align-items: center; font-size: 13px; }
.name { overflow-wrap: anywhere; }
.said { color: var(--quiet); text-align: right; font-variant-numeric: tabular-nums; }
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
@media (max-width: 700px) { .said { text-align: left; }
  .shard { grid-template-columns: 1fr; gap: 2px; margin-bottom: 10px; } }
"""
_ENDS_THE_WALK = (Defect.LENGTH_CRC, Defect.BROKEN_COMPRESSION, Defect.DECOMPRESSION_LIMIT)
_OF_ALL = (Defect.NOT_A_TFRECORD, Defect.EMPTY_FILE)
_BINS = 240  # marks in the bar of a shard: more could not be told apart
_MOST_BARS = 300
_MOST_ROWS = 2000


def draw_verify_report(
    report: VerifyReport,
    out: PathLike,
    *,
    title: str = "Verification",
    overwrite: bool = False,
) -> Path:
    """Write the report of a verification as a self-contained HTML page.

    Args:
        report: what `verify` answered.
        out: the file; its name ends in .html or .htm.
        title: what stands on top, such as the dataset's folder.
        overwrite: replace a file that is there.

    Returns:
        The path of the file.

    Raises:
        OptionError: the name says another format, or the file is there already.
        FileAccessError: it cannot be written.
    """
    path = as_path(out)
    check_html_path(path, overwrite=overwrite)
    verdict = "good" if report.is_good else counted(report.defect_count, "defect")
    names = _names(report)
    parts = (
        _head(report, title, verdict),
        _kinds(report),
        _shards(report, names),
        _list("Defects", report.defects, report.defect_count, names, report.compressions),
        _list("Not condemned", report.notices, len(report.notices), names, report.compressions),
    )
    write_html(path, f"{title}: {verdict}", _STYLE, parts, overwrite=overwrite)
    return path


def _names(report: VerifyReport) -> dict[str, str]:
    """What each file is called on the page, by its path."""
    of_errors = (error.path for error in (*report.defects, *report.notices) if error.path)
    return distinct_names(dict.fromkeys([*(shard.path for shard in report.shards), *of_errors]))


def _head(report: VerifyReport, title: str, verdict: str) -> str:
    what = "Every checksum, payload and picture" if report.is_deep else "Every checksum"
    reached = "" if report.is_good else " that could be reached"
    sentence = f"{what}{reached} was checked{', with exceptions:' if report.remarks else '.'}"
    intact = "intact records"
    if report.expected_record_count not in (None, report.record_count):
        intact = f"intact of {report.expected_record_count:,} records"
    figures = [
        (f"{report.record_count:,}", intact),
        (f"{report.shard_count:,}", "shards"),
        (size_in_words(report.size_bytes), "read"),
    ]
    if report.picture_count:
        figures.append((f"{report.picture_count:,}", "pictures decoded"))
    remarks = "".join(f"<li>{prose(remark)}</li>" for remark in report.remarks)
    return (
        f"<header><h1>{text(title)}</h1>"
        f'<p class="verdict {"good" if report.is_good else "bad"}">{verdict}</p></header>'
        f'<p class="quiet">{sentence}</p>{cards(figures)}'
        + (f'<ul class="remarks">{remarks}</ul>' if remarks else "")
    )


def _kinds(report: VerifyReport) -> str:
    """What is wrong, by name, and what to do."""
    rows = []
    for errors, is_notice in ((report.defects, False), (report.notices, True)):
        for name, often in Counter(str(error.defect) for error in errors).most_common():
            said = explain(name)
            rows.append(
                f'<article class="kind {"notice" if is_notice else ""}"><h3><code>{name}</code>'
                f'<span class="badge">{often:,}</span></h3><p>{prose(said.meaning)}</p>'
                f'<p class="advice">{prose(said.advice)}</p></article>'
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
    title, legend = ("Shards", "") if report.is_good else ("Where it lies", _legend(report))
    return f'<section><h2>{title}</h2>{legend}<div class="shards">{bars}</div>{rest}</section>'


def _legend(report: VerifyReport) -> str:
    compressed = "; of a compressed one from its first record to the last that was reached"
    return (
        '<p class="quiet">Each bar is a file from its first byte to its last'
        f"{compressed if report.compressions else ''}. Grey: not looked at, as the way to it is "
        "lost; striped: all of it is not what it should be.</p>"
    )


def _bar(shard: ShardFindings, name: str) -> str:
    bins: dict[int, list[CorruptDataError]] = defaultdict(list)
    for error in shard.defects:
        share = _share(shard, error)
        if share is not None:
            bins[min(_BINS - 1, int(share * _BINS))].append(error)
    marks = "".join(
        f'<i style="left:{100 * place / _BINS:.2f}%" title="{text(_tip(errors))}"></i>'
        for place, errors in sorted(bins.items())
    )
    lost = [_share(shard, error) for error in shard.defects if error.defect in _ENDS_THE_WALK]
    if lost and lost[0] is not None:
        marks = f'<u style="left:{100 * lost[0]:.2f}%" title="not looked at"></u>{marks}'
    state = "good" if shard.is_good else "bad"
    said = f"{counted(shard.record_count, 'record')}, {size_in_words(shard.size_bytes)}"
    if not shard.is_good:
        said += f", {counted(shard.defect_count, 'defect')}"
    whole = " whole" if not shard.is_good and not bins else ""
    return (
        f'<div class="shard"><span class="name" title="{text(shard.path)}">'
        f'{text(name)}</span><span class="bar {state}{whole}">{marks}</span>'
        f'<span class="said">{said}</span></div>'
    )


def _share(shard: ShardFindings, error: CorruptDataError) -> float | None:
    """How far into the file a defect lies, from 0 to 1; None for what concerns all of it."""
    if error.defect in _OF_ALL and not shard.seen_count:
        return None
    is_plain = shard.compression in (None, "none")  # else bytes do not say how far into the file
    if is_plain and error.offset is not None and error.offset < shard.size_bytes:
        return error.offset / shard.size_bytes
    if error.position is not None and shard.seen_count:
        return min(1.0, error.position / shard.seen_count)
    return None


def _tip(errors: Sequence[CorruptDataError]) -> str:
    first = errors[0]
    place = "" if first.position is None else f"record {first.position:,}: "
    more = f" and {len(errors) - 1:,} more" if len(errors) > 1 else ""
    return f"{place}{first.defect}{more}"


def _list(
    title: str,
    errors: Iterable[CorruptDataError],
    total: int,
    names: Mapping[str, str],
    compressions: Mapping[str, Compression],
) -> str:
    errors = list(errors)
    if not errors:
        return ""
    untold = dict(compressions)  # files of which it is not said yet what their bytes count
    rows = ""
    for error in errors[:_MOST_ROWS]:
        has_place = error.offset is not None
        compression = untold.pop(error.path or "", None) if has_place else None
        rows += _row(error, names, compression)
    left = total - min(len(errors), _MOST_ROWS)
    rest = f'<p class="quiet">and {left:,} more</p>' if left > 0 else ""
    return (
        f"<section><h2>{title}</h2><table><thead><tr><th>file</th>"
        '<th class="number">record</th><th class="number">byte</th>'
        f"<th>what</th></tr></thead><tbody>{rows}</tbody></table>{rest}</section>"
    )


def _row(error: CorruptDataError, names: Mapping[str, str], compression: Compression | None) -> str:
    """`compression` is told if it shall be said how the bytes of the file are counted."""
    name = names[error.path] if error.path else ""
    position = "" if error.position is None else f"{error.position:,}"
    offset = "" if error.offset is None else f"{error.offset:,}"
    said = ""
    if compression is not None:
        said = f'<div class="quiet">{compression}: bytes are those of the decompressed data</div>'
    return (
        f'<tr><td class="name" title="{text(error.path or "")}">{text(name)}{said}</td>'
        f'<td class="number">{position}</td><td class="number">{offset}</td>'
        f"<td><code>{error.defect}</code> {prose(error.detail)}</td></tr>"
    )
