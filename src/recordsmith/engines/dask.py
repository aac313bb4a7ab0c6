"""A Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

from recordsmith.engines.cluster import check_reachable, run_ahead
from recordsmith.support.errors import MissingExtraError, OptionError
from recordsmith.support.tasks import Outcome, Task, failed_error, lost_error

try:
    from distributed import Client, KilledWorker, as_completed
except ImportError as _error:
    raise MissingExtraError("dask", _error.name or "distributed") from None

_MIN_AT_ONCE = 8  # tasks that are submitted before any worker has come


class Dask:
    """Runs tasks on the workers of a Dask cluster.

    A task whose worker is killed runs again on another one; Dask's setting
    `distributed.scheduler.allowed-failures` is how often.

    Example:
        from distributed import Client

        with Client(n_workers=2) as client:  # or the address of a scheduler
            rs.pack(rs.ImageFolder("flowers"), "out", engine=rs.engines.Dask(client))
    """

    def __init__(self, client: Client | str | None = None) -> None:
        """Choose the cluster.

        Args:
            client: a distributed.Client or the address of a scheduler; None for the current client.

        Raises:
            OptionError: it is neither, or there is no current client.
        """
        if client is None:
            try:
                client = Client.current()
            except ValueError:
                raise OptionError(
                    "there is no current Dask client",
                    option="client",
                    remedy="Create a distributed.Client, or pass the address of a scheduler.",
                ) from None
        if not isinstance(client, (Client, str)):
            raise OptionError(
                option="client", value=client, expected="a distributed.Client or an address"
            )
        self._client = client

    def __repr__(self) -> str:
        client = self._client
        address = client if isinstance(client, str) else client.scheduler.address
        return f"Dask({address!r})"

    @classmethod
    def parse(cls, address: str) -> Dask:
        """Make it from the text of an option: the address of a scheduler."""
        if not address:
            raise OptionError(
                option="engine",
                value="dask",
                expected="the address of a scheduler, as in dask:tcp://10.0.0.1:8786",
            )
        return cls(address)

    def map(self, function: Callable[[Task], Outcome], tasks: Iterable[Task]) -> Iterator[Outcome]:
        """Yield the outcome of each task as it completes, as `Engine.map`."""
        with ExitStack() as stack:
            client = self._client
            if isinstance(client, str):
                client = stack.enter_context(_connect(client))
            completed = as_completed(loop=client.loop)

            def submit(task: Task) -> Any:
                future = client.submit(function, task, pure=False)
                completed.add(future)
                return future

            yield from run_ahead(
                tasks,
                lambda: max(_MIN_AT_ONCE, 2 * sum(client.nthreads().values())),
                submit,
                lambda _: [next(completed)],
                _outcome,
                lambda running: client.cancel(list(running)),
            )


def _outcome(future: Any, task: Task) -> Outcome:
    try:
        outcome: Outcome = future.result()
    except KilledWorker:
        raise lost_error(task) from None
    except Exception as error:
        raise failed_error(task, error) from error
    return outcome


def _connect(address: str) -> Client:
    if address.partition("://")[0] in (address, "tcp", "tls"):
        check_reachable("dask", address)
    try:
        return Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise OptionError(
            f"no Dask scheduler responds: {error}",
            option="engine",
            value=address,
            expected="an address such as tcp://10.0.0.1:8786",
        ) from None
