"""Keys for schedulers and workers that talk by TLS: an authority of their own, and one pair that it vouches for.

Both sides show the pair and check the authority, so what lacks it gets no connection. By openssl(1), for a library
would be one more dependency for four commands a month.
"""

from __future__ import annotations

import os
import ssl
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from mrc_testbed.testbed.errors import MissingCapability, RunError, UsageError
from mrc_testbed.testbed.folders import make_own
from mrc_testbed.testbed.rundir.ownership import give

CA, PAIR = "ca.pem", "key.pem"
"""The authority's certificate; the certificate and the key of the pair, in one file as `dask` takes it."""
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_EXTENSIONS = """\
[req]
distinguished_name = name
[name]
[ca]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[pair]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always
"""
"""Of the certificates, as RFC 5280, sections 4.2.1 and 4.2.2, and `openssl verify -x509_strict` want them. What the
machine's openssl.cnf says does not count."""


def make_keys(folder: Path, days: int) -> tuple[Path, Path]:
    """ca.pem and key.pem in a new folder; the key of the authority is not kept. Raises UsageError, MissingCapability
    without openssl, RunError."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: is there already; name a new folder, keys are not replaced")
    make_own(folder)
    folder.chmod(0o700)
    names = ("ca.key", "pair.key", "pair.csr", "pair.pem", "extensions.cnf")
    authority, key, request, signed, extensions = (folder / name for name in names)
    before = os.umask(0o077)
    try:
        name = ("-subj", "/CN=mrc-testbed sweep")
        extensions.write_text(_EXTENSIONS, encoding="ascii")
        config, valid = ("-config", extensions), ("-days", days)
        own = ("-x509", "-extensions", "ca", "-keyout", authority, "-out", folder / CA)
        _openssl("req", *config, *_CURVE, *own, *valid, *name)
        _openssl("req", *config, *_CURVE, "-keyout", key, "-out", request, "-subj", "/CN=mrc-testbed worker")
        signing = ("-CA", folder / CA, "-CAkey", authority, "-CAcreateserial", "-CAserial", folder / "ca.srl")
        vouched = ("-extfile", extensions, "-extensions", "pair", "-out", signed)
        _openssl("x509", "-req", "-in", request, *signing, *vouched, *valid)
        (folder / PAIR).write_bytes(signed.read_bytes() + key.read_bytes())
    except OSError as error:
        raise RunError(f"cannot write {error.filename or folder}: {error.strerror}") from error
    finally:
        os.umask(before)
        for left in (authority, key, request, signed, extensions, folder / "ca.srl"):
            left.unlink(missing_ok=True)
    give((folder, folder / CA, folder / PAIR))
    return folder / CA, folder / PAIR


def require_valid(certs: Path, now_s: float) -> None:
    """Raises UsageError for keys that are no keys, that are good no longer, or that are not yet good. The pair is as
    old as the certificate of its authority."""
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(certs / CA)
        (found,) = context.get_ca_certs()
        begins_s, ends_s = (ssl.cert_time_to_seconds(str(found[key])) for key in ("notBefore", "notAfter"))
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"{certs / CA}: is no certificate of an authority ({error})") from None
    if now_s > ends_s:
        raise UsageError(
            f"--certs {certs}: expired on {_day(ends_s)}; make new ones by `mrc-testbed sweep keys NEW`, copy them to"
            " every machine, and start the scheduler and its workers with them"
        )
    if now_s < begins_s:
        raise UsageError(f"--certs {certs}: are good from {_day(begins_s)} on; set the clock of this machine")


def _day(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _openssl(*arguments: object) -> None:
    try:
        done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise MissingCapability("keys are made by openssl, which is not here", "apt-get install openssl") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise RunError(f"openssl {arguments[0]}: {last}")
