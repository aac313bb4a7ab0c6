"""A Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from recordsmith.engines.cluster import check_reachable, run_ahead
from recordsmith.support.errors import OptionError, needs_extra
from recordsmith.support.tasks import Outcome, Task, failed_error, lost_error

with needs_extra("ray"):
    import ray
    from ray.exceptions import (
        NodeDiedError,
        ObjectLostError,
        OutOfMemoryError,
        RayError,
        WorkerCrashedError,
    )

_RETRIES = 3
_LOST = (NodeDiedError, ObjectLostError, OutOfMemoryError, WorkerCrashedError)


class Ray:
    """Runs tasks on a Ray cluster.

    A task whose worker or node is lost runs again, up to three times.

    Example:
        rs.pack(rs.ImageFolder("flowers"), "out", engine=rs.engines.Ray("auto"))
    """

    def __init__(self, address: str | None = None, *, num_cpus: float = 1, **options: Any) -> None:
        """Choose the cluster.

        Args:
            address: as in `ray.init`, if the process is not connected yet: `auto` for the cluster
                of this machine, or `ray://head:10001`; None: a new one on this machine, or what the
                variable RAY_ADDRESS names.
            num_cpus: the processors that Ray reserves for each task.
            options: of `ray.remote`, such as `resources={"packer": 1}`.

        Raises:
            OptionError: the address is not a text.
        """
        if address is not None and not isinstance(address, str):
            raise OptionError(
                option="address", value=address, expected="an address such as ray://head:10001"
            )
        self._address = address
        self._options = {"max_retries": _RETRIES, **options, "num_cpus": num_cpus}

    def __repr__(self) -> str:
        return f"Ray({self._address!r})"

    @classmethod
    def parse(cls, address: str) -> Ray:
        """Make it from the text of an option: the address of a cluster, or nothing."""
        return cls(address or None)

    def map(self, function: Callable[[Task], Outcome], tasks: Iterable[Task]) -> Iterator[Outcome]:
        """Yield the outcome of each task as it completes, as `Engine.map`."""
        if not ray.is_initialized():
            _connect(self._address)
        return run_ahead(
            tasks,
            lambda: 2 * max(1, int(ray.cluster_resources().get("CPU", 1))),
            ray.remote(**self._options)(function).remote,
            lambda running: ray.wait(list(running))[0],
            _outcome,
            lambda running: [ray.cancel(left, force=True) for left in running],
        )


def _outcome(future: Any, task: Task) -> Outcome:
    try:
        outcome: Outcome = ray.get(future)
    except _LOST:
        raise lost_error(task) from None
    except RayError as error:
        raise failed_error(task, error) from error
    return outcome


def _connect(address: str | None) -> None:
    if address is not None and ":" in address.removeprefix("ray://"):
        check_reachable("ray", address)
    try:
        ray.init(address, log_to_driver=False)
    except (ConnectionError, OSError, ValueError) as error:
        raise OptionError(
            f"Ray is not available: {error}",
            option="engine",
            value=address,
            expected="an address such as ray://head:10001, or auto",
        ) from None
