"""Runs a program inside the sandbox with a local address in front of a socket file: bytes in, bytes out.

This file is handed to the sandbox's own python3 as text; it imports nothing of ours and must run on Python 3.9.
"""

import os
import socket
import subprocess
import sys
import threading


def pump(source: socket.socket, target: socket.socket) -> None:
    """Copy until one side ends, then tell the other."""
    try:
        while True:
            data = source.recv(65536)
            if not data:
                break
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # One side has gone: close both, so that the other pump ends too.
        source.close()
        target.close()


def join(client: socket.socket, path: str) -> None:
    """One connection."""
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        door.connect(path)
    except OSError:
        client.close()
        return
    threading.Thread(target=pump, args=(client, door), daemon=True).start()
    pump(door, client)
    client.close()
    door.close()


def serve(listener: socket.socket, path: str) -> None:
    """All connections."""
    while True:
        client, _ = listener.accept()
        threading.Thread(target=join, args=(client, path), daemon=True).start()


def main() -> int:
    """Open the address, run the program, answer with its exit code."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    environment = dict(os.environ)
    path = environment.pop("ASSAY_SOCKET")
    environment["ANTHROPIC_BASE_URL"] = "http://127.0.0.1:%d" % listener.getsockname()[1]  # noqa: UP031
    threading.Thread(target=serve, args=(listener, path), daemon=True).start()
    return subprocess.run(sys.argv[1:], env=environment, check=False).returncode


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code if code >= 0 else 128 - code)
