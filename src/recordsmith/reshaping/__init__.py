"""Rewriting of datasets: reshard, edit, append and salvage."""

from recordsmith.reshaping.append import append
from recordsmith.reshaping.contract import Change, Payloads, Selection, one_by_one
from recordsmith.reshaping.edit import edit
from recordsmith.reshaping.edits import Edits
from recordsmith.reshaping.report import AppendReport, ReshardReport
from recordsmith.reshaping.reshard import reshard
from recordsmith.reshaping.salvage import salvage
from recordsmith.reshaping.salvage_report import SalvagedShard, SalvageReport
from recordsmith.reshaping.where import Where, parse_where

__all__ = [
    "AppendReport",
    "Change",
    "Edits",
    "Payloads",
    "ReshardReport",
    "SalvageReport",
    "SalvagedShard",
    "Selection",
    "Where",
    "append",
    "edit",
    "one_by_one",
    "parse_where",
    "reshard",
    "salvage",
]
