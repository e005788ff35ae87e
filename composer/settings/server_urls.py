"""URLs of servers. They may hold a password, so printed they show the server's place alone: a host and a port."""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

DATABASE_SETTING: Final = "NEXUS_DATABASE_URL"
OWNER_SETTING: Final = "NEXUS_OWNER_DATABASE_URL"
SOCKET: Final = "its socket"
UNREADABLE: Final = "the configured address"
LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_PLAIN_PLACE = re.compile(r"[A-Za-z0-9._:,\[\]-]+")
_PORTS = re.compile(r"[^:,]*(:\d{0,5})?(,[^:,]*(:\d{0,5})?)*|\[[0-9A-Fa-f:.]+\](:\d{0,5})?")
# Parameters of a URL that hold a secret; and those that libpq also reads from the environment.
_SECRET_PARAMETERS: Final = ("password", "sslpassword")
_LIBPQ_VARIABLES: Final[Mapping[str, str]] = {
    "host": "PGHOST",
    "port": "PGPORT",
    "dbname": "PGDATABASE",
    "database": "PGDATABASE",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "passfile": "PGPASSFILE",
    "options": "PGOPTIONS",
    "application_name": "PGAPPNAME",
    "sslmode": "PGSSLMODE",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcrl": "PGSSLCRL",
    "sslnegotiation": "PGSSLNEGOTIATION",
    "channel_binding": "PGCHANNELBINDING",
    "gssencmode": "PGGSSENCMODE",
    "krbsrvname": "PGKRBSRVNAME",
    "gsslib": "PGGSSLIB",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
}
_REDIS_PARAMETERS: Final = frozenset(
    {
        "db",
        "protocol",
        "client_name",
        "username",
        "password",
        "health_check_interval",
        "ssl_cert_reqs",
        "ssl_ca_certs",
        "ssl_certfile",
        "ssl_keyfile",
        "ssl_check_hostname",
    }
)
_REDIS_NUMBERS: Final = frozenset({"db", "protocol", "health_check_interval"})


class ServerUrl(str):
    """A server's URL. Its characters are the URL, for drivers; `str()`, `repr()` and formatting give its place.
    `setting` is the name of the setting that it comes from, for errors."""

    __slots__ = ("setting",)
    setting: str

    def __new__(cls, url: str = "", setting: str = "") -> "ServerUrl":
        """The URL itself, also of a ServerUrl, whose `str()` is something else, and whose `setting` is kept."""
        made = super().__new__(cls, str.__str__(url))
        made.setting = setting or (url.setting if isinstance(url, ServerUrl) else DATABASE_SETTING)
        return made

    @property
    def place(self) -> str:
        """Host and port of the server, or words for a socket or for an address that can't be read."""
        parts = _split(self)
        if parts is None:
            return UNREADABLE
        query = dict(parse_qsl(parts.query))
        netloc = parts.netloc.rpartition("@")[2]
        if not netloc and query.get("host") and not query["host"].startswith("/"):
            netloc = query["host"] + (f":{query['port']}" if query.get("port") else "")
        if not netloc or netloc.startswith(("/", "%2F")):
            return SOCKET
        return netloc if _PLAIN_PLACE.fullmatch(netloc) else UNREADABLE

    @property
    def user(self) -> str:
        """The user's name; empty when the URL has none."""
        parts = _split(self)
        return "" if parts is None else unquote(parts.username or "") or dict(parse_qsl(parts.query)).get("user", "")

    @property
    def password(self) -> str:
        """The password; empty when the URL has none."""
        parts = _split(self)
        found = "" if parts is None else unquote(parts.password or "") or dict(parse_qsl(parts.query)).get("password")
        return found or ""

    def secrets(self) -> set[str]:
        """What must not be printed: the URL if it has a password, and its passwords as they stand in it and decoded."""
        characters = str.__str__(self)
        if (parts := _split(self)) is None:
            return {characters, *characters.split("@")[:-1]}
        query = parse_qsl(parts.query)
        found = {value for key, value in query if key in _SECRET_PARAMETERS}
        found |= {parts.password or "", unquote(parts.password or "")} - {""}
        return found | {quote(value, safe="") for value in found} | ({characters} if found else set())

    def with_login(self, user: str) -> "ServerUrl":
        """The same database for another user, without a password."""
        parts = urlsplit(str.__str__(self))
        query = [(k, v) for k, v in parse_qsl(parts.query) if k not in ("user", *_SECRET_PARAMETERS)]
        netloc = f"{quote(user, safe='')}@{parts.netloc.rpartition('@')[2]}"
        return ServerUrl(parts._replace(netloc=netloc, query=urlencode(query, safe="/")).geturl(), self.setting)

    def with_database(self, name: str) -> "ServerUrl":
        """Another database on the same server."""
        parts = urlsplit(str.__str__(self))
        query = [(k, v) for k, v in parse_qsl(parts.query) if k not in ("dbname", "database")]
        return ServerUrl(parts._replace(path=f"/{name}", query=urlencode(query, safe="/")).geturl(), self.setting)

    def libpq_environment(self) -> dict[str, str]:
        """The variables by which PostgreSQL's programs reach this database: arguments would show in process lists."""
        parts = urlsplit(str.__str__(self))
        hosts = [
            re.fullmatch(r"(\[.*\]|[^:]*)(?::(\d*))?", each) for each in parts.netloc.rpartition("@")[2].split(",")
        ]
        given = {
            "host": ",".join(unquote(each[1]).strip("[]") for each in hosts if each),
            "port": ",".join(each[2] or "" for each in hosts if each).strip(","),
            "dbname": unquote(parts.path.removeprefix("/")),
            "user": unquote(parts.username or ""),
            "password": unquote(parts.password or ""),
        }
        given = {key: value for key, value in given.items() if value}
        given |= {key: value for key, value in parse_qsl(parts.query) if key in _LIBPQ_VARIABLES}
        return {_LIBPQ_VARIABLES[key]: value for key, value in given.items()}

    def __str__(self) -> str:
        return self.place

    def __repr__(self) -> str:
        return f"<{self.place}>"

    def __format__(self, spec: str) -> str:
        return format(self.place, spec)

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, core_schema.str_schema(strip_whitespace=True))


