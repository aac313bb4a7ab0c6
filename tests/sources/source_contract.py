"""Tests that every source must pass. The tests of a source subclass them and make the source."""

from __future__ import annotations

import json
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from recordsmith.format.example import decode_example, encode_example
from recordsmith.sources import Listing, Sample, SampleReader, Source, open_reader
from recordsmith.sources.files.account import Account
from recordsmith.sources.files.file_tree import FileTree, TreeSource
from recordsmith.stores import as_folder
from recordsmith.support.errors import OptionError, RecordsmithError

from ..reading import read_sample


class SourceContract:
    """Subclass as `TestSomething`, with `make_source`."""

    def make_source(self, folder: Path, images: ModuleType) -> Source:
        """A source of at least four good samples, made in an empty folder."""
        raise NotImplementedError

    @pytest.fixture
    def source(self, tmp_path: Path, images: ModuleType) -> Source:
        return self.make_source(tmp_path / "source", images)

    def test_listing_is_the_same_every_time(
        self, source: Source, tmp_path: Path, images: ModuleType
    ) -> None:
        listing = source.list_samples()
        assert len(listing.samples) >= 4
        assert source.list_samples() == listing
        (tmp_path / "elsewhere").mkdir()
        other = self.make_source(tmp_path / "elsewhere" / "source", images).list_samples()
        assert (other.samples, other.class_names) == (listing.samples, listing.class_names)

    def test_names_are_unique_and_lead_nowhere_else(self, source: Source, tmp_path: Path) -> None:
        names = [sample.name for sample in source.list_samples().samples]
        assert len(set(names)) == len(names)
        assert not any(str(tmp_path) in name for name in names)

    def test_labels_are_numbers_of_classes(self, source: Source) -> None:
        listing = source.list_samples()
        labels = {sample.label for sample in listing.samples}
        if listing.class_names is None:
            assert labels == {None}
        elif listing.has_label_map:  # the labels are those of objects
            assert labels == {None}
            assert listing.class_names[0] is None
            names = [name for name in listing.class_names if name is not None]
            assert len(set(names)) == len(names)
            for sample in listing.samples:
                features = read_sample(source, sample)
                texts = [text.decode() for text in features["image/object/class/text"]]
                named = [listing.class_names[n] for n in features["image/object/class/label"]]
                assert named == texts
        else:
            if labels == {None}:  # images may have several
                all_features = (read_sample(source, sample) for sample in listing.samples)
                labels = {label for of in all_features for label in of["image/class/label"]}
            assert labels == set(range(len(listing.class_names)))
            assert len(set(listing.class_names)) == len(listing.class_names)

    def test_splits_are_those_of_its_samples(self, source: Source) -> None:
        listing = source.list_samples()
        splits = {sample.split for sample in listing.samples}
        assert splits == (set(listing.splits) or {None})
        assert len(set(listing.splits)) == len(listing.splits)

    def test_features_can_be_encoded(self, source: Source) -> None:
        keys = set()
        listing = source.list_samples()
        for sample in listing.samples:
            payload = _encoded(listing.reader, sample)
            assert 0 < sample.size_bytes < 2 * len(payload)
            keys.add(tuple(decode_example(payload)))
        assert len(keys) == 1  # every sample has the same features
        assert set(listing.reader.kinds()) <= set(keys.pop())

    def test_describe_is_json_and_the_same_on_every_machine(
        self, source: Source, tmp_path: Path
    ) -> None:
        described = source.describe()
        assert json.loads(json.dumps(described)) == described
        assert described["kind"] == type(source).__name__
        assert str(tmp_path) not in json.dumps(described)

    def test_versions_change_with_the_files(self, source: Source, tmp_path: Path) -> None:
        before = _versions(source)
        assert _versions(source) == before
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        for file in files:
            touch(file)
        after = _versions(source)
        same = [name for name in before if after[name] == before[name]]
        assert same == ([] if files else list(before))  # rows from memory have no files

    def test_samples_can_be_read_elsewhere(self, source: Source) -> None:
        """From JSON alone, by a reader that has not listed anything."""
        listing = source.list_samples()
        try:
            document = json.loads(json.dumps(listing.reader.to_json()))
        except OptionError:  # rows that exist only in this process
            assert type(source).__name__ in ("Rows", "Table", "HuggingFace")
            return
        reader = open_reader(document)
        assert reader.to_json() == listing.reader.to_json()
        assert reader.kinds() == listing.reader.kinds()
        for sample in listing.samples:
            document = json.loads(json.dumps(sample.to_json()))
            restored = Sample.from_json(document)
            assert (restored, restored.version) == (sample, sample.version)
            assert _encoded(reader, restored) == _encoded(listing.reader, sample)

    def test_references_do_not_depend_on_the_folder(self, source: Source, tmp_path: Path) -> None:
        for sample in source.list_samples().samples:
            assert str(tmp_path) not in json.dumps(sample.to_json())

    def test_missing_samples_are_reported(self, source: Source) -> None:
        reader = source.list_samples().reader
        with pytest.raises(RecordsmithError):
            reader.read(Sample("no such/sample.jpg", 1, label=0))

    def test_notices_are_texts(self, source: Source) -> None:
        for notice in source.list_samples().notices:
            assert isinstance(notice, str)
            assert notice

    def test_account_has_each_file_once(self, source: Source, tmp_path: Path) -> None:
        root = Path(str(getattr(source, "root", None) or tmp_path / "none"))
        if not (isinstance(source, TreeSource) and root.is_dir()):
            return  # there is no folder to account for
        for clutter in ("notes.md", ".hidden/a", "other/deep/d.bin", "other/c.bin"):
            (root / clutter).parent.mkdir(parents=True, exist_ok=True)
            (root / clutter).touch()
        tree = FileTree(as_folder(root))
        assert tree.folders  # scanned, as the detector does it
        source.use_tree(tree)
        account = source.list_samples().account
        assert account is not None
        check_account(account, root)
        left_out = {name for line in account.left_out for name in line.names}
        assert left_out >= {"notes.md", ".hidden", "other/deep/d.bin", "other/c.bin"}
        assert any(line.is_read for line in account)

    def test_samples_are_read_from_several_threads(self, source: Source) -> None:
        listing = source.list_samples()
        reader, samples = listing.reader, listing.samples
        rewrite_each = [_encoded(reader, sample) for sample in samples]
        with ThreadPoolExecutor(8) as pool:
            for _ in range(3):
                together = pool.map(lambda sample: _encoded(reader, sample), samples)
                assert list(together) == rewrite_each


