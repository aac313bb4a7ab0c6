"""The viewer: any TFRecord files in a browser, without an import, by a server of this process.

`page` is what the browser loads: modules without a build step and without libraries.
"""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "access": "redirecting_file",
        "drawing.batch": "draw_batch",
        "drawing.report_page": "check_html_path save_html",
        "drawing.sheet": "draw_tiles sheet",
        "server": "view",
    },
)
