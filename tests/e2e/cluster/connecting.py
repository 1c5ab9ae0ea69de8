"""Programs that connect to targets, for a workspace or another pod."""

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

# Keeps connections open to each target, and sends nothing on them. The first argument is
# their number for each target. Prints `HOST:PORT NUMBER`, the connections that a server
# accepted, and ends when its standard input ends.
OCCUPY = """
import resource, selectors, socket, sys
number, *targets = sys.argv[1:]
number = int(number)
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
kept = []
for target in targets:
    host, port = target.rsplit(":", 1)
    opened = 0
    for _ in range(number):
        try:
            kept.append(socket.create_connection((host, int(port)), timeout=3))
            opened += 1
        except OSError:
            break
    print(target, opened, flush=True)
print("open", flush=True)
sys.stdin.read()
"""
