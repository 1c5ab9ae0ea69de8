"""A program that connects to targets, for a workspace or another pod."""

# Prints `HOST:PORT reached` or `HOST:PORT refused` for each argument.
CONNECT = """
import socket, sys
for target in sys.argv[1:]:
    host, port = target.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=3).close()
        print(target, "reached")
    except OSError:
        print(target, "refused")
"""
