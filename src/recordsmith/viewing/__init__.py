"""The viewer: any TFRecord files in a browser, without an import, by a server of this process."""

from __future__ import annotations

import os
from collections.abc import Sequence

from recordsmith.dataset import Dataset
from recordsmith.dataset.locate import Paths
from recordsmith.viewing.server import Viewer

__all__ = ["Viewer", "view"]


def view(
    paths_or_dataset: Paths | Dataset,
    split: str | None = None,
    *,
    where: str | None = None,
    at: int | Sequence[int] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
    allow_host: str | Sequence[str] = (),
) -> Viewer:
    """View records in a browser: a gallery, each record, statistics. Needs the extra `view`.

    Serves a page from a thread of this process, only for this machine and only with the token in
    its address. In a notebook, the result is shown as a frame. Reads what is on the screen.

    Args:
        paths_or_dataset: a file, folder, glob, or a list of these; or a Dataset, such as a slice.
        split: only this split, or part of one: train, train[:80%]. None for all.
        where: show only records that match, as in `Dataset.filter`.
        at: show the record at this position; several positions are the only records.
        host: the address to listen on; one that other machines can reach needs a token.
        port: the port; 0 for a free one.
        token: the secret in the address: at least 16 letters and digits. None for that of
            `token_file`, of the variable RECORDSMITH_VIEW_TOKEN, or a random one.
        token_file: a file with the token, instead of the variable RECORDSMITH_VIEW_TOKEN; no
            other user may read it.
        allow_host: names and ports by which a proxy reaches the viewer, such as
            "hub.example.org:8000".

    Returns:
        The running viewer, with its `url`; `close` ends it.

    Raises:
        OptionError: the address cannot be used, or an argument is invalid.
        FileAccessError: a path does not exist or cannot be read, or other users may read
            `token_file`.
        CorruptDataError: no record can be read.

    Example:
        viewer = rs.view("out")
        print(viewer.url)
        viewer.close()
    """
    return Viewer(
        paths_or_dataset,
        split,
        where or "",
        at,
        host,
        port,
        token,
        token_file,
        [allow_host] if isinstance(allow_host, str) else allow_host,
    )
