"""Every benchmark by its name. To add one: a Case in a file here, and a line below."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from case import Case, Peer, Settings, Table
from cases import (
    add_tiles,
    arrow,
    batches,
    beam_pipelines,
    boxes,
    columns,
    crop_differences,
    crops,
    edit,
    embeddings,
    encode,
    gigabyte_memory,
    grain,
    indexing,
    layers,
    loader,
    loader_memory,
    loader_python,
    loader_random,
    loader_start,
    masks,
    memory,
    normalising,
    pack,
    progressive,
    ray_data,
    readers,
    remote,
    removal,
    reshard,
    resume,
    salvage,
    sequences,
    spark,
    startup,
    stats,
    tables,
    tensorflow,
    torch,
    verify,
    write,
)
from measure import compare

_COMPARED = (
    *columns.CASES,
    *arrow.CASES,
    *batches.CASES,
    sequences.CASE,
    *readers.CASES,
    *write.CASES,
    *verify.CASES,
    *indexing.CASES,
    *salvage.CASES,
    *reshard.CASES,
    *removal.CASES,
    *edit.CASES,
    *layers.CASES,
    *stats.CASES,
    *pack.CASES,
    *boxes.CASES,
    *tables.CASES,
    *encode.CASES,
    add_tiles.CASE,
    *resume.CASES,
    *loader.CASES,
    *crops.CASES,
    masks.CASE,
    loader_random.CASE,
    embeddings.CASE,
    *normalising.CASES,
    *grain.CASES,
    *torch.CASES,
    *tensorflow.CASES,
    *beam_pipelines.CASES,
    *ray_data.CASES,
)


def benchmarks() -> dict[str, Callable[[Settings], Table]]:
    """Name -> what makes its table, in the order of the report."""
    reports: dict[str, Callable[[Settings], Table]] = {
        case.name: partial(compare, case) for case in _COMPARED
    }
    return {
        **reports,
        crop_differences.CASE.name: crop_differences.report,
        progressive.CASE.name: progressive.report,
        memory.CASE.name: memory.report,
        gigabyte_memory.CASE.name: gigabyte_memory.report,
        loader_memory.CASE.name: loader_memory.report,
        loader_start.NAME: loader_start.report,
        loader_python.CASE.name: loader_python.report,
        startup.NAME: startup.report,
        spark.NAME: spark.report,
        readers.DAMAGE: readers.report_damage,
        **remote.REPORTS,
    }


def find_peer(case_name: str, peer_name: str) -> Peer:
    """The peer that a worker is to be."""
    cases: tuple[Case, ...] = (
        *_COMPARED,
        crop_differences.CASE,
        progressive.CASE,
        memory.CASE,
        gigabyte_memory.CASE,
        loader_memory.CASE,
        loader_python.CASE,
    )
    case = next(case for case in cases if case.name == case_name)
    return next(peer for peer in case.peers if peer.name == peer_name)
