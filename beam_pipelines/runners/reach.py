"""Whether the servers of a portable runner answer, asked before a run: Beam would wait for them for ever."""

import re
import socket
from typing import Any

from bertdata.errors import SettingsError

_SERVERS = ("job_endpoint", "flink_master", "spark_master_url")
"""Beam's flags that name a server, as HOST:PORT or as a URL of it."""

_ADDRESS = re.compile(r"(?:\w+://)?(?P<host>[^\s:/\[\]]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})/?")
_SECONDS = 10


def check_servers(options: Any) -> None:
    """SettingsError for a server that a flag of Beam's names and that does not answer."""
    given = options.get_all_options()
    for name in _SERVERS:
        address = _ADDRESS.fullmatch(str(given.get(name) or ""))
        if address is not None:  # else a word such as [local], which Beam knows
            _check_server(f"--{name} {given[name]}", address["host"].strip("[]"), int(address["port"]))


def _check_server(flag: str, host: str, port: int) -> None:
    try:
        socket.create_connection((host, port), _SECONDS).close()
    except (OSError, OverflowError) as error:
        raise SettingsError(f"{flag}: no server answers there ({error}); start it, or name another") from None
