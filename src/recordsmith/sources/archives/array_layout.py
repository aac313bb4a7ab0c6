"""Find arrays of images and labels, and their splits, by the names of files and arrays.

MNIST: `train-images-idx3-ubyte.gz`, `t10k-labels.idx1-ubyte`; NumPy: `x_train` and `y_train`,
`images` and `labels`, `X` and `y`, in a `.npz` file or as `.npy` files, also in folders `train/`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from recordsmith.dataset import is_split_name
from recordsmith.errors import SourceError
from recordsmith.sources.archives.stored_array import ArrayFile, StoredArray, is_cifar
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.files.name_files import read_lines
from recordsmith.sources.problems import count_notice, join_names, summarize_paths
from recordsmith.sources.splits import only_split, sort_splits
from recordsmith.stores import Location

_IMAGES = frozenset(
    ("x", "image", "images", "img", "imgs", "data", "input", "inputs", "features", "pixels")
)
_LABELS = frozenset(("y", "label", "labels", "target", "targets", "class", "classes"))
_IDX = re.compile(r"idx\d$|[-._]ubyte$")
_NOISE = re.compile(r"idx\d|ubyte|\d+")
_JOINED = re.compile(r"([xy])(train|val|valid|test)|(train|val|valid|test)([xy])")
_WORDS = re.compile(r"[A-Za-z]+[0-9]*[a-z]*|[0-9]+")
_DEEPEST = 3
_MAX_FILES = 100
_MAX_NAMED = 20
_PICKLES = re.compile(r"(data_batch_\d|test_batch|train|test|batches\.meta|meta)(\.pkl)?")
_PICKLE_MAGIC = b"\x80"
_EXPECTED = (
    "idx files such as train-images-idx3-ubyte.gz, or arrays named like images and labels, x_train "
    "and y_train"
)
_SPLITS = {"t10k": "test"}


@dataclass(frozen=True)
class NamedArray:
    """An array and what its name says.

    file: relative to the root.
    member: its name in the file.
    split: None if the name has none.
    role: images, labels, or empty.
    rest: the other words: the name of a feature, or of a dataset.
    """

    file: str
    member: str
    split: str | None
    role: str
    rest: tuple[str, ...]

    @property
    def place(self) -> str:
        return f"{self.file}/{self.member}" if self.member else self.file

    @property
    def feature(self) -> str:
        """The name of the feature: the same in all splits."""
        return "_".join(self.rest) or self.role


@dataclass
class ArrayPart:
    """Arrays that have a row for each of some samples.

    split: None if the source has no splits.
    extras: other arrays with as many rows.
    """

    split: str | None
    images: NamedArray
    labels: NamedArray | None = None
    extras: list[NamedArray] = field(default_factory=list)

    @property
    def arrays(self) -> list[NamedArray]:
        return [self.images, *([] if self.labels is None else [self.labels]), *self.extras]


@dataclass
class FoundArrays:
    """The arrays of a source.

    class_names: by label, if a file next to the arrays has them.
    only_split: as in `Listing`.
    """

    root: Location
    files: dict[str, ArrayFile]
    parts: list[ArrayPart]
    class_names: dict[int, str]
    notices: list[str]
    only_split: str | None = None

    def array(self, named: NamedArray) -> StoredArray:
        return self.files[named.file].array(named.member)


def find_arrays(path: Location) -> FoundArrays:
    """Find the arrays of a folder, or those that belong to a file."""
    is_folder = path.is_folder()
    root = path if is_folder else path.parent
    known = list(walk_names(root)) if is_folder else _near(path)
    array_files = [name for name in known if is_array_name(name)]
    _check_pickles(root, known)
    files = _without_copies(array_files if is_folder else [path.name, *array_files])
    if len(files) > _MAX_FILES:
        raise SourceError(
            f"{len(files):,} files of arrays, such as {files[0]}; expected images and labels of "
            "each split in one file",
            path=path,
            remedy="Save them with numpy.savez(path, images=..., labels=...).",
        )
    found: list[NamedArray] = []
    opened: dict[str, ArrayFile] = {}
    for name in files:
        opened[name] = ArrayFile(root / name)
        found += [_named(name, member) for member in opened[name].names()]
    result = FoundArrays(root, opened, [], {}, [])
    images = [each for each in found if each.role == "images"]
    if not images:
        what = join_names(each.place for each in found) if found else summarize_paths(known)
        raise SourceError(
            f"no arrays of images: found {what}; expected {_EXPECTED}",
            path=path,
            remedy="Save them with numpy.savez(path, images=..., labels=...).",
        )
    datasets = dict.fromkeys(map(_dataset, images))
    if len(datasets) > 1:
        names = join_names(" ".join(words) or "(none)" for words in datasets)
        raise SourceError(
            f"several datasets of arrays: {names}; expected one",
            path=path,
            remedy="Pass a file of one of them, or move its files to a folder of their own.",
        )
    for split in (*sort_splits(each.split for each in images if each.split), None):
        own = [each for each in found if each.split == split]
        with_labels = {each.file for each in own if each.role == "labels"}
        whole = with_labels & {each.file for each in own if each.role == "images"}
        for file in dict.fromkeys(each.file if each.file in whole else None for each in own):
            some = [each for each in own if (each.file if each.file in whole else None) == file]
            if any(each.role == "images" for each in some):
                part = ArrayPart(split, _one(some, "images", path), _labels_of(some, path))
                result.parts.append(part)
                _add_extras(result, part, some)
    splits = {part.split for part in result.parts}
    if None in splits and len(splits) > 1:
        names = join_names(part.images.place for part in result.parts)
        raise SourceError(f"only some arrays have a split in their names: {names}", path=path)
    if len(splits) == 1:
        result.only_split = only_split(splits, root if is_folder else None)
        for part in result.parts:
            part.split = None
    used = [each for part in result.parts for each in part.arrays]
    unused = [each.place for each in found if each not in used]
    result.files = {each.file: opened[each.file] for each in used}
    result.class_names = _class_names(root, known)
    others = [name for name in known if name not in array_files] if is_folder else []
    is_emnist = any("emnist" in each.rest for each in used)
    result.notices = [
        *(["images are transposed, as in the files of EMNIST"] if is_emnist else []),
        *count_notice(unused, "array", "that belong to no images skipped", shown=_MAX_NAMED),
        *count_notice(
            sorted(set(array_files) - set(files)), "compressed copy", "skipped", "compressed copies"
        ),
        *count_notice(others, "file", "of other types not packed"),
    ]
    return result


def walk_names(root: Location) -> list[str]:
    """The files at most three folders deep."""
    return [name for name, _, _ in FileTree(root).walk(root, []) if name.count("/") <= _DEEPEST]


def is_array_name(name: str) -> bool:
    """Whether a file is named like one that contains arrays."""
    last = posixpath.basename(name).lower()
    plain = last.removesuffix(".gz")
    if plain.endswith((".npy", ".npz")):
        return plain == last
    return _IDX.search(plain) is not None or is_cifar(last)


def is_pickle_name(name: str) -> bool:
    """Whether a file has the name of a pickle in CIFAR's version for Python."""
    return _PICKLES.fullmatch(name) is not None


