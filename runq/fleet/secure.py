"""Who may join: TLS with certificates of the user's own, or nobody but this machine."""

from __future__ import annotations

import ipaddress
import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from runq.paths import private_folder
from runq_schemas.errors import UsageError

if TYPE_CHECKING:
    from cryptography.x509 import KeyUsage
    from distributed.security import Security

CA, CERT, KEY = "ca.pem", "cert.pem", "key.pem"
VALID_DAYS = 825
"""Longer than this macOS trusts no certificate (support.apple.com/103769)."""


def certificates_folder() -> Path:
    """Where the certificates are: ``$RUNQ_CLUSTER_TLS``, else ``cluster`` in the user's configuration."""
    if os.environ.get("RUNQ_CLUSTER_TLS"):
        return Path(os.environ["RUNQ_CLUSTER_TLS"])
    import platformdirs

    return platformdirs.user_config_path("runq") / "cluster"


def make_certificates(folder: Path, *, now: datetime | None = None) -> Path:
    """Make a certificate authority and one certificate of it, which every machine of the cluster has.

    The authority's own key is not kept: nobody can make a further certificate, and a new set replaces all of it.

    Returns:
        The folder, readable by its owner alone.

    Raises:
        UsageError: there are certificates already.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    if any((folder / name).exists() for name in (CA, CERT, KEY)):
        raise UsageError(f"{folder} has certificates already", remedy="remove the folder first to replace them")
    begin = (now or datetime.now(UTC)) - timedelta(hours=1)
    end = begin + timedelta(days=VALID_DAYS)

    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca = (
        x509.CertificateBuilder()
        .subject_name(name("runq cluster authority"))
        .issuer_name(name("runq cluster authority"))
        .public_key(ca_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .add_extension(_usage(signs=True), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    cert = (
        x509.CertificateBuilder()
        .subject_name(name("runq cluster"))
        .issuer_name(ca.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("runq-cluster")]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .add_extension(_usage(signs=False), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    private_folder(folder)
    for file, content in ((CA, ca.public_bytes(pem)), (CERT, cert.public_bytes(pem)), (KEY, plain)):
        (folder / file).touch(mode=0o600)
        (folder / file).write_bytes(content)
    return folder


def _usage(*, signs: bool) -> KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def is_loopback(address: str) -> bool:
    """Whether a scheduler's address is this machine's alone."""
    host = urlsplit(address).hostname or ""
    if host == "localhost":
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def security_for(address: str, folder: Path, *, insecure: bool) -> Security | None:
    """The TLS of a scheduler's address; ``None`` where it needs none.

    Raises:
        UsageError: it would be reached in the clear and nobody said so, or there are no certificates.
    """
    scheme = urlsplit(address).scheme
    if scheme not in ("tcp", "tls"):
        raise UsageError(
            f"{address!r} is no scheduler's address", remedy="give tls://HOST:8786, or tcp://127.0.0.1:8786"
        )
    if scheme == "tcp":
        if insecure or is_loopback(address):
            return None
        raise UsageError(
            f"whoever can reach {address} could run commands on every machine of it",
            remedy="`runq cluster init` and give tls://, or say --insecure in a network of yours",
        )
    lacking = [name for name in (CA, CERT, KEY) if not (folder / name).exists()]
    if lacking:
        raise UsageError(
            f"{folder} has no {' and no '.join(lacking)}",
            remedy="make them with `runq cluster init`, or copy the folder from the machine that has them",
        )
    from distributed.security import Security

    ends = {
        f"tls_{who}_{what}": str(folder / file)
        for who in ("client", "worker", "scheduler")
        for what, file in (("cert", CERT), ("key", KEY))
    }
    return Security(tls_ca_file=str(folder / CA), require_encryption=True, **ends)  # type: ignore[no-untyped-call]
