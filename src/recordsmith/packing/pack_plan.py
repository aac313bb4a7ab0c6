"""A plan that other machines can work from: which shards there will be, each a task of its own.

The document says how the dataset is made and which shards come of it, not which samples are in
them: whoever works on a shard lists the source, which gives the same plan anywhere, and the
fingerprint proves that it did. So a plan of a billion samples is as small as its list of shards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recordsmith.building import WRITING_THREADS, ShardResult
from recordsmith.dataset.documents import NOT_AS_EXPECTED, fault_of, json_of
from recordsmith.errors import OptionError, SourceError
from recordsmith.files import (
    NOTE_BYTES,
    PathLike,
    Progress,
    as_path,
    exclusive,
    make_internal_folder,
    read_document,
    write_atomically,
)
from recordsmith.packing.pack import (
    OnError,
    check_arguments,
    check_source,
    pack_by,
)
from recordsmith.packing.planning import Plan
from recordsmith.packing.recipe import Recipe
from recordsmith.packing.report import PackReport
from recordsmith.packing.writing import ShardJobs
from recordsmith.sources import Listing, Source
from recordsmith.work import Work, thread_count

FORMAT = "recordsmith-plan"
VERSION = 1


@dataclass(frozen=True)
class ShardTask:
    """One shard that is to be written."""

    file: str
    split: str
    sample_count: int


@dataclass(frozen=True)
class PackPlan:
    """What `recordsmith.plan` answers: a job, as a document.

    shards: the tasks; their numbers are their places in this tuple.
    source: what the source says of itself.
    fingerprint: of the listing and the options.

        plan = rs.plan(rs.ImageFolder("flowers"), shards=8)
        plan.save("plan.json")
        # on each machine, all of which see the folder `out`
        plan = rs.PackPlan.load("plan.json")
        plan.pack_shards(rs.ImageFolder("flowers"), "out", [3])
        # at the end, on one of them: checks what is there, writes what is not, gives the names
        plan.pack(rs.ImageFolder("flowers"), "out")
    """

    recipe: Recipe
    shards: tuple[ShardTask, ...]
    source: Mapping[str, Any]
    fingerprint: str

    def pack_shards(
        self,
        source: Source,
        out: PathLike,
        numbers: Iterable[int],
        *,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> list[ShardResult]:
        """Write some of the shards; they get no names yet, and wait in a hidden folder.

        Several processes may do that in one folder at once, for different shards. Samples that
        cannot be read are left out; whether that stops the job is for `pack` to say.

        Raises:
            OptionError: there is no shard of such a number.
            SourceError: the source is not the one that was planned.
            FileAccessError: the folder cannot be written, or a whole job works in it.
        """
        folder = check_arguments(source, out, threads)
        listing, plan = self._same_plan(source)
        chosen = []
        for number in numbers:
            if not isinstance(number, int) or not 0 <= number < len(plan.shards):
                raise OptionError(
                    f"there is no shard {number!r}: the plan has {len(plan.shards)}, counted from 0"
                )
            chosen.append(plan.shards[number])
        make_internal_folder(folder)
        with exclusive(folder, among_equals=True):
            work = Work(thread_count(threads, most=WRITING_THREADS), progress)
            jobs = ShardJobs(source, listing, plan, folder, self.recipe.preparation(source), work)
            return jobs.run(shards=chosen)

    def pack(
        self,
        source: Source,
        out: PathLike,
        *,
        on_error: OnError = "stop",
        overwrite: bool = False,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> PackReport:
        """Complete the dataset: check the shards that are there, write the others, give the names.

        Raises:
            SourceError: the source is not the one that was planned; or as in `recordsmith.pack`.
        """
        self._same_plan(source)
        return pack_by(
            self.recipe,
            source,
            out,
            on_error=on_error,
            overwrite=overwrite,
            threads=threads,
            progress=progress,
        )

    def save(self, path: PathLike) -> None:
        """Write the document."""
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
        write_atomically(as_path(path), json.dumps(document, indent=1).encode() + b"\n")

    @classmethod
    def load(cls, path: PathLike) -> PackPlan:
        """Read a document.

        Raises:
            OptionError: it is none, or of a later version.
            FileAccessError: it cannot be read.
        """
        data = read_document(as_path(path), NOTE_BYTES)
        try:
            document = json_of(data)
            if not isinstance(document, Mapping):
                raise ValueError(f'expected an object with "format": "{FORMAT}"')  # noqa: TRY004 - a file's
            if document["format"] != FORMAT or document["version"] > VERSION:
                raise ValueError(f"its format is {document['format']} {document['version']}")
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
                f"{Path(path)} is no plan that this version of recordsmith can read: "
                f"{fault_of(error)}; `recordsmith pack SOURCE OUT --write-plan FILE` writes one"
            ) from None

    def _same_plan(self, source: Source) -> tuple[Listing, Plan]:
        listing = source.list_samples()
        plan = self.recipe.plan(source, listing)
        if plan.fingerprint != self.fingerprint:
            planned = sum(task.sample_count for task in self.shards)
            raise SourceError(
                f"the source is not the one that was planned: {planned:,} samples were, "
                f"{len(listing.samples):,} are there now, or their names, sizes or classes differ; "
                "plan again"
            )
        return listing, plan


def plan(source: Source, **options: Any) -> PackPlan:
    """Decide which shards there will be; options as in `pack`, of those that decide the bytes.

    Raises:
        OptionError: options contradict each other or the data.
        SourceError: the source holds nothing to pack.
    """
    check_source(source)
    try:
        recipe = Recipe(**options)
    except TypeError:
        unknown = sorted(set(options) - set(vars(Recipe())))
        raise OptionError(f"{', '.join(unknown)} does not decide what is in the shards") from None
    made = recipe.plan(source, source.list_samples())
    return PackPlan(
        recipe,
        tuple(ShardTask(shard.file, shard.split, len(shard.samples)) for shard in made.shards),
        dict(source.describe()),
        made.fingerprint,
    )
