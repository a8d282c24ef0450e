"""Addresses of Ray clusters, checked without importing Ray."""

import socket

from ckcv_ray.errors import InputError

REACH_SECONDS = 5.0


def reach(address: str) -> None:
    """Raise InputError if no Ray cluster answers at an address; ray.init would try for a minute."""
    if address.startswith("ray://"):
        raise InputError(
            f"address={address!r}: run on a machine of the cluster, or as a job; Ray Client is not supported"
        )
    host, _, port = address.rpartition(":")
    if not (host and port.isascii() and port.isdigit()):
        if address == "auto":
            return
        raise InputError(f"address={address!r}: expected host:port, or auto for the cluster on this machine")
    try:
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:  # the last two for invalid host names and ports
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"no Ray cluster answers at {address}: {reason}") from None
