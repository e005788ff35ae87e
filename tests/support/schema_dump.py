"""The schema of a database as text, to compare one with another."""

import re
import subprocess
from typing import Final

from composer.stores.embedded.service_account import binaries, service_account

# Comments, sessions, the random key of \restrict, and what an owner who is a superuser took from everybody (see
# PREPARE_SERVICE_ROLE) say nothing of the schema.
_NOISE: Final = re.compile(
    r"^(?:--.*|SET .*;|SELECT pg_catalog\.set_config.*;|\\(?:un)?restrict .*|REVOKE .* pg_catalog\..*;)$", re.MULTILINE
)


def dump(url: str) -> str:
    """The statements that would make the schema of a database, as pg_dump orders them, without owners."""
    program = binaries(service_account()).postgres / "pg_dump"
    command = [str(program), "--schema-only", "--no-owner", "--dbname=" + url[:]]
    text = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout
    return re.sub(r"\n{3,}", "\n\n", _NOISE.sub("", text)).strip() + "\n"
