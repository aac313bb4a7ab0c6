"""Each file of others through the server: the counts, and that every record is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs


def test_file(zoo_row: dict[str, Any], zoo: Path, open_viewer: Any) -> None:
    path = zoo / zoo_row["file"]
    if zoo_row["tf_error"] is not None or not zoo_row["records"]:
        with pytest.raises(rs.CorruptDataError):
            rs.view(path)
        return
    client = open_viewer(path)
    document = client.json("/api/dataset")
    assert client.poll("/api/view")["count"] == zoo_row["records"]
    assert document["payload"] == zoo_row["payload"]
    facets = client.poll("/api/facets")
    assert facets["scanned"] == zoo_row["records"] or not facets["facets"]
    tiles = client.tiles(count=8)
    assert len(tiles) == min(8, zoo_row["records"])
    for tile in tiles:
        # images that are damaged are described, and so is everything that is no image
        assert (tile["kind"] == "damage") == (tile["problem"] is not None)
        assert any(tile[name] for name in ("image", "text", "frames", "series", "problem"))
    records = rs.open(path).records()
    for position, payload in zip(range(3), records, strict=False):
        record = client.json(f"/api/record/{position}")
        assert (record["record"], record["size_bytes"]) == (position, len(payload))
        for image in record["images"][:3]:
            answer = client.get(f"/api/image/{position}", key=image["key"], index=image["index"])
            assert answer.status_code in (200, 422), answer.text
