"""Plans that divide a packing job among machines: one task for each shard.

The document holds the options and the list of shards, but no samples. Each machine lists the source
itself and compares the fingerprint, so a plan of a billion samples stays small.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from recordsmith.building import WRITING_THREADS, ShardResult, claim
from recordsmith.dataset.documents import NOT_AS_EXPECTED, describe_fault, json_of
from recordsmith.dataset.names import INTERNAL_FOLDER
from recordsmith.errors import OptionError, SourceError, option
from recordsmith.packing.pack import (
    check_arguments,
    pack_from_recipe,
)
from recordsmith.packing.pack_report import PackReport
from recordsmith.packing.planning import Plan
from recordsmith.packing.recipe import Recipe
from recordsmith.packing.writing import ShardJobs
from recordsmith.sources import Listing, Source, check_source
from recordsmith.stores import NOTE_BYTES, PlaceLike, as_location, read_document, write_atomically
from recordsmith.summaries import Report
from recordsmith.work import Progress, Work, thread_count

FORMAT = "recordsmith-plan"
VERSION = 2


@dataclass(frozen=True)
class ShardTask:
    """A shard to write."""

    file: str
    split: str
    sample_count: int


@dataclass(frozen=True, repr=False)
class PackPlan(Report):
    """A packing job that can be saved and divided among machines. Made by `recordsmith.plan`.

    shards: the tasks; a task's number is its index in this tuple.
    source: the description of the source.
    fingerprint: a hash of the listing and the options.

    Example:
        plan = rs.plan(rs.ImageFolder("flowers"), shards=8)
        plan.save("plan.json")
        # on each machine; all of them share the folder `out`
        plan = rs.PackPlan.load("plan.json")
        plan.pack_shards(rs.ImageFolder("flowers"), "out", [3])
        # at the end, on one machine: writes missing shards and completes the dataset
        plan.pack(rs.ImageFolder("flowers"), "out")
    """

    recipe: Recipe
    shards: tuple[ShardTask, ...]
    source: Mapping[str, Any]
    fingerprint: str

    def pack_shards(
        self,
        source: Source | Any,
        out: PlaceLike,
        numbers: Iterable[int],
        *,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> list[ShardResult]:
        """Write some of the shards to a hidden folder, where `pack` finds them.

        Several processes may write different shards in one folder at once. Unreadable samples are
        left out; `pack` reports them.

        Args:
            source: the source that was planned.
            out: the folder of the dataset.
            numbers: which shards, counted from 0.
            threads: the number of threads; None for one per processor, at most 8.
            progress: called as `progress(done, total)` with numbers of samples.

        Returns:
            A result for each shard.

        Raises:
            OptionError: a number is out of range.
            SourceError: the source differs from the one that was planned.
            FileAccessError: the folder cannot be written, or another job is writing to it.
        """
        source, folder = check_arguments(source, out, threads)
        listing, plan = self._matching_plan(source)
        chosen = []
        for number in numbers:
            if not isinstance(number, int) or not 0 <= number < len(plan.shards):
                raise OptionError(
                    option="numbers",
                    value=number,
                    expected=f"integers from 0 to {len(plan.shards) - 1}",
                )
            chosen.append(plan.shards[number])
        with (folder / INTERNAL_FOLDER).locked(is_shared=True):
            files = [shard.file for shard in plan.shards]
            folder = claim(folder, plan.fingerprint, files)
            work = Work(thread_count(threads, most=WRITING_THREADS), progress)
            jobs = ShardJobs(listing, plan, folder, self.recipe.preparation(listing), work)
            return jobs.run(shards=chosen)

    def pack(
        self,
        source: Source | Any,
        out: PlaceLike,
        *,
        skip_errors: bool = False,
        overwrite: bool = False,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> PackReport:
        """Complete the dataset: verify existing shards, write missing ones, publish.

        Arguments and return value as in `recordsmith.pack`.

        Raises:
            SourceError: the source differs from the one that was planned; or as in
                `recordsmith.pack`.
        """
        source = check_source(source)
        self._matching_plan(source)
        return pack_from_recipe(
            self.recipe,
            source,
            out,
            skip_errors=skip_errors,
            overwrite=overwrite,
            threads=threads,
            progress=progress,
        )

    def save(self, path: PlaceLike) -> None:
        """Write the plan to a JSON file."""
        document = {
            "format": FORMAT,
            "version": VERSION,
            "fingerprint": self.fingerprint,
            "source": dict(self.source),
            "options": self.recipe.to_json(),
            "shards": [
                {"file": task.file, "split": task.split, "samples": task.sample_count}
                for task in self.shards
            ],
        }
        write_atomically(path, json.dumps(document, indent=1).encode() + b"\n")

    @classmethod
    def load(cls, path: PlaceLike) -> PackPlan:
        """Read a plan from a JSON file.

        Raises:
            OptionError: the file is not a plan, or has another version.
            FileAccessError: the file cannot be read.
        """
        place = as_location(path)
        data = read_document(place, NOTE_BYTES)
        try:
            document = json_of(data)
            if not isinstance(document, Mapping):
                raise ValueError(f'expected an object with "format": "{FORMAT}"')  # noqa: TRY004 - a file's
            if (document["format"], document["version"]) != (FORMAT, VERSION):
                raise ValueError(
                    f"it has format {document['format']!r:.40} and version "
                    f"{document['version']!r:.40}, expected {FORMAT!r} and {VERSION}"
                )
            return cls(
                Recipe.from_json(document["options"]),
                tuple(
                    ShardTask(str(task["file"]), str(task["split"]), int(task["samples"]))
                    for task in document["shards"]
                ),
                dict(document["source"]),
                str(document["fingerprint"]),
            )
        except NOT_AS_EXPECTED as error:
            raise OptionError(
                f"{place} is not a plan that this version can read: {describe_fault(error)}",
                option="path",
                value=str(path),
                remedy="`recordsmith pack SOURCE OUT --write-plan FILE` writes a new one.",
            ) from None

    def _matching_plan(self, source: Source) -> tuple[Listing, Plan]:
        listing = source.list_samples()
        plan = self.recipe.plan(source, listing)
        if plan.fingerprint != self.fingerprint:
            planned = sum(task.sample_count for task in self.shards)
            now = len(listing.samples)
            raise SourceError(
                "the source differs from the one that was planned: "
                + (
                    "names, sizes or classes have changed"
                    if now == planned
                    else f"{planned:,} samples then, {now:,} now"
                ),
                remedy="Make a new plan.",
            )
        return listing, plan


def plan(source: Source | Any, **options: Any) -> PackPlan:
    """Plan a packing job without writing anything.

    Args:
        source: the samples, such as `ImageFolder("flowers")`.
        options: those options of `pack` that determine the bytes of the shards.

    Returns:
        A plan, which can be saved and divided among machines.

    Raises:
        OptionError: options conflict with each other or with the data.
        SourceError: the source is empty.
    """
    source = check_source(source)
    try:
        recipe = Recipe(**options)
    except TypeError:
        unknown = sorted(set(options) - set(vars(Recipe())))
        raise OptionError(
            f"{', '.join(map(option, unknown))} does not affect the shards, so a plan has no such "
            "option",
            option=unknown[0] if unknown else None,
        ) from None
    made = recipe.plan(source, source.list_samples())
    return PackPlan(
        recipe,
        tuple(ShardTask(shard.file, shard.split, len(shard.samples)) for shard in made.shards),
        dict(source.describe()),
        made.fingerprint,
    )
