"""The interface of a source: it lists samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from recordsmith.dataset import KeypointClasses
from recordsmith.sources.files.account import Account
from recordsmith.sources.samples import Sample, SampleReader


@dataclass(frozen=True)
class Listing:
    """The samples and classes of a source.

    samples: in an order that depends only on the data. A sequence; those of sources with very many
        samples create each sample when it is accessed (`SampleTable`).
    reader: reads them.
    class_names: index = label; None if there are no classes. A label without a name (gaps, and 0
        where labels start at 1) is None in the tuple.
    notices: what was skipped: hidden files, empty classes, files of other types.
    splits: names of the source's own splits, in order; each sample then has one of them.
    only_split: the split of all samples if `splits` is empty, such as that of a test set; None for
        the split of the caller, or train.
    has_label_map: whether labels come from a label map, so that `label_map.pbtxt` is written.
    keypoint_classes: what the keypoints of objects are, by label.
    categories: what annotations have on classes besides their names, by label as text: `name`,
        and `id` (if it is not the label) or `supercategory`; for the provenance.
    arrow_schema: of a table; see `Manifest`.
    account: which file of the source's folder is read as what, or left out and why; None for a
        source without a folder.
    dataset_paths: what `recordsmith.open` opens, of a source of TFRecord files.
    digest: of the listing before samples were left out (`source_digest`); None if none were.
    """

    samples: Sequence[Sample]
    reader: SampleReader = field(compare=False)
    class_names: tuple[str | None, ...] | None = None
    notices: Sequence[str] = ()
    splits: tuple[str, ...] = ()
    only_split: str | None = None
    has_label_map: bool = False
    keypoint_classes: KeypointClasses = field(default_factory=dict)
    categories: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    arrow_schema: str | None = None
    account: Account | None = field(default=None, compare=False)
    dataset_paths: Any = field(default=None, compare=False)
    digest: str | None = field(default=None, compare=False)

    def with_account(self, account: Account | None) -> Listing:
        """The same with an account, and a notice for each of its lines that is left out."""
        if account is None:
            return self
        notices = (*self.notices, *account.notices())
        return replace(self, account=account, notices=notices)


class Source(Protocol):
    """A source of samples: what can be listed. Listing does not change it.

    If it has a `root` attribute, the path or location of the folder that it reads, `pack` refuses
    to write into it. If the reader of its listing has a method `frames` that returns `EncodedRows`,
    rows that need no change are copied many at a time instead of read one by one.
    """

    def list_samples(self) -> Listing:
        """Find all samples, without reading them.

        Raises:
            SourceError: there is nothing to pack; the message has what was found and expected.
        """
        ...

    def describe(self) -> Mapping[str, Any]:
        """Describe the source for the manifest: JSON-able, and independent of its location.

        `kind` is the name of its class; `folder`, `file` or `files` the last part of its path. The
        others are the options that affect the content of samples: a job resumes only if they are
        unchanged.
        """
        ...


class ListedSource:
    """A source that was listed already, for jobs after what was found has been printed."""

    def __init__(self, source: Source, listing: Listing) -> None:
        self._source = source
        self._listing = listing

    def list_samples(self) -> Listing:
        return self._listing

    def describe(self) -> Mapping[str, Any]:
        return self._source.describe()

    @property
    def root(self) -> Any:
        """The folder that is read, if the source has one."""
        return getattr(self._source, "root", None)
