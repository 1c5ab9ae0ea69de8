"""A certificate authority for the tests, and a certificate of this machine."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificates:
    authority: Path
    certificate: Path
    key: Path


def make(folder: Path) -> Certificates:
    """An authority, and a certificate for localhost and 127.0.0.1 by it."""
    now = datetime.datetime.now(datetime.UTC)
    root_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    root_name = named("Authority of the tests")

    def begun(
        name: x509.Name, public: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(root_name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )

    is_authority = x509.BasicConstraints(ca=True, path_length=None)
    root = begun(root_name, root_key.public_key())
    root = root.add_extension(is_authority, critical=True)
    here = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ]
    leaf = begun(named("localhost"), key.public_key())
    leaf = leaf.add_extension(x509.SubjectAlternativeName(here), critical=False)

    made = Certificates(folder / "ca.crt", folder / "tls.crt", folder / "tls.key")
    pem = serialization.Encoding.PEM
    for path, builder in ((made.authority, root), (made.certificate, leaf)):
        path.write_bytes(builder.sign(root_key, hashes.SHA256()).public_bytes(pem))
    plain = serialization.NoEncryption()
    private = serialization.PrivateFormat.PKCS8
    made.key.write_bytes(key.private_bytes(pem, private, plain))
    return made


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
