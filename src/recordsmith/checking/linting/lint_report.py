"""The report of `lint`: findings by check, each with examples and an exact count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from recordsmith.checking.linting.sample_images import features_of, image_of
from recordsmith.sources import (
    FlawBox,
    LintCheck,
    Sample,
    SampleReader,
    Severity,
    reference_of,
)
from recordsmith.support.errors import RecordsmithError, with_options
from recordsmith.support.reports import (
    Bar,
    Cell,
    Example,
    Level,
    ReportContent,
    ReportTable,
    ShownFinding,
    SourceLocation,
)
from recordsmith.support.serialization import fields_to_json
from recordsmith.support.summaries import Report
from recordsmith.support.words import count as counted

MAX_EXAMPLES = 100
"""How many places of a finding are listed; all are counted."""

_LEVELS: dict[Severity, Level] = {
    Severity.ERROR: "bad",
    Severity.WARNING: "note",
    Severity.NOTE: "quiet",
}


def all_checks() -> list[LintCheck]:
    return [check for group in LintCheck.__subclasses__() for check in group]


class LintExample(NamedTuple):
    """One place of a finding.

    file: the image or other file, relative to the source; empty if it is about the whole source.
    found: what was found there.
    place: file and line or number of the annotation, where it is known.
    other: the other image of a pair.
    box: ymin, xmin, ymax, xmax of the box at fault, as shares of the image.
    """

    file: str
    found: str
    place: str = ""
    other: str = ""
    box: FlawBox | None = None

    def describe(self) -> str:
        """Return it in one line: `a.jpg: a.xml, line 17: xmin 9 is larger than xmax 3`."""
        return ": ".join(filter(None, (self.file, self.place, self.found)))


@dataclass
class LintFinding:
    """All places where a check found the same thing.

    check: which check.
    severity: error, warning or note.
    count: how many places there are.
    examples: the first ones, at most MAX_EXAMPLES.
    """

    check: LintCheck
    severity: Severity
    count: int = 0
    examples: list[LintExample] = field(default_factory=list)

    @property
    def meaning(self) -> str:
        """What the finding means."""
        return self.check.meaning

    def cure(self) -> str:
        """What to do about it, without the option that already makes an error a note."""
        cure = self.check.cure
        if (self.severity, self.check.severity) == (Severity.NOTE, Severity.ERROR):
            cure = f"{cure.partition('. ')[0].rstrip('.')}."
        return with_options(cure)

    def to_json(self) -> dict[str, Any]:
        """Return check, severity, count, meaning, cure and examples."""
        names = ("file", "place", "found", "other", "box")
        return {
            **fields_to_json(self, ("check", "severity", "count", "meaning")),
            "cure": self.cure(),
            "examples": [fields_to_json(example, names) for example in self.examples],
        }


def _shown(
    finding: LintFinding,
    draw: Callable[[LintExample], Sequence[bytes]] | None,
    place: Callable[[str], SourceLocation | None],
) -> ShownFinding:
    is_note = finding.severity is Severity.NOTE
    drawn = None if is_note else draw
    files = [file for one in finding.examples for file in (one.file, one.other)]
    return ShownFinding(
        str(finding.check),
        finding.meaning,
        finding.cure(),
        severity=str(finding.severity),
        level=_LEVELS[finding.severity],
        count=finding.count,
        examples=[
            Example(example.describe(), None if drawn is None else partial(drawn, example))
            for example in finding.examples
        ],
        places=[found for file in files if (found := place(file)) is not None],
    )


class Findings:
    """Collects findings.

    places: what was added, with the number of its sample, if it is about one.
    number: that of the sample whose findings are added.
    """

    def __init__(self) -> None:
        self._by_check: dict[tuple[LintCheck, Severity], LintFinding] = {}
        self.places: list[tuple[int | None, LintCheck, Severity, LintExample]] = []
        self.number: int | None = None

    def add(
        self,
        check: LintCheck,
        *examples: LintExample,
        severity: Severity | None = None,
        count: int | None = None,
    ) -> None:
        """Add places; `count` if there are more than the examples."""
        if severity is None:
            severity = check.severity
        self.places += [(self.number, check, severity, example) for example in examples]
        self._count(check, severity, examples, len(examples) if count is None else count)

    def extend(self, other: Findings) -> None:
        """Add the findings of another, without its places."""
        for (check, severity), finding in other._by_check.items():
            self._count(check, severity, finding.examples, finding.count)

    def _count(
        self, check: LintCheck, severity: Severity, examples: Sequence[LintExample], count: int
    ) -> None:
        finding = self._by_check.setdefault((check, severity), LintFinding(check, severity))
        finding.count += count
        kept = examples[: MAX_EXAMPLES - len(finding.examples)]
        finding.examples += [
            example._replace(found=with_options(example.found)) for example in kept
        ]

    def sorted(self) -> list[LintFinding]:
        checks, severities = all_checks(), list(Severity)
        return sorted(
            self._by_check.values(),
            key=lambda found: (severities.index(found.severity), checks.index(found.check)),
        )


@dataclass(repr=False)
class LintReport(Report):
    """The report of `lint`.

    sample_count: number of samples of the source.
    image_count: number of decoded images; 0 if `lint` was not deep.
    classes: for each split of the source ("" without splits), the number of images of each class.
    findings: worst first.
    is_deep: whether every sample was read and every image decoded.
    """

    sample_count: int = 0
    image_count: int = 0
    classes: dict[str, dict[str, int]] = field(default_factory=dict)
    findings: list[LintFinding] = field(default_factory=list)
    is_deep: bool = True
    _shown = ("is_clean", "error_count", "warning_count", "note_count")

    def __post_init__(self) -> None:
        self._samples: Mapping[str, Sample] = {}
        self._reader: SampleReader | None = None

    @property
    def is_clean(self) -> bool:
        """Whether there are no errors and no warnings."""
        return not (self.error_count or self.warning_count)

    @property
    def error_count(self) -> int:
        """Number of places with errors."""
        return self._count(Severity.ERROR)

    @property
    def warning_count(self) -> int:
        """Number of places with warnings."""
        return self._count(Severity.WARNING)

    @property
    def note_count(self) -> int:
        """Number of findings that are notes, each of which may be about many samples."""
        return len([*self.of_severity(Severity.NOTE)])

    def of_severity(self, severity: Severity) -> Iterator[LintFinding]:
        return (finding for finding in self.findings if finding.severity is severity)

    def keep(self, samples: Mapping[str, Sample], reader: SampleReader) -> None:
        """Keep samples by name, and what reads them, to draw examples."""
        self._samples, self._reader = samples, reader

    def _place(self, file: str) -> SourceLocation | None:
        """Where the record of an example is, if the source is TFRecord files."""
        from recordsmith.sources import ShardReader

        sample = self._samples.get(file)
        if sample is None or not isinstance(self._reader, ShardReader):
            return None
        reference = reference_of(sample)
        return SourceLocation(str(self._reader.root / reference["file"]), reference["row"])

    def read_again(self, file: str) -> Mapping[str, Any]:
        """Read the features of the sample of an example again; {} if that is impossible."""
        sample = self._samples.get(file)
        if sample is None or self._reader is None:
            return {}
        try:
            return features_of(self._reader.read(sample))
        except RecordsmithError:
            return image_of(self._reader, sample)

    def to_json(self) -> dict[str, Any]:
        """Return samples, images, deep, error_count, warning_count, note_count, classes and
        findings.
        """
        counts = ("error_count", "warning_count", "note_count")
        return {
            "samples": self.sample_count,
            "images": self.image_count,
            "deep": self.is_deep,
            **fields_to_json(self, (*counts, "classes", "findings")),
        }

    def content(
        self, draw: Callable[[LintExample], Sequence[bytes]] | None = None
    ) -> ReportContent:
        """Return what a terminal and a page show; `draw` returns the images of an example."""
        counts = (
            (self.error_count, "error"),
            (self.warning_count, "warning"),
            (self.note_count, "note"),
        )
        shown = ", ".join(counted(count, noun) for count, noun in counts if count)
        verdict = "clean" if self.is_clean else "not clean"
        read = counted(self.sample_count, "sample")
        read += f", {counted(self.image_count, 'image')} decoded" if self.is_deep else ""
        figures = [(self.sample_count, "samples"), (self.image_count, "images decoded")]
        figures += [(count, f"{noun}s") for count, noun in counts]
        return ReportContent(
            summary=f"{verdict}: {shown or 'no findings'}; {read}",
            verdict=verdict,
            level="good" if self.is_clean else "bad" if self.error_count else "note",
            figures=[(f"{number:,}", name) for number, name in figures],
            tables=[self._class_table()] if any(self.classes.values()) else [],
            findings=[_shown(finding, draw, self._place) for finding in self.findings],
            notes=["Boxes at fault are red."] if draw is not None and self.findings else [],
        )

    def _class_table(self) -> ReportTable:
        totals: Counter[str] = Counter()
        for counts in self.classes.values():
            totals.update(counts)
        rows: list[tuple[Cell, ...]] = [
            (
                name,
                *(f"{counts.get(name, 0):,}" for counts in self.classes.values()),
                Bar(total / max(1, *totals.values())),
            )
            for name, total in totals.most_common()
        ]
        splits = [split or "images" for split in self.classes]
        heads = (counted(len(rows), "class", "classes"), *splits, "")
        return ReportTable("", heads, rows, splits, terminal_rows=0)

    def _count(self, severity: Severity) -> int:
        return sum(finding.count for finding in self.of_severity(severity))
