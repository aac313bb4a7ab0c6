"""Statistics as tasks: neighboring shards of one split each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from recordsmith.dataset.shard_documents import part_from_json, part_to_json
from recordsmith.examining.stats.record_survey import SharedSurveys
from recordsmith.examining.stats.shard_runs import Run, SurveyedRun, read_run
from recordsmith.examining.stats.survey_documents import survey_from_json, survey_to_json
from recordsmith.tasks import Document, Task
from recordsmith.work import Work


def stats_tasks(runs: Iterable[Run]) -> Iterator[Task]:
    """Yield the task of each run."""
    for number, run in enumerate(runs):
        content = {"first": run.first, "shards": [*map(part_to_json, run.shards)]}
        yield Task("stats", "", number, str(run.shards[0].location), sum(run.sizes), content)


def run_task(task: Task) -> Document:
    """Read the shards of a task; return their statistics so far."""
    shards = [*map(part_from_json, task.content["shards"])]
    run = Run(task.content["first"], shards, [0] * len(shards))
    found = read_run(run, SharedSurveys(), Work(1, None))
    return {**vars(found), "survey": survey_to_json(found.survey)}


def run_from_json(result: Document) -> SurveyedRun:
    """Restore the statistics of a task."""
    return SurveyedRun(**{**result, "survey": survey_from_json(result["survey"])})
