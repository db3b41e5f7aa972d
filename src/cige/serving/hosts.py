"""Hosts: which addresses only this machine reaches, and which names a request may call the server by."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Collection, Iterable

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens on `host`, an address or a name."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        addresses = {str(info[4][0]) for info in socket.getaddrinfo(host, None)} if host else {"0.0.0.0"}
    except (OSError, UnicodeError):  # listening there fails too, and says why
        return False
    return all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in addresses)


def names_of(host: str, more: Iterable[str]) -> tuple[str, ...]:
    """The names by which requests may call a server that listens on `host`, and `more` names; empty allows any name.

    A page of another site can make its own name point to this machine (DNS rebinding), and its scripts would then be of
    the same origin as the server. So a server on a loopback address answers only to the names of this machine.
    """
    names = tuple(map(_as_compared, more))
    if not names and not is_loopback(host):
        return ()
    quoted = f"[{host}]" if ":" in host else host
    return tuple(dict.fromkeys((*LOOPBACK, quoted.lower(), *names)))


def is_called(headers: Iterable[tuple[bytes, bytes]], names: Collection[str]) -> bool:
    """Whether every Host header has one of these names, with any port."""
    given = (value.decode("latin-1") for name, value in headers if name.lower() == b"host")
    return not names or all(_as_compared(host) in names for host in given)


def _as_compared(host: str) -> str:
    """A name in lower case, without its port and without the dot that a full name may end with."""
    name = host.strip().lower()
    head, _, port = name.rpartition(":")
    has_port = port.isdigit() and (":" not in head or head.endswith("]"))  # a bare ::1 has none
    return (head if has_port and head else name).rstrip(".")