def check_account(account: Account, root: Path) -> None:
    """Check that an account has each file below a folder exactly once.

    A hidden folder is one entry, whatever it contains; what recordsmith keeps in a dataset is none.
    """
    expected = Counter[str]()
    for folder, folders, files in os.walk(root):
        path = Path(folder).relative_to(root).as_posix()
        hidden = [name for name in folders if name[0] == "." or name == "__MACOSX"]
        folders[:] = [name for name in folders if name not in hidden]
        entries = {*files, *hidden} - {".recordsmith", ".export.json"}
        expected["" if path == "." else path] += len(entries)
    found = Counter[str]()
    for line in account:
        assert line.file_count == line.folders.total() > 0
        assert len(line.names) <= line.file_count
        found.update(line.folders)
    names = [name for line in account for name in line.names]
    assert len(set(names)) == len(names)
    assert +found == +expected
    assert account.file_count == expected.total()


def left_out(listing: Listing) -> dict[str, list[str]]:
    """The paths that a listing leaves out, by reason: "hidden", "not images" and so on."""
    assert listing.account is not None
    paths: dict[str, list[str]] = {}
    for line in listing.account.left_out:
        paths.setdefault(line.kind.value, []).extend(line.names)
    return {reason: sorted(names) for reason, names in paths.items()}


def touch(file: Path) -> None:
    """Make a file look changed."""
    time = file.stat().st_mtime_ns + 1_000_000_000
    os.utime(file, ns=(time, time))


def _versions(source: Source) -> dict[str, int]:
    versions = {sample.name: sample.version for sample in source.list_samples().samples}
    assert None not in versions.values()
    return versions  # type: ignore[return-value]


def _encoded(reader: SampleReader, sample: Sample) -> bytes:
    """What is stored of a sample: features as an Example, or the payload as it is."""
    content = reader.read(sample)
    return content if isinstance(content, bytes) else encode_example(content, reader.kinds())
