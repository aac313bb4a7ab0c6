"""Rewriting of datasets: reshard, edit, append and salvage."""

from recordsmith.writing.reshaping.append import AppendReport, append
from recordsmith.writing.reshaping.edits import Edits
from recordsmith.writing.reshaping.reshard import ReshardReport, edit, reshard
from recordsmith.writing.reshaping.salvage import SalvagedShard, SalvageReport, salvage

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
