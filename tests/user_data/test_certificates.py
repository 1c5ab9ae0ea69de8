"""Certificates of the platform: a machine trusts them, and so does its pip."""

from collections.abc import Callable
from typing import Any

from machines import documents, workspaces
from machines.machine import Machine
from machines.workspaces import LOG, as_owner, last_line

FOLDER = "/srv/tls"
INDEX = "https://localhost:8443"
# The index of the machines' own packages, with a certificate of the test's authority.
SERVER = f"""\
import functools, http.server, ssl

handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory="/srv/packages")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 8443), handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("{FOLDER}/server.pem", "{FOLDER}/server.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


def test_the_setup_and_the_owner_install_from_an_index_with_the_platforms_certificate(
    fresh: Callable[[], Machine],
) -> None:
    machine = fresh()
    certificate = _serve(machine)
    _boot(machine, _with_certificates(certificate))
    assert last_line(machine) == "gpu-workspace setup done", machine.says("cat", LOG)
    download = "cd /tmp && pip download --no-deps numpy==1.26.4 2>&1"
    downloaded = as_owner(machine, download)
    assert f"Looking in indexes: {INDEX}" in downloaded
    assert "Successfully downloaded numpy" in downloaded


def test_a_machine_does_not_trust_an_index_with_an_unknown_certificate(
    fresh: Callable[[], Machine],
) -> None:
    machine = fresh()
    _serve(machine)
    other = machine.says("cat", f"{FOLDER}/other.pem") + "\n"
    _boot(machine, _with_certificates(other))
    assert "FAILED: install OpenCV" in last_line(machine)
    assert "CERTIFICATE_VERIFY_FAILED" in machine.says("cat", LOG)


def _serve(machine: Machine) -> str:
    """Starts the index. Returns the certificate of its authority."""
    machine.run("mkdir", "-p", FOLDER)
    for name in ("authority", "other"):
        _openssl(machine, "req", "-x509", *_files(name), *_subject(name))
    names = "subjectAltName=DNS:localhost"
    signed = ["-CA", "authority.pem", "-CAkey", "authority.key", "-addext", names]
    _openssl(machine, "req", "-x509", *_files("server"), *_subject("server"), *signed)
    machine.write("/opt/index.py", SERVER)
    machine.start("python3", "/opt/index.py")
    up = "until : 2>/dev/null </dev/tcp/127.0.0.1/8443; do sleep 0.1; done"
    machine.run("timeout", "20", "bash", "-c", up)
    return machine.says("cat", f"{FOLDER}/authority.pem") + "\n"


def _openssl(machine: Machine, *arguments: str) -> None:
    machine.run("env", f"--chdir={FOLDER}", "openssl", *arguments)


def _files(name: str) -> list[str]:
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    return [*key, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "30"]


def _subject(name: str) -> list[str]:
    return ["-subj", f"/CN={name}"]


def _boot(machine: Machine, change: Callable[[dict[str, Any]], None]) -> None:
    changes = [
        change,
        documents.with_settings(packageIndexUrl=INDEX),
        documents.with_packages_from(f"--index-url {INDEX}"),
    ]
    booted = workspaces.image(machine, workspaces.CERTIFICATES, *changes)
    booted.boot.finish()


def _with_certificates(*certificates: str) -> Callable[[dict[str, Any]], None]:
    def change(config: dict[str, Any]) -> None:
        assert config["ca_certs"]["trusted"]
        config["ca_certs"]["trusted"] = list(certificates)

    return change
