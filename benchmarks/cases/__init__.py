"""Every benchmark by its name. To add one: a Case in a file here, and a line below."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from case import Case, Peer, Settings, Table
from cases import batches, columns, memory, pack, startup, verify, write
from measure import compare

_COMPARED = (*columns.CASES, *batches.CASES, *write.CASES, *verify.CASES, *pack.CASES)


def benchmarks() -> dict[str, Callable[[Settings], Table]]:
    """Name -> what makes its table, in the order of the report."""
    tables: dict[str, Callable[[Settings], Table]] = {
        case.name: partial(compare, case) for case in _COMPARED
    }
    return {**tables, memory.CASE.name: memory.report, startup.NAME: startup.report}


def find_peer(case_name: str, peer_name: str) -> Peer:
    """The peer that a worker is to be."""
    cases: tuple[Case, ...] = (*_COMPARED, memory.CASE)
    case = next(case for case in cases if case.name == case_name)
    return next(peer for peer in case.peers if peer.name == peer_name)
