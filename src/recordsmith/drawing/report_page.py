"""`recordsmith.save_html`: a report as an HTML page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from recordsmith.drawing.content_page import STYLE, content_page
from recordsmith.drawing.html_page import check_html_path, write_html
from recordsmith.drawing.thumbnails import Thumbnails
from recordsmith.drawing.verify_page import verify_content
from recordsmith.errors import OptionError
from recordsmith.examining.diff import DiffReport
from recordsmith.examining.stats import StatsReport
from recordsmith.examining.verification import VerifyReport
from recordsmith.linting import LintReport
from recordsmith.stores import Location, PlaceLike, as_location


@runtime_checkable
class DrawnReport(Protocol):
    """A report that draws its own page."""

    def html_page(self, title: str | None) -> tuple[str, str, Iterable[str]]:
        """Return the title of the page, its style and its parts, as `write_html` takes them."""
        ...


def save_html(
    report: StatsReport | VerifyReport | DiffReport | LintReport | DrawnReport,
    out: PlaceLike,
    *,
    title: str | None = None,
    overwrite: bool = False,
) -> Location:
    """Write a report as one self-contained HTML page.

    Args:
        report: the result of `stats`, `verify`, `diff`, `lint` or `forecast`. The page of `lint`
            has small copies of images, which are read again.
        out: the file, with the suffix .html or .htm.
        title: the heading, such as the folder of the dataset.
        overwrite: replace an existing file.

    Returns:
        The location of the file.

    Raises:
        OptionError: the report is of another kind, the suffix is not .html or .htm, or the file
            already exists.
        FileAccessError: the file cannot be written.

    Example:
        rs.save_html(rs.stats("out"), "stats.html")
    """
    path = as_location(out)
    check_html_path(path, overwrite=overwrite)
    if isinstance(report, DrawnReport):
        page = report.html_page(title)
        write_html(path, *page, overwrite=overwrite)
        return path
    if isinstance(report, (StatsReport, DiffReport)):
        title, content = title or "Report", report.content()
    elif isinstance(report, VerifyReport):
        content = verify_content(report)
        title = f"{title or 'Verification'}: {content.verdict}"
    elif isinstance(report, LintReport):
        title, content = title or "Source", report.content(Thumbnails(report).draw)
    else:
        raise OptionError(
            option="report",
            value=report,
            expected="the result of recordsmith.stats, verify, diff, lint or forecast",
        )
    write_html(path, title, STYLE, [content_page(content, title)], overwrite=overwrite)
    return path
