"""Checks that the servers and files which a runner needs can be reached.

They are made before anything is read or written. Without them, Beam would wait for a missing server for
minutes, or fail only after it has prepared and sent the job.
"""

import os
import re
import shutil
import socket
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from bertdata.errors import SettingsError

_SERVERS = ("flink_master", "spark_master_url")
"""Beam's flags that name the server of a cluster, as HOST:PORT or as a URL."""

_ADDRESS = re.compile(r"(?:\w+://)?(?P<host>[^\s:/\[\]]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})/?")
_SECONDS = 10
_IN_PROCESS = "embed"
"""Value of Beam's flag --job_endpoint that asks for a job server inside this process."""

_PORTS = {"http": 80, "https": 443}


def check_servers(name: str, options: Any) -> None:
    """Raise SettingsError if a server that the runner needs does not answer or cannot be started.

    name: name of a runner with a job server, in lower case.
    options: Beam's parsed options.
    """
    given = options.get_all_options()
    for flag in _SERVERS:
        address = _ADDRESS.fullmatch(str(given.get(flag) or ""))
        if address is not None:  # Otherwise the value is a word such as [local], which names no server.
            _check_server(f"--{flag} {given[flag]}", address["host"].strip("[]"), int(address["port"]))
    endpoint = given["job_endpoint"]
    if endpoint:
        if endpoint != _IN_PROCESS:
            _check_job_server(endpoint)
    elif name == "portablerunner":
        raise SettingsError("PortableRunner needs --job_endpoint HOST:PORT, the address of a job server")
    else:
        _check_job_server_program(name, options)


def _check_server(flag: str, host: str, port: int) -> None:
    """Raise SettingsError if no server accepts connections at this host and port.

    flag: the flag with its value, for the error message.
    """
    try:
        socket.create_connection((host, port), _SECONDS).close()
    except (OSError, OverflowError) as error:
        raise SettingsError(f"{flag}: no server answers there ({error}); start it, or name another") from None


def _check_job_server(endpoint: str) -> None:
    """Raise SettingsError if no job server answers gRPC requests at this address."""
    import grpc

    flag = f"--job_endpoint {endpoint}"
    address = _ADDRESS.fullmatch(endpoint)
    # This comes first, because gRPC would keep trying until the time limit and then could not say what is
    # wrong.
    if address is not None:
        _check_server(flag, address["host"].strip("[]"), int(address["port"]))
    channel = grpc.insecure_channel(endpoint)
    try:
        grpc.channel_ready_future(channel).result(timeout=_SECONDS)
    except grpc.FutureTimeoutError:
        raise SettingsError(
            f"{flag}: no job server answers there within {_SECONDS} s; expected HOST:PORT of a running one"
        ) from None
    finally:
        channel.close()


def _check_job_server_program(name: str, options: Any) -> None:
    """Raise SettingsError if the runner's job server cannot be started on this machine.

    It needs Java and the server's jar file, which Beam downloads if its address answers.
    """
    from apache_beam.options.pipeline_options import JobServerOptions

    remedy = "; or start a job server and give its --job_endpoint HOST:PORT"
    server = _make_job_server(name, options)
    flag = f"--{name.removesuffix('runner')}_job_server_jar"
    own = server._jar
    if own and not urlsplit(own).scheme and not os.path.exists(own):
        raise SettingsError(f"{flag} {own}: no such file{remedy}")
    source = own
    try:
        source = server.path_to_jar()
        url = urlsplit(source)
        is_cached = os.path.exists(os.path.join(_find_cache(server), os.path.basename(source)))
        if url.scheme in _PORTS and url.hostname and not is_cached:
            # Try the connection first, because Beam's download would wait forever for a host that does not
            # answer.
            socket.create_connection((url.hostname, url.port or _PORTS[url.scheme]), _SECONDS).close()
        server.local_jar(source, server._jar_cache_dir)
    except (OSError, RuntimeError, ValueError, HTTPException) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise SettingsError(
            f"{flag}: the jar of the job server cannot be fetched{f' from {source}' if source else ''} "
            f"({reason}); give its file{remedy}"
        ) from None
    submits = any(options.get_all_options()[f"{one}_submit_uber_jar"] for one in ("flink", "spark"))
    java = options.view_as(JobServerOptions).job_server_java_launcher
    if not submits and shutil.which(java) is None:
        raise SettingsError(
            f"--job_server_java_launcher {java}: no such program, which runs the job server's jar; install "
            f"Java 11 or later{remedy}"
        )


def _make_job_server(name: str, options: Any) -> Any:
    """Return the Beam object that can start the runner's job server."""
    from apache_beam.runners.portability.flink_runner import FlinkJarJobServer
    from apache_beam.runners.portability.spark_runner import SparkJarJobServer

    return (FlinkJarJobServer if name == "flinkrunner" else SparkJarJobServer)(options)


def _find_cache(server: Any) -> str:
    """Return the directory in which Beam keeps the jar files that it has downloaded."""
    from apache_beam.utils.subprocess_server import JavaJarServer

    return str(server._jar_cache_dir or JavaJarServer.JAR_CACHE)
