"""Rewriting of datasets: reshard, edit, append and salvage."""

from recordsmith.reshaping.appending.append import append
from recordsmith.reshaping.editing.edit import edit
from recordsmith.reshaping.editing.edits import Edits
from recordsmith.reshaping.resharding.reshard import reshard
from recordsmith.reshaping.resharding.reshard_report import AppendReport, ReshardReport
from recordsmith.reshaping.salvaging.salvage import salvage
from recordsmith.reshaping.salvaging.salvage_report import SalvagedShard, SalvageReport

__all__ = [
    "AppendReport",
    "Edits",
    "ReshardReport",
    "SalvageReport",
    "SalvagedShard",
    "append",
    "edit",
    "reshard",
    "salvage",
]
