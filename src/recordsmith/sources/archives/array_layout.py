"""Find arrays of images and labels, and their splits, by the names of files and arrays.

MNIST: `train-images-idx3-ubyte.gz`, `t10k-labels.idx1-ubyte`; NumPy: `x_train` and `y_train`,
`images` and `labels`, `X` and `y`, in a `.npz` file or as `.npy` files, also in folders `train/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from recordsmith.dataset import is_split_name
from recordsmith.sources.archives.stored_array import ArrayFile, StoredArray
from recordsmith.sources.files.account import Account
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.files.known_names import is_array_name
from recordsmith.sources.problems import count_notice, join_names, summarize_paths
from recordsmith.sources.splits import only_split, sort_splits
from recordsmith.stores import Location
from recordsmith.support.errors import SourceError

_IMAGES = frozenset(
    ("x", "image", "images", "img", "imgs", "data", "input", "inputs", "features", "pixels")
)
_LABELS = frozenset(("y", "label", "labels", "target", "targets", "class", "classes"))
_NOISE = re.compile(r"idx\d|ubyte|\d+")
_JOINED = re.compile(r"([xy])(train|val|valid|test)|(train|val|valid|test)([xy])")
_WORDS = re.compile(r"[A-Za-z]+[0-9]*[a-z]*|[0-9]+")
_DEEPEST = 3
_MAX_FILES = 100
_MAX_NAMED = 20
_EXPECTED = (
    "idx files such as train-images-idx3-ubyte.gz, or arrays named like images and labels, x_train "
    "and y_train"
)
_SAVE = "Save them with numpy.savez(path, images=..., labels=...)."
_SPLITS = {"t10k": "test"}


@dataclass(frozen=True)
class NamedArray:
    """A member of a file and what its name says; other words name a feature or a dataset."""

    file: str
    member: str
    split: str | None
    role: str  # images, labels, or empty
    words: tuple[str, ...]

    @property
    def place(self) -> str:
        return f"{self.file}/{self.member}" if self.member else self.file

    @property
    def feature(self) -> str:
        """The name of the feature: the same in all splits."""
        return "_".join(self.words) or self.role


@dataclass
class SplitArrays:
    """The arrays of a split, with a row for each sample; `split` is None if there are no splits."""

    split: str | None
    images: NamedArray
    labels: NamedArray | None = None
    extras: list[NamedArray] = field(default_factory=list)

    @property
    def arrays(self) -> list[NamedArray]:
        return [self.images, *([] if self.labels is None else [self.labels]), *self.extras]


@dataclass
class ArrayLayout:
    """The arrays of a source, and the files that contain them; `others` contain none."""

    root: Location
    files: dict[str, ArrayFile]
    parts: list[SplitArrays]
    notices: list[str]
    only_split: str | None = None
    others: list[str] = field(default_factory=list)

    def array(self, named: NamedArray) -> StoredArray:
        return self.files[named.file].array(named.member)


def find_arrays(path: Location, leave_out: Sequence[str] = ()) -> ArrayLayout:
    """Find the arrays of a folder, or of a `.npz` file."""
    is_folder = path.is_folder()
    root = path if is_folder else path.parent
    names = [path.name]
    if is_folder:
        walk = FileTree(root, leave_out=leave_out).walk(root, Account())
        names = [name for name, _, _ in walk if name.count("/") <= _DEEPEST]
    elif is_array_name(path.name) and not path.name.lower().endswith(".npz"):
        raise SourceError(
            "this file has one array; its labels are in another one",
            path=path,
            remedy="Pack the folder that contains both.",
        )
    array_names = [name for name in names if is_array_name(name)]
    known = set(array_names)
    copies = {name for name in array_names if name.endswith(".gz") and name[:-3] in known}
    files = [name for name in array_names if name not in copies] if is_folder else names
    if len(files) > _MAX_FILES:
        raise SourceError(
            f"{len(files):,} files of arrays, such as {files[0]}; expected images and labels of "
            "each split in one file",
            path=path,
            remedy=_SAVE,
        )
    opened = {name: ArrayFile(root / name) for name in files}
    arrays = [_named(name, member) for name, file in opened.items() for member in file.names()]
    _check_images(arrays, names, path)
    layout = ArrayLayout(root, opened, [], [])
    for split, group in _groups(arrays):
        images, labels = (_only(group, role, path) for role in ("images", "labels"))
        assert images is not None  # as each group has some
        layout.parts.append(SplitArrays(split, images, labels))
        _add_extras(layout, layout.parts[-1], group)
    splits = {part.split for part in layout.parts}
    if None in splits and len(splits) > 1:
        places = join_names(part.images.place for part in layout.parts)
        raise SourceError(f"only some arrays have a split in their names: {places}", path=path)
    if len(splits) == 1:
        layout.only_split = only_split(splits, root if is_folder else None)
        for part in layout.parts:
            part.split = None
    used = [array for part in layout.parts for array in part.arrays]
    unused = [array.place for array in arrays if array not in used]
    layout.others = [name for name in names if name not in known] if is_folder else []
    layout.files = {array.file: opened[array.file] for array in used}
    layout.notices += [
        *count_notice(unused, "array", "that belong to no images skipped", shown=_MAX_NAMED),
        *count_notice(sorted(copies), "compressed copy", "skipped", "compressed copies"),
    ]
    return layout


def has_role(path: str) -> bool:
    """Whether the name of a file says that it contains images."""
    return _named(path, "").role == "images"


def _named(file: str, member: str) -> NamedArray:
    folder, _, last = file.rpartition("/")
    stem = re.sub(r"\.(npy|npz)$", "", last.lower().removesuffix(".gz"))
    text = member or stem
    name_split: str | None = None
    role = role_word = ""
    words: list[str] = []
    for word in _words(text):
        if word in _SPLITS or is_split_name(word):
            name_split = name_split or _SPLITS.get(word, word)
        elif word in _IMAGES | _LABELS and not role:
            role = "images" if word in _IMAGES else "labels"
            role_word = word
        elif not _NOISE.fullmatch(word):
            words.append(word)
    outside = [*_words(stem if member else ""), *folder.lower().split("/")[::-1]]
    split_of_file = name_split or next(filter(is_split_name, outside), None)
    own = (*words, role_word) if role else tuple(words) or (text,)
    return NamedArray(file, member, split_of_file, role, own)


def _words(text: str) -> list[str]:
    parted = _JOINED.sub(lambda match: " ".join(filter(None, match.groups())), text.lower())
    return _WORDS.findall(parted)


def _dataset(array: NamedArray) -> tuple[str, ...]:
    """The words in a name that are neither role nor split."""
    return array.words[:-1] if array.role else ()


def _check_images(arrays: Sequence[NamedArray], names: Sequence[str], path: Location) -> None:
    datasets = dict.fromkeys(_dataset(array) for array in arrays if array.role == "images")
    if not datasets:
        places = join_names(array.place for array in arrays)
        raise SourceError(
            f"no arrays of images: found {places or summarize_paths(names)}; expected {_EXPECTED}",
            path=path,
            remedy=_SAVE,
        )
    if len(datasets) > 1:
        listed = join_names(" ".join(words) or "(none)" for words in datasets)
        raise SourceError(
            f"several datasets of arrays: {listed}; expected one",
            path=path,
            remedy="Move the files of one of them to a folder of their own.",
        )


def _groups(arrays: Sequence[NamedArray]) -> Iterator[tuple[str | None, list[NamedArray]]]:
    """Yield the split of arrays that belong together, which include images.

    A file with images and labels is a group of its own; the other arrays of a split are one.
    """
    splits = (array.split for array in arrays if array.role == "images" and array.split)
    for split in (*sort_splits(splits), None):
        own = [array for array in arrays if array.split == split]
        with_labels = {array.file for array in own if array.role == "labels"}
        whole = with_labels & {array.file for array in own if array.role == "images"}
        groups: dict[str | None, list[NamedArray]] = {}
        for array in own:
            groups.setdefault(array.file if array.file in whole else None, []).append(array)
        for group in groups.values():
            if any(array.role == "images" for array in group):
                yield split, group


def _only(arrays: Sequence[NamedArray], role: str, path: Location) -> NamedArray | None:
    """The array of a role, of which there may be one."""
    candidates = [array for array in arrays if array.role == role]
    if len(candidates) > 1:
        places = join_names(array.place for array in candidates)
        raise SourceError(
            f"several arrays may be the {role}: {places}; expected one for each split",
            path=path,
            remedy="Rename the others, or save what belongs together with "
            "numpy.savez(path, images=..., labels=...).",
        )
    return candidates[0] if candidates else None


def _add_extras(layout: ArrayLayout, part: SplitArrays, group: Sequence[NamedArray]) -> None:
    """Add the other arrays of numbers with as many rows as the images."""
    row_count = layout.array(part.images).shape[0]
    if part.labels is not None and (label_count := layout.array(part.labels).shape[0]) != row_count:
        raise SourceError(
            f"{row_count:,} images in {part.images.place}, but {label_count:,} labels in "
            f"{part.labels.place}",
            path=layout.root,
            remedy="Save arrays with as many labels as images.",
        )
    for named in group:
        if not named.role:
            with suppress(SourceError):  # such as pickled objects: reported as skipped
                array = layout.array(named)
                if array.shape[0] == row_count and array.dtype.kind in "iufb":
                    part.extras.append(named)
