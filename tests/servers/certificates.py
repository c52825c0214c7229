"""Certificates for tests: an authority of their own, and what it has signed."""

from __future__ import annotations

import datetime as dt
import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_BEGIN = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
_END = dt.datetime(2120, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Authority:
    """Signs what clients that know its file trust."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    folder: Path

    @classmethod
    def new(cls, folder: Path) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("an authority for tests")
        certificate = _builder(name, name, key, _END).add_extension(x509.BasicConstraints(True, None), True)
        return cls(key, certificate.sign(key, hashes.SHA256()), folder)

    @property
    def file(self) -> str:
        """What a client has to know to trust it."""
        path = self.folder / "authority.pem"
        path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))
        return str(path)

    def server(self, host: str, *, end: dt.datetime = _END, itself: bool = False) -> ssl.SSLContext:
        """What a server of this name shows; signed by itself, if that is wanted."""
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = _name(host) if itself else self.certificate.subject
        general = x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
        names = x509.SubjectAlternativeName([general])
        builder = _builder(_name(host), issuer, key, end).add_extension(names, False)
        signed = builder.sign(key if itself else self.key, hashes.SHA256())
        path = self.folder / "server.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + signed.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, end: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGIN)
        .not_valid_after(end)
    )
