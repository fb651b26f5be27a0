"""Certificates of the parties: contexts for TLS 1.3, and a certificate authority for tests and first steps.

A party is identified by the name in its certificate, not by its address. In production the certificates come from any
authority that the parties trust; a certificate needs the party's name as its DNS name.
"""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veil.errors import InputError, PartyError
from veil.shuffle.plan import is_party_name
from veil.tools.filesystem import write_atomically, write_secret

_DAYS = 365


@dataclass(frozen=True)
class PartyIdentity:
    """A party's certificate and key, and the authority that it trusts: files."""

    certificate: Path
    key: Path
    authority: Path

    def listening(self) -> ssl.SSLContext:
        """For connections that others make: they have to show a certificate of the authority."""
        return self._made(ssl.PROTOCOL_TLS_SERVER)

    def connecting(self) -> ssl.SSLContext:
        """For connections to others: the certificate there has to carry the expected party's name."""
        return self._made(ssl.PROTOCOL_TLS_CLIENT)

    def _made(self, protocol: int) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_cert_chain(self.certificate, self.key)
            context.load_verify_locations(self.authority)
        except (OSError, ssl.SSLError):
            files = ", ".join(str(file) for file in (self.certificate, self.key, self.authority))
            raise InputError(f"these do not hold a certificate, its key and an authority: {files}") from None
        return context


def name_in(certificate: Any) -> str:
    """The party's name in a certificate that TLS has checked."""
    names = [name for kind, name in (certificate or {}).get("subjectAltName", ()) if kind == "DNS"]
    if len(names) != 1 or not is_party_name(names[0]):
        raise PartyError("a stranger", "showed a certificate that does not carry one party's name")
    return str(names[0])


def make_authority(folder: Path, names: Sequence[str]) -> None:
    """Write an authority, and a certificate and key for each party: NAME.crt, NAME.key, authority.crt.

    For tests and first steps. The authority's own key is used and thrown away, so that nobody can add a party later.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    authority = Ed25519PrivateKey.generate()
    issuer = _name("veil test authority")
    ends = x509.BasicConstraints(ca=True, path_length=0)
    signs = x509.KeyUsage(False, False, False, False, False, True, False, False, False)
    own = _draft(issuer, issuer, authority.public_key()).add_extension(ends, True).add_extension(signs, True)
    own = own.add_extension(x509.SubjectKeyIdentifier.from_public_key(authority.public_key()), False)
    write_atomically(folder / "authority.crt", _pem(own.sign(authority, None)))
    for name in names:
        key = Ed25519PrivateKey.generate()
        draft = _draft(_name(name), issuer, key.public_key())
        draft = draft.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), False)
        draft = draft.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        known = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
        write_atomically(folder / f"{name}.crt", _pem(draft.add_extension(known, False).sign(authority, None)))
        write_secret(folder / f"{name}.key", _private(key))


def _name(text: str) -> Any:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _draft(subject: Any, issuer: Any, public_key: Any) -> Any:
    from cryptography import x509

    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=_DAYS))
    )


def _pem(certificate: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return bytes(certificate.public_bytes(Encoding.PEM))


def _private(key: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
