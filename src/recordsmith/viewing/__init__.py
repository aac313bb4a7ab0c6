"""The viewer: any TFRecord files in a browser, without an import, by a server of this process."""

from __future__ import annotations

from recordsmith.viewing.server import Viewer, view
