"""Certificates as Crossplane makes them (internal/initializer/tls.go and
cert_generator.go). Their keys are RSA keys in PKCS#1. All have the same subject and
serial number."""

import datetime
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SUBJECT = x509.Name(
    [
        # This is no country code, but Crossplane's certificates have it.
        x509.NameAttribute(NameOID.COUNTRY_NAME, "Earth", _validate=False),
        x509.NameAttribute(NameOID.LOCALITY_NAME, "Earth"),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Crossplane"),
        x509.NameAttribute(NameOID.COMMON_NAME, "Crossplane"),
    ]
)
SERVER = "function-gpu-workspace.crossplane-system"


@dataclass
class Identity:
    """A certificate, its key and its authority's certificate, in PEM."""

    certificate: bytes
    key: bytes
    authority: bytes

    def write(self, folder: Path) -> Path:
        """Writes the files of a TLS Secret."""
        folder.mkdir(exist_ok=True)
        (folder / "tls.crt").write_bytes(self.certificate)
        (folder / "tls.key").write_bytes(self.key)
        (folder / "ca.crt").write_bytes(self.authority)
        return folder


class Authority:
    def __init__(self) -> None:
        self._key = _key()
        builder = _builder(self._key, "crossplane-root-ca")
        builder = builder.add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        ).add_extension(_usage(signs_certificates=True), critical=True)
        self._key_id = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        builder = builder.add_extension(self._key_id, critical=False)
        self._certificate = builder.sign(self._key, hashes.SHA256())

    def server(self) -> Identity:
        return self._issue(SERVER, ExtendedKeyUsageOID.SERVER_AUTH)

    def client(self) -> Identity:
        return self._issue("crossplane", ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(self, name: str, purpose: x509.ObjectIdentifier) -> Identity:
        key = _key()
        issued_by = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(
            self._key_id
        )
        builder = (
            _builder(key, name)
            .add_extension(
                x509.BasicConstraints(ca=False, path_length=None), critical=True
            )
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(issued_by, critical=False)
        )
        certificate = builder.sign(self._key, hashes.SHA256())
        return Identity(_pem(certificate), _pkcs1(key), _pem(self._certificate))


def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _builder(key: rsa.RSAPrivateKey, name: str) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(SUBJECT)
        .issuer_name(SUBJECT)
        .serial_number(2022)
        .public_key(key.public_key())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=3650))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False
        )
    )


def _usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=not signs_certificates,
        data_encipherment=not signs_certificates,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _pkcs1(key: rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