def _split(url: str) -> SplitResult | None:
    """The parts of a URL; None when it can't be read for certain: then anything in it may be a password."""
    try:
        parts = urlsplit(str.__str__(url))
    except ValueError:
        return None
    netloc = parts.netloc.rpartition("@")[2]
    if not parts.scheme or "@" in parts.path + parts.query + parts.fragment or not _PORTS.fullmatch(netloc):
        return None
    return parts


def check_database_url(url: ServerUrl) -> ServerUrl:
    """Check a URL of PostgreSQL. Raises ValueError, without any part of the URL."""
    parts = _split(url)
    if parts is None or parts.scheme not in ("postgresql", "postgres") or parts.fragment:
        raise ValueError(
            "it must be a URL like postgresql://nexus_service:password@127.0.0.1:5432/nexus, with each special "
            "character of the password written as % and two digits (/ is %2F, @ is %40, # is %23)"
        )
    return url


def check_redis_url(url: ServerUrl) -> ServerUrl:
    """Check a URL of Redis. Raises ValueError, without any part of the URL."""
    parts = _split(url)
    if parts is None or parts.scheme not in ("redis", "rediss", "unix") or parts.fragment:
        raise ValueError(
            "it must be a URL like redis://:password@127.0.0.1:6379/0, with each special character of the password "
            "written as % and two digits (/ is %2F, @ is %40, # is %23)"
        )
    for key, value in parse_qsl(parts.query, keep_blank_values=True):
        if key not in _REDIS_PARAMETERS:
            raise ValueError(f"its parameters can only be {', '.join(sorted(_REDIS_PARAMETERS))}")
        if key in _REDIS_NUMBERS and not value.isdecimal():
            raise ValueError(f"its parameter {key} must be a number")
    return url


def check_http_url(url: ServerUrl) -> ServerUrl:
    """Check a URL of a service. It may hold no login. Raises ValueError, without any part of the URL."""
    parts = _split(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.fragment:
        raise ValueError("it must be a URL like https://wiki.example.com/mcp")
    if parts.username or parts.password:
        raise ValueError("it may hold no login: set token or headers instead")
    return url


def check_public_url(url: str) -> str:
    """Check the address by which people and their tools reach the web port, and cut its last slash. Raises ValueError.

    Keys and cookies travel over it, so it begins with https, except on this machine itself.
    """
    parts = _split(url.strip())
    if (
        parts is None
        or not parts.hostname
        or parts.scheme not in ("http", "https")
        or parts.path.strip("/")
        or parts.query
        or parts.fragment
        or "@" in parts.netloc
    ):
        raise ValueError("it must be an address without a path or a login, like https://nexus.example.com")
    if parts.scheme == "http" and parts.hostname not in LOCAL_HOSTS:
        raise ValueError("keys and sign-ins travel over it, so it must begin with https, except for http://localhost")
    return f"{parts.scheme}://{parts.netloc.lower()}"
