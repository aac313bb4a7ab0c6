"""Workers with another version of recordsmith: what Python runs when it starts with a folder in
PYTHONPATH.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

_ANOTHER_RESULT = """
import recordsmith.tasks

def run_task(task):
    return {"written": task.name}

import importlib
for module in recordsmith.tasks._JOBS.values():
    importlib.import_module(module).run_task = run_task
"""

OTHER_VERSIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "an older protocol": (
        "import recordsmith.tasks\nrecordsmith.tasks.VERSION = 0",
        {"option": "task"},
    ),
    "without engines": (
        "import sys\nsys.modules['recordsmith.tasks'] = None",
        {"match": "tfrecord"},
    ),
    "with other results": (_ANOTHER_RESULT, {"option": "results"}),
}
"""What the workers run when they start, and fields of the error."""


def other_version(name: str, folder: Path) -> dict[str, Any]:
    """Write the folder for PYTHONPATH; return the fields of the error."""
    program, fields = OTHER_VERSIONS[name]
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(program)
    return fields
