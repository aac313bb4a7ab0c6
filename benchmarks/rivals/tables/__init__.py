"""Every table by its name. To add one: a module here with a `report`, and a line below.

A table is made of a `Bench`; `Bench.rounds_of` measures all rivals in rounds, after the gate, and a
job that only one table needs is a function of a module that its jobs name, "MODULE:FUNCTION".
"""

from __future__ import annotations

from collections.abc import Callable

from bench import Bench

from case import Table
from tables import (
    access,
    damage,
    epoch,
    order,
    packing,
    resume,
    rows_and_tokens,
    s3,
    settings,
    start,
)

TABLES: dict[str, Callable[[Bench], Table]] = {
    "settings": settings.report,
    "packing": packing.report,
    "epoch": epoch.report,
    "crops": epoch.report_crops,
    "start": start.report,
    "access": access.report,
    "order": order.report,
    "s3": s3.report,
    "rows": rows_and_tokens.report_rows,
    "tokens": rows_and_tokens.report_tokens,
    "resume": resume.report_same_job,
    "resume-other": resume.report_other_job,
    "damage": damage.report,
}
