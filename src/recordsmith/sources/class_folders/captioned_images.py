"""Images with a text file of the same name next to each, whose lines are its captions."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recordsmith.format.example import Kind
from recordsmith.format.example.keys import CAPTION
from recordsmith.sources.class_folders.image_folder import ImageReader
from recordsmith.sources.classes import classes_in_names, compile_pattern
from recordsmith.sources.files.account import Reason, Role
from recordsmith.sources.files.caption_files import CAPTION_SUFFIXES
from recordsmith.sources.files.file_index import FileIndex, no_files
from recordsmith.sources.files.file_tree import TreeSource
from recordsmith.sources.files.images import has_image_name, without_suffix
from recordsmith.sources.files.known_names import is_document
from recordsmith.sources.files.name_files import read_lines
from recordsmith.sources.files.paths import common_version, referenced
from recordsmith.sources.files.text_file import check_encoding
from recordsmith.sources.flaws import Check
from recordsmith.sources.numbered import collect
from recordsmith.sources.problems import count_notice
from recordsmith.sources.samples import Note, Sample, ignore_note
from recordsmith.sources.source import Listing
from recordsmith.sources.splits import is_like_split, only_split, sort_splits, splits_by_folder
from recordsmith.stores import PlaceLike, as_folder
from recordsmith.support.errors import option


@dataclass(frozen=True)
class CaptionedReader(ImageReader):
    """Reads image files with their captions, from the text files in the reference."""

    encoding: str = "utf-8"

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        captions = [
            text.encode()
            for path in (sample.reference or {}).get("captions", ())
            for _, text in read_lines(referenced(self.root, path), path, self.encoding)
        ]
        return {**super().read(sample, note), CAPTION: captions}

    def kinds(self) -> Mapping[str, Kind]:
        return {CAPTION: "bytes"}


class CaptionedImages(TreeSource):
    """Images with their captions in text files next to them: `a.txt` or `a.caption` for `a.jpg`.

    Each sample has the image features of `ImageFiles` and `image/caption`: each line of the file
    that is not blank, or nothing without a file. Folders named like splits are splits. Folders in
    which no image has a text file are left out.

    Example:
        rs.pack(rs.CaptionedImages("portraits"), "packed")
    """

    def __init__(
        self, root: PlaceLike, *, class_pattern: str | None = None, encoding: str = "utf-8"
    ) -> None:
        """
        Args:
            root: the folder of images and text files.
            class_pattern: as in `ImageFiles`; `([^/]+)/[^/]+$` takes the class from the folder.
            encoding: of the text files.

        Raises:
            OptionError: the pattern is not a regular expression; the encoding is unknown.
        """
        self.root = as_folder(root)
        self._pattern = compile_pattern(class_pattern, "class_pattern")
        self._encoding = check_encoding(encoding)

    def list_samples(self) -> Listing:
        """Find all images with their text files, sorted by path.

        Raises:
            SourceError: no image has a text file, or some have no class.
            FileAccessError: a folder cannot be read.
        """
        index = FileIndex(self._take_tree(self.root))
        account = index.account
        paths = [path for path in index.paths if path.lower().endswith(CAPTION_SUFFIXES)]
        texts = {posixpath.splitext(path)[0]: path for path in paths}
        images = [path for path in index.paths if has_image_name(path)]
        named = {image: texts.get(without_suffix(image), texts.get(image)) for image in images}
        text_of = {image: text for image, text in named.items() if text is not None}
        if not text_of:
            expected = "images with a .txt or .caption file of the same name next to each"
            raise no_files(index.root, expected, index)
        folders = {*map(posixpath.dirname, text_of)}
        read = [image for image in images if posixpath.dirname(image) in folders]
        account.read(Role.IMAGE, read)
        account.read(Role.CAPTIONS, dict.fromkeys(text_of.values()))
        others = [path for path in texts.values() if posixpath.dirname(path) in folders]
        alone = sorted(path for path in account.others(others) if not is_document(path))
        check = Check.ANNOTATION_WITHOUT_IMAGE
        account.leave(Reason.NO_IMAGE, alone, "text file", "without an image skipped", check)
        what, check = "in folders without captions skipped", Check.IMAGE_WITHOUT_ANNOTATION
        account.leave(Reason.NO_ANNOTATION, account.others(images), "image", what, check)
        for path in account.others(index.paths):
            account.leave_other(path)
        splits = splits_by_folder(read)
        names = sort_splits(splits.values())
        listed = collect(
            Sample(
                image,
                sum(index.size_and_version(path)[0] for path in paths),
                split=splits.get(image) if len(names) > 1 else None,
                version=common_version(map(index.version_of, paths)),
                reference={"captions": paths[1:]},
            )
            for image in read
            for paths in [[image, *filter(None, [named[image]])]]
        )
        classes: tuple[str, ...] | None = None
        if self._pattern is not None:
            listed.labels, classes = classes_in_names(self._pattern, listed.names, self.root)
        notices: list[str] = []
        last = {posixpath.basename(folder) for folder in folders}
        if self._pattern is None and len(last) > 1 and not all(map(is_like_split, last)):
            way = option("class_pattern", "([^/]+)/[^/]+$")
            notices.append(f"folders are not read as classes; if they are, pass {way}")
        bare = [image for image in read if image not in text_of]
        what = "without a text file packed without captions"
        return Listing(
            listed,
            CaptionedReader(self.root, classes, self._encoding),
            classes,
            [*notices, *count_notice(bare, "image", what, check=check)],
            names if len(names) > 1 else (),
            only_split(names[:1], self.root),
        ).with_account(index.tree.finish(account))

    def describe(self) -> Mapping[str, Any]:
        pattern = self._pattern and self._pattern.pattern
        return {**super().describe(), "class_pattern": pattern, "encoding": self._encoding}
