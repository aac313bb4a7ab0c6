"""Sources that find annotation files and their images: files about many, or a file for each image.

Files about one image: `Annotations/` and `JPEGImages/` with lists in `ImageSets/`, `annotations/`
and `images/`, or files next to the images, with or without folders named like splits. An image
without a file is a sample only if a list names it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from recordsmith.dataset import is_split_name
from recordsmith.sources.boxes.annotation import AnnotationFile, Contents, Entry, make_entry
from recordsmith.sources.boxes.source import (
    AnnotatedSource,
    BoxOptions,
    ListedImages,
    left_out_notice,
    listed_entries,
    path_notes,
)
from recordsmith.sources.classes import Classes
from recordsmith.sources.files.account import Reason, Role
from recordsmith.sources.files.file_index import (
    FOUND_OUTSIDE,
    FOUND_WITH_SUFFIX,
    FileIndex,
    Found,
    LeftOut,
    Match,
    name_key,
    no_files,
    not_found,
)
from recordsmith.sources.files.file_tree import HEAD_BYTES, FileTree
from recordsmith.sources.files.images import IMAGE_FOLDERS, has_image_name, stem_of
from recordsmith.sources.files.name_files import read_lines
from recordsmith.sources.files.namesakes import without_namesakes
from recordsmith.sources.files.paths import (
    common_version,
    inside,
    is_file,
    size_and_version,
    with_slashes,
)
from recordsmith.sources.flaws import Check
from recordsmith.sources.layouts import Confidence, LayoutCandidate
from recordsmith.sources.problems import Fault, count_notice, join_names
from recordsmith.sources.splits import folder_splits, split_lists, splits_by_folder
from recordsmith.stores import Location, PlaceLike, as_folder, as_location
from recordsmith.support.errors import OptionError, RecordsmithError, SourceError, option
from recordsmith.support.words import count

if TYPE_CHECKING:
    from typing_extensions import Unpack

_LIKELY_FOLDERS = frozenset((*IMAGE_FOLDERS, "data"))
_ANNOTATION_FOLDERS = frozenset(
    ("annotations", "annotation", "xml", "xmls", "json", "jsons", "labels", "labeltxt", "annfiles")
)
_LABELS = re.compile(r"(^|/)label(\w*)", re.IGNORECASE)
_MARK = re.compile(r"\s+(?:-1|0|1)$")  # in lists of one class
_MASK_FOLDERS = frozenset(("segmentationclass", "segmentationobject", "segmentationclassaug"))
_ANNOTATIONS = re.compile(r"(?:^|(?<=/))annotations/", re.IGNORECASE)
_OTHER_NAME = "annotations name another image than their file name does"


class SharedAnnotationSource(AnnotatedSource):
    """A source of files that each describe many images."""

    _columns: Mapping[str, Any] = MappingProxyType({})  # see `AnnotationFile`

    def __init__(
        self,
        root: PlaceLike,
        *,
        annotations: PlaceLike | Mapping[str, PlaceLike] | None = None,
        images: PlaceLike | None = None,
        **options: Unpack[BoxOptions],
    ) -> None:
        """
        Args:
            root: the folder of images and annotations; or the annotation file, next to its images
                or in a folder `annotations` next to theirs.
            annotations: the annotation file, or a mapping from split to file; None to find them.
            images: the folder of the images, inside the root; None to find it.
            options: `label_map`, `boxes`, `drawn` and `object_masks`, as in `Voc`.
        """
        super().__init__(root, **options)
        if annotations is None and is_file(self.root):
            annotations, folder = self.root, self.root.absolute().parent
            self.root = folder.parent if folder.name.lower() == "annotations" else folder
        named = annotations if isinstance(annotations, Mapping) else {"": annotations}
        self._annotations: Mapping[str, Any] = {} if annotations is None else named
        self._images = None if images is None else _path_of_images(self.root, images)

    def describe(self) -> Mapping[str, Any]:
        files = {split: self._located(path)[1] for split, path in self._annotations.items()}
        named = files.get("", files) if files else None
        known = {**super().describe(), "annotations": named, "images": self._images}
        return {**known, **self._columns}

    @classmethod
    def find_candidates(cls, tree: FileTree) -> Iterator[LayoutCandidate]:
        if not (paths := cls._matching(tree)):
            return
        chosen = cls._chosen(paths)
        candidate = LayoutCandidate(
            cls.box_format.name,
            cls.box_format.what.format(join_names(chosen)),
            Confidence.ANNOTATED,
            files=tuple(paths),
            hints=cls._hints(paths, chosen),
        )
        try:
            _group_by_split(chosen)
        except SourceError as error:
            candidate = replace(
                candidate, problem=error.problem, remedy=error.remedy, needs=("annotations",)
            )
        yield candidate

    @staticmethod
    def _chosen(paths: Sequence[str]) -> Sequence[str]:
        """The files to read of those that match; most formats have none of other tasks."""
        return paths

    @staticmethod
    def _hints(paths: Sequence[str], chosen: Sequence[str]) -> Mapping[str, str]:  # noqa: ARG004
        """As in `LayoutCandidate`, on the files that are not chosen."""
        return {}

    @staticmethod
    def _captions(path: str) -> str:  # noqa: ARG004
        """The name of a file with captions of the images of a file, which may be missing."""
        return ""

    def _list_images(self, index: FileIndex) -> ListedImages:
        files = self._files(index)
        listed: list[Entry] = []
        contents = Contents()
        for split, file in files.items():
            for image in self.box_format.images(file):
                listed.append(make_entry(file, image, contents))
                listed[-1].split = split
        if self._policy == "stop":
            _check_class_from(files.values())
        if len(files) == 1 and all(entry.annotated.split for entry in listed):
            for entry in listed:
                entry.split = entry.annotated.split.lower()
            listed.sort(key=lambda entry: entry.split)
        classes, notices = self._all_classes(index, files.values(), contents)
        entries = self._find_images(index, listed)
        left_out = sum(not entry.image for entry in listed)
        notices += left_out_notice(left_out, "annotated image", entries, index)
        if not entries:
            paths = join_names(file.name for file in files.values())
            why = [f"{paths} list no images", *chain(*(file.notices for file in files.values()))]
            raise SourceError(f"no images to pack: {'; '.join(why)}", path=self.root)
        for split, file in files.items():
            entries |= _unlisted(index, file, entries, split)
        used = {entry.image for entry in entries.values()}
        what = "missing from annotation files skipped"
        if missing := _missing(entries.values()):
            others = f"{len(missing):,} that {'were' if len(missing) > 1 else 'was'} not found"
            what = f"{what}; these name {others}, such as {missing[0].annotated.file_name!r:.60}"
        self._leave_unannotated(index, index.paths, used, what)
        read = [*files.values(), *filter(None, (file.captions for file in files.values()))]
        index.account.read(Role.ANNOTATION, {file.name for file in read if file.name in index})
        notices += dict.fromkeys(text for file in files.values() for text in file.notices)
        present = {key for file in files.values() for key in file.features}
        features = tuple(key for key in self.box_format.features if key in present)
        categories = {} if self._class_from else self._categories(files.values(), classes)
        has_objects = contents.has_objects or any(file.has_objects for file in files.values())
        options = {"features": features, "is_labelled": contents.has_captions and not has_objects}
        return ListedImages(entries, classes, notices, options, categories, contents)

    def _categories(
        self, files: Collection[AnnotationFile], classes: Classes
    ) -> Mapping[str, Mapping[str, Any]]:
        """What `Listing.categories` needs; most formats have only names of classes."""
        return {}

    def _find(self, index: FileIndex) -> Sequence[str]:
        paths = [path for path in index.paths if self._matches(index, path)]
        if not paths:
            raise no_files(index.root, self.box_format.expected, index)
        return paths

    def _matches(self, index: FileIndex, path: str) -> bool:
        """Whether a file has a suffix of the format and begins like it."""
        known = self.box_format
        has_suffix = path.lower().endswith(known.file_suffixes)
        return has_suffix and known.is_format_of(path, (index.root / path).read(0, HEAD_BYTES))

    def _files(self, index: FileIndex) -> dict[str, AnnotationFile]:
        """The annotation file of each split; a single one may have the split ""."""
        places = {split: self._located(path) for split, path in self._annotations.items()}
        known = [] if places else self._find(index)
        if not places:
            paths = _group_by_split([*self._chosen(known)])
            places = {split: (index.root / path, path) for split, path in paths.items()}
        elif places.keys() == {""}:
            (place,) = places.values()
            places = dict.fromkeys(_group_by_split([place[1]]), place)
        read = {name for _, name in places.values()}
        captions = {name: self._captions(name) for name in read}
        captions = {
            name: path
            for name, path in captions.items()
            if path in index and path not in read and self._matches(index, path)
        }
        left = sorted({*known}.difference(read, captions.values()))
        what = "of other tasks skipped"
        index.account.leave(Reason.OTHER_TASK, left, "annotation file", what)
        files = {}
        for split, (file, name) in places.items():
            version = size_and_version(file)[1]
            files[split] = known_file = AnnotationFile(
                file,
                name,
                version,
                self._masks is not None,
                columns=self._columns,
                features=self.box_format.features,
                class_from=self._class_from,
            )
            if path := captions.get(name):
                known_file.captions = AnnotationFile(index.root / path, path)
                known_file.version = common_version((version, index.version_of(path)))
        return files

    def _located(self, place: PlaceLike) -> tuple[Location, str]:
        """A file from the caller, and its name relative to the root."""
        file = as_location(place)
        if not is_file(file):
            below = inside(self.root, str(place))
            file = below if below is not None and is_file(below) else file
        return file, _path_inside(self.root, file) or file.name

    def _find_images(self, index: FileIndex, listed: Sequence[Entry]) -> dict[str, Entry]:
        """The entries by their names, without those of images that are left out.

        Two entries for an image are a fault of the second.
        """
        entries: dict[str, Entry] = {}
        of_files: dict[tuple[str, str], list[Entry]] = {}
        for entry in listed:
            of_files.setdefault((entry.annotation, entry.split), []).append(entry)
        places = [entry.annotated.where for entry in listed]  # which placing an image removes
        own = self._images
        for key, its in of_files.items():
            _place(index, _image_folders(index, *key) if own is None else [own], its)
        for entry, where in zip(listed, places, strict=True):
            file, name = entry.annotation, entry.image
            if not name:
                continue
            if name in entries:
                problem = f"{where}: {name} is already listed in {entries[name].annotation}"
                entry.fault = Fault(problem, file)
                name = f"{file}/{where.rpartition(' ')[2]}"
            if name in entries:  # ids may be missing or repeated
                name = f"{name} ({len(entries)})"
            entries[name] = entry
        return entries


def _path_of_images(root: Location, images: PlaceLike) -> str:
    for folder in (as_folder(images), inside(root, str(images))):
        if folder is not None and folder.is_folder():
            path = _path_inside(root, folder)
            if path is not None:
                return path
    raise OptionError(option="images", value=str(images), expected=f"a folder inside {root}")


def _path_inside(root: Location, place: Location) -> str | None:
    """The path of a file or folder relative to the root, which also links may lead to."""
    if not root.contains(place):
        return None
    return place.identity[len(root.identity) :].lstrip("/")


def _group_by_split(paths: Sequence[str]) -> dict[str, str]:
    """The split of each file, by its name; a single one may have the split ""."""
    if len(paths) == 1:
        words = _split_words(paths[0])
        return {words[0] if len(words) == 1 else "": paths[0]}
    for words_of in (_split_words, _split_words_with_years):
        splits = {tuple(words_of(path)): path for path in paths}
        if len(splits) == len(paths) and all(len(words) == 1 for words in splits):
            return {words[0]: path for words, path in splits.items()}
    words_of_each = [tuple(_split_words(path)) for path in paths]
    without = [path for path, words in zip(paths, words_of_each, strict=True) if not words]
    named = [words for words in words_of_each if words]
    if len(without) == 1 and len(set(named)) == len(named) > 1:  # often of the same rows
        remedy = (
            f"If {without[0]} repeats the others, leave it out: {option('leave_out', without[0])}. "
            f"Or choose it alone with {option('annotations', without[0])}."
        )
    else:
        remedy = (
            f"Choose one with {option('annotations', paths[0])}, or rename the files or their "
            "folders to splits, such as train and val."
        )
    raise SourceError(
        f"several annotation files without distinct splits in their names: {join_names(paths)}",
        remedy=remedy,
    )


def _split_words(path: str) -> list[str]:
    """Splits in the name of a file, or of its folder: instances_train2017 -> train."""
    folder, name = posixpath.split(path)
    for text in (posixpath.splitext(name)[0], posixpath.basename(folder)):
        if words := [word for word in re.findall(r"[A-Za-z]+", text) if is_split_name(word)]:
            return words
    return []


def _split_words_with_years(path: str) -> list[str]:
    words = re.findall(r"[A-Za-z]+\d+", stem_of(path))
    return [word for word in words if is_split_name(word.rstrip("0123456789"))]


def _image_folders(index: FileIndex, file: str, split: str) -> list[str]:
    """Where to look for images, best first: next to the file, folders named like it, images."""
    own = posixpath.dirname(file)
    words = {split.lower(), *map(str.lower, (*_split_words_with_years(file), *_split_words(file)))}
    folders = sorted({posixpath.dirname(path) for path in index.all_paths if has_image_name(path)})
    above = {posixpath.dirname(folder) for folder in folders}

    def rank(folder: str) -> tuple[int, str]:
        last = posixpath.basename(folder).lower()
        if folder == own:
            return 0, folder
        return (1 if last in words else 2 if last in _LIKELY_FOLDERS else 3), folder

    near = {own, posixpath.dirname(own), ""}
    likely = [folder for folder in {*folders, *above, *near} if rank(folder)[0] < 3]
    return list(dict.fromkeys([*sorted(likely, key=rank), *sorted(near)]))


def _place(index: FileIndex, folders: list[str], entries: Sequence[Entry]) -> None:
    """Find the images of a file; `folders` are where to look for them, best first.

    Those that are left out get an empty path.
    """
    file, names = entries[0].annotation, [entry.annotated.file_name for entry in entries]
    found = [(name, index.find_image(name, folders, file) if name else []) for name in names]
    for entry, name, match in zip(
        entries, names, without_namesakes(index, found, folders), strict=True
    ):
        image = entry.annotated
        if isinstance(match, LeftOut):
            entry.image = ""
            continue
        if isinstance(match, Found) and has_image_name(match.path):
            entry.image = match.path
            where = "" if image.labels is None else image.where
            entry.annotated = image._replace(file_name="", where=where)
            if match.change != FOUND_WITH_SUFFIX or has_image_name(name):  # or none has a suffix
                entry.notes = (*path_notes(match, name, f"{file}, {image.where}"), *entry.notes)
            continue
        problem = not_found(
            match, name, join_names(folder or "the folder itself" for folder in folders)
        )
        entry.image = f"{file}/{image.where.rpartition(' ')[2]}"
        entry.fault = Fault(
            f"{image.where}: {problem}",
            file,
            remedy=image.remedy,
            check=Check.ANNOTATION_WITHOUT_IMAGE,
        )


def _check_class_from(files: Collection[AnnotationFile]) -> None:
    """Check that no file lacks the attribute that is the class of the objects of others."""
    without = [file for file in files if file.has_class[False] and not file.has_class[True]]
    if without and len(without) < len(files):
        name, number = without[0].name, without[0].has_class[False]
        raise SourceError(
            f"none of its {count(number, 'object')} has the attribute "
            f"{without[0].class_from!r:.60}, which is the class in other files",
            path=name,
            remedy=f"Add it to them, or leave the file out: {option('leave_out', name)}. "
            f"{option('boxes', 'drop')} drops all of them.",
        )


def _missing(entries: Collection[Entry]) -> list[Entry]:
    """The annotations whose image was not found; an error if no image was found."""
    what = Check.ANNOTATION_WITHOUT_IMAGE
    missing = [entry for entry in entries if entry.fault and entry.fault.check is what]
    if 1 < len(missing) == len(entries) and (first := missing[0].fault):
        problem = f"{first.problem}, like {count(len(missing) - 1, 'other image')}"
        remedy = first.remedy or f"Pass the folder of the images with {option('images')}."
        raise SourceError(problem, path=first.path, remedy=remedy)
    return missing


def _unlisted(
    index: FileIndex, file: AnnotationFile, entries: Mapping[str, Entry], split: str
) -> dict[str, Entry]:
    """The entries of other images next to those that a file lists, as far as it implies them."""
    listed = [path for path, entry in entries.items() if entry.annotation == file.name]
    folders = {posixpath.dirname(path) for path in listed if path in index}
    found = {}
    annotated = file.unlisted or (lambda _: None)
    for path in index.paths if folders and file.unlisted else ():
        is_near = posixpath.dirname(path) in folders and has_image_name(path)
        if is_near and path not in entries and (image := annotated(path)) is not None:
            found[path] = Entry(path, file.name, file.version, image, b"[]", split=split)
    return found


class PerImageAnnotationSource(AnnotatedSource):
    """A source with an annotation file for each image."""

    def _list_images(self, index: FileIndex) -> ListedImages:
        suffix = self.box_format.suffix
        layout = _Layout(index, suffix)
        entries: dict[str, Entry] = {}
        contents = Contents()
        foreign: list[str] = []
        documents = self._documents(layout.documents)
        other = sorted({*layout.documents}.difference(documents))
        index.account.leave(Reason.OTHER_TASK, other, "annotation file", "of upright boxes skipped")
        listed: list[Entry] = []
        for document in documents:
            try:
                entry = self._read(index, document, contents)
            except RecordsmithError as error:
                entry = _failed(document, index.version_of(document), error)
            if entry is None:
                foreign.append(document)
            else:
                listed.append(entry)
        _find_images(index, layout, listed, suffix)
        left_out = [entry.annotation for entry in listed if not entry.image]
        for entry in listed:
            if entry.image:
                _add(entries, entry)
        _check_faults(entries.values(), len(documents))
        what = "of images that are left out skipped"
        index.account.leave(Reason.REQUESTED, left_out, "annotation file", what)
        if lists := self._lists(index, layout.base, entries.values()):
            entries, notices = _with_lists(index, layout, entries, lists)
            of_splits = {path for paths in lists.values() for path in paths}
            index.account.read(Role.LIST, of_splits)
        else:
            for name, split in splits_by_folder(entries).items():
                entries[name].split = split
            used = {entry.image for entry in entries.values()}
            what = "without an annotation file skipped"
            self._leave_unannotated(index, layout.image_paths, used, what)
            notices = []
        left_out_notice(len(left_out), "annotated image", entries, index)  # the account has it
        if not entries:
            raise no_files(index.root, self.box_format.expected, index)
        other = [path for path in index.paths if _is_list(layout.base, path)]
        unused = [path for path in other if path not in index.account]
        index.account.leave(Reason.OTHER_TASK, unused, "list", "skipped")
        foreign = [path for path in foreign if path not in index.account]
        index.account.leave(Reason.OTHER_FILE, foreign, "data file")
        index.account.leave(Reason.OTHER_TASK, layout.masks, "segmentation mask", "skipped")
        classes, more = self._all_classes(index, (), contents)
        return ListedImages(entries, classes, [*notices, *more], contents=contents)

    def _documents(self, documents: list[str]) -> list[str]:
        """Those to read: others may be of the same images."""
        return documents

    def _lists(self, index: FileIndex, base: str, entries: Iterable[Entry]) -> dict[str, list[str]]:
        """The lists of the images of each split; empty without any."""
        return _find_lists(index, base, entries)

    def _read(self, index: FileIndex, document: str, contents: Contents) -> Entry | None:
        """The entry of an annotation file, whose image is not known; None for other files."""
        version = index.version_of(document)
        with_outlines = self._masks is not None
        file = AnnotationFile(
            index.root / document, document, version, with_outlines, class_from=self._class_from
        )
        image = next(iter(self.box_format.images(file)), None)
        return None if image is None else make_entry(file, image, contents)


def _failed(document: str, version: int, error: RecordsmithError) -> Entry:
    fault = Fault(str(error))
    if isinstance(error, SourceError):
        fault = Fault(error.problem, error.path, error.line, error.remedy)
    return Entry(document, document, version, fault=fault)


def _check_faults(entries: Iterable[Entry], file_count: int) -> None:
    """Raise one error where most annotation files need the same remedy."""
    by_remedy: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.fault is not None and entry.fault.remedy:
            by_remedy.setdefault(entry.fault.remedy, []).append(entry)
    for remedy, failed in by_remedy.items():
        if len(failed) > 1 and 2 * len(failed) > file_count:
            first, paths = failed[0].fault or Fault(""), [entry.annotation for entry in failed]
            raise SourceError(
                f"{first.problem}; the same is wrong in {count(len(paths), 'annotation file')}: "
                f"{join_names(paths)}",
                paths,
                path=first.path,
                line=first.line,
                remedy=remedy,
            )


class _Layout:
    """The folders of annotations, images and lists; paths end in `/` or are empty."""

    def __init__(self, index: FileIndex, suffix: str) -> None:
        self.base = _base(index)
        inside = [path for path in index.paths if path.startswith(self.base)]
        below = [p[len(self.base) :] for p in index.all_paths if p.startswith(self.base)]
        folders = sorted({path.split("/")[0] for path in below if "/" in path})
        documents = [path for path in inside if path.lower().endswith(suffix)]
        named = (f"{self.base}{n}/" for n in folders if n.lower() in _ANNOTATION_FOLDERS)
        self.annotations = next(
            (folder for folder in named if any(path.startswith(folder) for path in documents)),
            self.base,
        )
        by_lower = {name.lower(): name for name in folders}
        images = [by_lower[name] for name in IMAGE_FOLDERS if name in by_lower]
        has_own = self.annotations != self.base and bool(images)
        self.images = f"{self.base}{images[0]}/" if has_own else self.base
        self.documents = [path for path in documents if path.startswith(self.annotations)]
        pixels = [path for path in inside if has_image_name(path)]
        self.masks = [p for p in pixels if not _MASK_FOLDERS.isdisjoint(p.lower().split("/"))]
        masks = {*self.masks}
        self.image_paths = [p for p in pixels if p.startswith(self.images) and p not in masks]

    def folders_for(self, document: str) -> list[str]:
        """Where to look for the image of an annotation file, best first."""
        mirrored = self.images + posixpath.dirname(document[len(self.annotations) :])
        folder = posixpath.dirname(document)
        images = _LABELS.sub(r"\1image\2", folder)  # label_2/ of KITTI and image_2/
        candidates = (mirrored, images, folder, self.images, self.base)
        return list(dict.fromkeys(folder.rstrip("/") for folder in candidates))


def _base(index: FileIndex) -> str:
    """The folder of the dataset: the root, or the only dataset below it, VOCdevkit/VOC2012/."""
    bases = {
        path[: match.start()]
        for path in index.paths
        if (match := _ANNOTATIONS.search(path)) and path.endswith(".xml")
    }
    above = {posixpath.dirname(base[:-1]) for base in bases}
    splits = folder_splits(posixpath.basename(base[:-1]) for base in bases)
    if len(above) == 1 and len(splits) == len(bases) > 1:  # train/Annotations/, val/Annotations/
        return posixpath.join(*above, "") if above != {""} else ""
    if len(bases) > 1 and "" not in bases:
        paths = join_names(sorted(str(index.root / base[:-1]) for base in bases), "or")
        raise SourceError(
            f"the folder contains {len(bases)} datasets, each with its own Annotations/",
            path=index.root,
            remedy=f"Pack {paths}.",
        )
    return bases.pop() if len(bases) == 1 else ""


def _find_images(index: FileIndex, layout: _Layout, entries: Sequence[Entry], suffix: str) -> None:
    """Find the images by the names of the annotation files, else by the names in them.

    Those that are left out get an empty path.
    """
    of_folders: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.fault is None:
            of_folders.setdefault(posixpath.dirname(entry.annotation), []).append(entry)
    for its in of_folders.values():
        folders = layout.folders_for(its[0].annotation)
        found = [_find_image(index, folders, entry, suffix) for entry in its]
        matches = without_namesakes(index, found, folders)
        for entry, (name, _), match in zip(its, found, matches, strict=True):
            _place_image(entry, name, match)


def _find_image(
    index: FileIndex, folders: list[str], entry: Entry, suffix: str
) -> tuple[str, Match]:
    """What is found for the image of an annotation file, and the name that it is found by."""
    document, filename = entry.annotation, entry.annotated.file_name
    stem = stem_of(document)
    candidates: list[str] = []
    names = (filename, stem) if _is_own(filename, stem) else (stem, filename)
    for name in filter(None, names):
        match = index.find_image(name, folders, document)
        if isinstance(match, list):
            candidates = candidates or match
        elif not match.path.lower().endswith(suffix):
            return name, match
    return filename or stem, candidates


def _is_own(filename: str, stem: str) -> bool:
    """Whether an image has the name of its annotation file."""
    own_stem = stem_of(with_slashes(filename))
    return own_stem == stem or name_key(own_stem) == name_key(stem)


def _place_image(entry: Entry, name: str, match: Match) -> None:
    """Give an entry its image, which was found by a name; else a fault, or an empty path."""
    document, filename = entry.annotation, entry.annotated.file_name
    entry.annotated = entry.annotated._replace(file_name="")
    if isinstance(match, LeftOut):
        entry.image = ""
    elif isinstance(match, Found):
        entry.image = match.path
        if name == filename or match.change == FOUND_OUTSIDE:
            entry.notes += path_notes(match, name, document)
        if filename and not _is_own(filename, stem_of(document)):
            entry.notes += path_notes(Found(match.path, _OTHER_NAME), filename, document)
    else:
        entry.fault = Fault(
            not_found(match, name),
            document,
            remedy=entry.annotated.remedy,
            check=Check.ANNOTATION_WITHOUT_IMAGE,
        )


def _add(entries: dict[str, Entry], entry: Entry) -> None:
    """Add an entry; a second one for an image is a fault."""
    if entry.fault is not None:
        entries[entry.annotation] = entry
        return
    earlier = entries.setdefault(entry.image, entry)
    if earlier is not entry:
        stem = stem_of(entry.image)
        if stem_of(entry.annotation) == stem != stem_of(earlier.annotation):  # the better match
            entries[entry.image], earlier, entry = entry, entry, earlier
        problem = f"image {entry.image} already has the annotations {earlier.annotation}"
        folder, remedy = posixpath.dirname(entry.annotation), ""
        if folder != posixpath.dirname(earlier.annotation):
            remedy = f"Leave one of the folders out, such as {option('leave_out', folder)}."
        entry.image, entry.fault = entry.annotation, Fault(problem, entry.annotation, remedy=remedy)
        entries[entry.annotation] = entry


def _find_lists(index: FileIndex, base: str, entries: Iterable[Entry]) -> dict[str, list[str]]:
    """The lists of each split; those of one class (aeroplane_train.txt) only without others."""
    for folder in ("imagesets/main", "imagesets"):
        paths = _files_in(index, base + folder)
        if lists := split_lists(paths):
            return {split: [path] for split, path in lists.items()}
        if lists_of_classes := _lists_of_classes(paths):
            return lists_of_classes
    lists = split_lists(_files_in(index, base.rstrip("/")))
    stems = {stem_of(entry.annotation) for entry in entries} if lists else set()
    return {split: [path] for split, path in lists.items() if _lists_any(index, path, stems)}


def _files_in(index: FileIndex, folder: str) -> list[str]:
    known = folder.lower()
    return [path for path in index.paths if posixpath.dirname(path).lower() == known]


def _lists_any(index: FileIndex, path: str, stems: Collection[str]) -> bool:
    """Whether a file is empty, or lists an image that has an annotation file."""
    lines = read_lines(index.root / path)
    return not lines or any(stem_of(text.split(maxsplit=1)[0]) in stems for _, text in lines)


def _lists_of_classes(paths: Sequence[str]) -> dict[str, list[str]]:
    """The lists of one class each, such as aeroplane_train.txt, of each split."""
    stems: dict[str, list[str]] = {}
    for path in paths:
        split = stem_of(path).rpartition("_")[2]
        if path.lower().endswith(".txt") and is_split_name(split):
            stems.setdefault(split, []).append(path)
    known = split_lists(f"{split}.txt" for split in stems)
    return {split: stems[split] for split in known}


def _is_list(base: str, path: str) -> bool:
    """Whether a file is one of the lists of PASCAL VOC, also of its other tasks."""
    lower = path[len(base) :].lower()
    return path.startswith(base) and lower.startswith("imagesets/") and lower.endswith(".txt")


def _with_lists(
    index: FileIndex,
    layout: _Layout,
    annotated: Mapping[str, Entry],
    lists: Mapping[str, Sequence[str]],
) -> tuple[dict[str, Entry], list[str]]:
    """The entries in the lists, and notices."""
    by_stem: dict[str, str] = {}
    for name, entry in annotated.items():
        by_stem.setdefault(stem_of(entry.annotation), name)
        by_stem.setdefault(stem_of(name), name)
    entries: dict[str, Entry] = {}
    twice: list[str] = []
    folders = [layout.images.rstrip("/"), layout.base.rstrip("/")]
    left_out: set[str] = set()
    lines = {
        path: [
            (line, text if stem_of(text) in by_stem else _MARK.sub("", text))
            for line, text in read_lines(index.root / path)
        ]
        for paths in lists.values()
        for path in paths
    }
    empty = [path for path, listed in lines.items() if not listed]
    if len(empty) == len(lines):
        raise SourceError(
            f"the lists of splits are empty: {join_names(empty)}",
            path=index.root,
            remedy="Remove them to pack all images, or list the names of images in them.",
        )
    for split, path in ((split, path) for split, paths in lists.items() for path in paths):
        known: dict[int, str] = {}
        for line, text in lines[path]:
            first = text.split(maxsplit=1)[0]
            stems = (posixpath.basename(text), stem_of(text), first, stem_of(first))
            if stem := next((stem for stem in stems if stem in by_stem), None):
                known[line] = by_stem[stem]
        other = [(line, text) for line, text in lines[path] if line not in known]
        images = [(stem_of(name), Found(name)) for name in known.values() if has_image_name(name)]
        listed = listed_entries(index, other, folders, path, images)
        for line, text in lines[path]:
            name = known.get(line, "")
            item = annotated.get(name) or listed[line]
            if item is None:
                left_out.add(text)
                continue
            if not name:
                item.notes = ()  # names in lists have no suffixes
                name = posixpath.join(folders[0], text) if item.fault else item.image
            if name not in entries:
                item.split = split
                entries[name] = item
            elif entries[name].split != split:
                twice.append(f"{name} in {entries[name].split} and {split}")
    left = sorted({*annotated, *layout.image_paths} - entries.keys())
    what = "missing from the lists skipped"
    index.account.leave(Reason.UNLISTED, left, "image", what)
    files = {annotated[name].annotation for name in left if name in annotated} - {*left, ""}
    index.account.leave(Reason.UNLISTED, sorted(files), "annotation file", what)
    return entries, [
        *left_out_notice(len(left_out), "listed image", entries, index),
        *count_notice(empty, "list of a split", "without images", "lists of splits"),
        *count_notice(twice, "image", "in two splits packed in the first"),
    ]
