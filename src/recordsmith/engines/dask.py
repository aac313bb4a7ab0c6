"""A Dask cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

from recordsmith.engines.reachable import check_reachable
from recordsmith.engines.worker import run_text
from recordsmith.errors import MissingExtraError, OptionError
from recordsmith.tasks import Document, failed_error, lost_error

try:
    from distributed import Client, KilledWorker, as_completed
except ImportError as _error:
    raise MissingExtraError("dask", _error.name or "distributed") from None

_FEWEST_AT_ONCE = 8  # tasks that are submitted before any worker has come


class Dask:
    """Runs tasks on the workers of a Dask cluster.

    A task whose worker is killed runs again on another one; Dask's setting
    `distributed.scheduler.allowed-failures` is how often.

    Example:
        with Client("tcp://scheduler:8786") as client:
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

    def map(
        self, function: Callable[[Document], Document], tasks: Iterable[Document]
    ) -> Iterator[Document]:
        """Yield the result of each task as it completes, as `Engine.map`."""
        rest = iter(tasks)
        with ExitStack() as stack:
            client = self._client
            if isinstance(client, str):
                client = stack.enter_context(_connect(client))
            running: dict[Any, Document] = {}
            stack.callback(lambda: client.cancel(list(running)))
            completed = as_completed(loop=client.loop)
            while True:
                most = max(_FEWEST_AT_ONCE, 2 * sum(client.nthreads().values()))
                while len(running) < most and (task := next(rest, None)) is not None:
                    future = client.submit(run_text, function, json.dumps(task), pure=False)
                    running[future] = task
                    completed.add(future)
                if not running:
                    return
                future = next(completed)
                task = running.pop(future)
                try:
                    result: str = future.result()
                except KilledWorker:
                    raise lost_error(task) from None
                except Exception as error:
                    raise failed_error(task, error) from error
                yield json.loads(result)


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
