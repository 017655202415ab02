"""Keys for schedulers and workers that talk by TLS: an authority of their own, and one pair that it vouches for.

Both sides show the pair and check the authority, so what lacks it gets no connection. By openssl(1), for a library
would be one more dependency for four commands a month.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from testbed.errors import MissingCapability, RunError, UsageError
from testbed.rundir.ownership import give

CA, PAIR = "ca.pem", "key.pem"
"""The authority's certificate; the certificate and the key of the pair, in one file as `dask` takes it."""
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def make_keys(folder: Path, days: int) -> tuple[Path, Path]:
    """ca.pem and key.pem in a new folder; the key of the authority is not kept. Raises UsageError, MissingCapability
    without openssl, RunError."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: is there already; name a new folder, keys are not replaced")
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    authority, key, request, signed = (folder / name for name in ("ca.key", "pair.key", "pair.csr", "pair.pem"))
    before = os.umask(0o077)
    try:
        name = ("-subj", "/CN=mrc-testbed sweep")
        _openssl("req", "-x509", *_CURVE, "-keyout", authority, "-out", folder / CA, "-days", days, *name)
        _openssl("req", *_CURVE, "-keyout", key, "-out", request, "-subj", "/CN=mrc-testbed worker")
        signing = ("-CA", folder / CA, "-CAkey", authority, "-CAcreateserial", "-CAserial", folder / "ca.srl")
        _openssl("x509", "-req", "-in", request, *signing, "-out", signed, "-days", days)
        (folder / PAIR).write_bytes(signed.read_bytes() + key.read_bytes())
    except OSError as error:
        raise RunError(f"cannot write {error.filename or folder}: {error.strerror}") from error
    finally:
        os.umask(before)
        for left in (authority, key, request, signed, folder / "ca.srl"):
            left.unlink(missing_ok=True)
    give((folder, folder / CA, folder / PAIR))
    return folder / CA, folder / PAIR


def _openssl(*arguments: object) -> None:
    try:
        done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise MissingCapability("keys are made by openssl, which is not here", "apt-get install openssl") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise RunError(f"openssl {arguments[0]}: {last}")
