"""One Spark application for all tests, on a cluster with two workers."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

_UNTIL_CLOSED = '"$0" "$@" & child=$!; read line; kill $child'
"""A process ends when its input is closed, so also when the tests are killed."""


@pytest.fixture(scope="session")
def spark(servers: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session whose processes have the credentials of the tests' S3 in their environment.

    Slow tasks are run again on the other worker at the same time.
    """
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.minTaskRuntime": "3s",
        "spark.speculation.multiplier": "2",
        "spark.speculation.quantile": "0.5",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        for name, value in _s3_variables(servers).items():
            patch.setenv(name, value)
        master = stack.enter_context(_cluster(tmp_path_factory.mktemp("workers")))
        builder = SparkSession.builder.master(master).appName("recordsmith")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@contextmanager
def _cluster(folder: Path) -> Iterator[str]:
    """Start a master and two workers; yield the address.

    The workers have addresses of their own, as Spark runs no copy of a task on the same host.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"spark://127.0.0.1:{port}"
    kinds = [["master.Master", "--host", "127.0.0.1", "--port", str(port)]]
    kinds += [
        ["worker.Worker", "--host", f"127.0.0.{number}", "--cores", "1", "--memory", "1g",
         "--work-dir", str(folder / str(number)), address]
        for number in (2, 3)
    ]  # fmt: skip
    import pyspark

    home = Path(pyspark.__file__).parent
    processes = []
    try:
        for kind, *options in kinds:
            program = [str(home / "bin/spark-class"), f"org.apache.spark.deploy.{kind}"]
            command = ["sh", "-c", _UNTIL_CLOSED, *program, "--webui-port", "0", *options]
            environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_NO_DAEMONIZE": "1"}
            processes.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=environment,
                )
            )
        yield address
    finally:
        for process in reversed(processes):
            process.communicate()


def _s3_variables(servers: Any) -> dict[str, str]:
    if any(importlib.util.find_spec(name) is None for name in ("moto", "obstore")):
        return {}
    return servers["s3"].variables("spark")