def has_role(path: str) -> bool:
    """Whether the name of a file says that it contains images."""
    return _named(path, "").role == "images"


def _near(path: Location) -> list[str]:
    """A file, and those next to it that belong to it: its labels and the names of classes."""
    names = [entry.name for entry in path.parent.list_entries() if entry.kind == "object"]
    texts = [name for name in names if name.endswith(".txt")]
    if path.name.lower().endswith(".npz") or is_cifar(path.name):
        return [path.name, *texts]
    own = _named(path.name, "")
    near = [
        name
        for name in names
        if is_array_name(name)
        and not name.lower().endswith((".npz", ".bin"))
        and (other := _named(name, "")).split == own.split
        and _dataset(other) == _dataset(own)
    ]
    return [path.name, *(name for name in near if name != path.name), *texts]


def _without_copies(names: Sequence[str]) -> list[str]:
    """Without compressed files whose content is there uncompressed."""
    known = set(names)
    kept = [name for name in names if name.removesuffix(".gz") == name or name[:-3] not in known]
    return list(dict.fromkeys(kept))


def _named(file: str, member: str) -> NamedArray:
    """Read the name of an array."""
    folder, _, last = file.rpartition("/")
    stem = re.sub(r"\.(npy|npz|bin)$", "", last.lower().removesuffix(".gz"))
    if is_cifar(last):
        part = "test" if stem.startswith("test") else "train"
        what = {"image": "images", "label": "labels"}.get(member, "")
        return NamedArray(file, member, part, what, (member,))
    text = f"{stem} {member}" if member and not last.lower().endswith(".npz") else member or stem
    split: str | None = None
    role = role_word = ""
    rest: list[str] = []
    for word in _words(text):
        if word in _SPLITS or is_split_name(word):
            split = split or _SPLITS.get(word, word)
        elif word in _IMAGES | _LABELS and not role:
            role = "images" if word in _IMAGES else "labels"
            role_word = word
        elif not _NOISE.fullmatch(word):
            rest.append(word)
    outside = [*_words(stem if member else ""), *folder.lower().split("/")[::-1]]
    split = split or next((w for w in outside if is_split_name(w)), None)
    if not role:
        return NamedArray(file, member, split, "", tuple(rest) or (text,))
    return NamedArray(file, member, split, role, (*rest, role_word))


