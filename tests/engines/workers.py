"""Workers with another version of recordsmith: what Python runs when it starts with a folder in
PYTHONPATH.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

OTHER_VERSIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "an older protocol": (
        "import recordsmith.support.tasks\nrecordsmith.support.tasks.VERSION = 0",
        {"option": "task"},
    ),
    "without engines": (
        "import recordsmith.support.tasks, sys\nsys.modules['recordsmith.support.tasks'] = None",
        {"match": "tfrecord"},
    ),
    "without a name": (
        "import recordsmith.support.tasks\ndel recordsmith.support.tasks.run_task",
        {"match": "tfrecord.*same version"},
    ),
}
"""What the workers run when they start, and fields of the error."""


def other_version(name: str, folder: Path) -> dict[str, Any]:
    """Write the folder for PYTHONPATH; return the fields of the error."""
    program, fields = OTHER_VERSIONS[name]
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(program)
    return fields