def _words(text: str) -> list[str]:
    joined = _JOINED.sub(lambda found: " ".join(filter(None, found.groups())), text.lower())
    return _WORDS.findall(joined)


def _dataset(array: NamedArray) -> tuple[str, ...]:
    """The words in a name that are neither role nor split."""
    return array.rest[:-1] if array.role else ()


def _one(arrays: list[NamedArray], role: str, path: Location) -> NamedArray:
    found = [each for each in arrays if each.role == role]
    if len(found) > 1:
        raise SourceError(
            f"several arrays may be the {role}: {join_names(each.place for each in found)}; "
            "expected one for each split",
            path=path,
            remedy="Rename the others, or save what belongs together with "
            "numpy.savez(path, images=..., labels=...).",
        )
    return found[0]


def _labels_of(arrays: list[NamedArray], path: Location) -> NamedArray | None:
    has_labels = any(each.role == "labels" for each in arrays)
    return _one(arrays, "labels", path) if has_labels else None


def _add_extras(found: FoundArrays, part: ArrayPart, own: Sequence[NamedArray]) -> None:
    """Add the other arrays of numbers with as many rows as the images."""
    row_count = found.array(part.images).shape[0]
    if part.labels is not None and (label_count := found.array(part.labels).shape[0]) != row_count:
        raise SourceError(
            f"{row_count:,} images in {part.images.place}, but {label_count:,} labels in "
            f"{part.labels.place}",
            path=found.root,
            remedy="Save arrays with as many labels as images.",
        )
    for each in own:
        if each.role:
            continue
        try:
            array = found.array(each)
        except SourceError:
            continue  # such as pickled objects: reported as skipped
        if array.shape[0] == row_count and array.dtype.kind in "iufb":
            part.extras.append(each)


def _class_names(root: Location, known: Sequence[str]) -> dict[int, str]:
    """The names of classes: of EMNIST's mapping, or of CIFAR."""
    for name in known:
        last = posixpath.basename(name)
        if last in ("batches.meta.txt", "fine_label_names.txt"):
            lines = read_lines(root / name)
            return {number: text for number, (_, text) in enumerate(lines)}
        if last.startswith("emnist") and last.endswith("-mapping.txt"):
            rows = [text.split() for _, text in read_lines(root / name)]
            if all(len(row) > 1 and all(map(_is_code, row)) for row in rows):
                return {int(row[0]): chr(int(row[1])) for row in rows}
    return {}


def _is_code(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 8 and int(text) < 0x110000


def _check_pickles(root: Location, known: Sequence[str]) -> None:
    for name in known:
        if is_pickle_name(posixpath.basename(name)) and (root / name).read(0, 1) == _PICKLE_MAGIC:
            raise SourceError(
                "this is a pickle, as in CIFAR's version for Python; opening it can run code",
                path=root / name,
                remedy="Fetch the binary version (cifar-10-binary.tar.gz), unpack it and pack its "
                "folder, or save the arrays with numpy.savez(path, images=..., labels=...).",
            )
