"""keys and login: let one's AI tools reach one's memory, see and end what opens it, and sign in to the web pages.

Only in a DM: a key and a link are for nobody else's eyes. They are shown once, in an answer for its caller alone, which
is stored nowhere.
"""

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context
from bot.commands.command import CONFIRM, DM_PLACES, PREFIX, Call, Command, CommandAnswer, valued
from bot.commands.parameters import Parameter, ParameterKind
from composer.model import User
from composer.people.credentials.issuing import KeyRequest, create_key, lifetime_of, revoke
from composer.people.credentials.keys import SECRET_BYTES
from composer.people.credentials.sign_in import LOCAL_LINK, login_url, make_login_link
from composer.people.credentials.stored import StoredCredential, credential_line, credential_name
from composer.rights.table import Act
from composer.visibility import owned_by

_ELSEWHERE: Final = "Write to me directly: what is shown is for nobody else's eyes."
_VENDOR: Final = parameters.word("tool", "the name of the AI tool, such as claude, chatgpt or cursor", str.lower)
_ID: Final[Parameter[str]] = parameters.word("id", f"the beginning of its id, as {PREFIX} keys list shows it", str)
_EXPIRES: Final[Parameter[timedelta]] = Parameter(
    "expires",
    ParameterKind.WORD,
    lifetime_of,
    "when it ends by itself, such as 90d, 12h or 4w; else when you revoke it",
)


async def _create(call: Call) -> CommandAnswer:
    lifetime = call.arguments.get(_EXPIRES)
    expires_at = None if lifetime is None else call.now + lifetime
    request = KeyRequest(call.arguments[_VENDOR], expires_at=expires_at)
    async with call.changing() as tx:
        person = User(call.user, "", False)  # what admins may is nothing that a tool gets
        made = await create_key(
            tx, call.workspace.tenant, person, request, secrets.token_bytes(SECRET_BYTES), call.now, by=call.user
        )
    until = "until you revoke it" if expires_at is None else f"until {expires_at:%Y-%m-%d %H:%M} UTC"
    return CommandAnswer(
        f"The key for {request.vendor}, {until}. It is shown this once: copy it into the settings of that tool.\n"
        f"{made.text}\nIt may be used for {', '.join(made.entry.permissions)}. Whoever has it reads as that tool: show "
        f"it to nobody. To end it: {PREFIX} keys revoke {made.entry.id.hex[:8]}"
    )


async def _list(call: Call) -> CommandAnswer:
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        users = owned_by(await access_context(tx, call)).users
        found: Sequence[StoredCredential] = (
            *await tx.api_keys.of(users),
            *await tx.web_sessions.of(users, call.now),
            *await tx.openid_logins.of(users),
        )
    lines = [credential_line(each, call.now) for each in found]
    if not lines:
        return CommandAnswer(
            f"Nothing opens your memory from outside: you have no key and no web session. To let an AI tool use your "
            f"entries: {PREFIX} keys create claude"
        )
    head, tail = "What opens your memory from outside:", f"To end one: {PREFIX} keys revoke ID"
    return CommandAnswer("\n".join((head, *lines, tail)))


async def _revoke(call: Call) -> CommandAnswer:
    async with call.changing() as tx:
        users = owned_by(await access_context(tx, call)).users
        found = await revoke(tx, call.arguments[_ID], users, call.now, by=call.user)
    return CommandAnswer(f"{credential_name(found)} has ended: from now on it opens nothing.")


async def _login(call: Call) -> CommandAnswer:
    now = call.now
    async with call.changing() as tx:
        code = await make_login_link(
            tx, call.workspace.tenant, call.user, secrets.token_bytes(SECRET_BYTES), now, by=call.user
        )
    link = login_url(call.app.settings.web_address, code)
    where = "" if call.app.settings.public_url else f"\n{LOCAL_LINK}"
    return CommandAnswer(
        f"This link signs you in, once, within five minutes:\n{link}\nWhoever opens it sees your private entries: show "
        f"it to nobody.{where}"
    )


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "keys create",
        (_VENDOR,),
        "Let one of your AI tools read and write your entries, by a key",
        _create,
        "keys create claude --expires 90d",
        (valued(_EXPIRES), CONFIRM),
        places=DM_PLACES,
        act=Act.CREATE_KEY,
        elsewhere=_ELSEWHERE,
    ),
    Command(
        "keys list",
        (),
        "List the keys, web sessions and logins that open your memory",
        _list,
        "keys list",
        places=DM_PLACES,
        act=Act.SEE_KEYS,
        elsewhere=_ELSEWHERE,
    ),
    Command(
        "keys revoke",
        (_ID,),
        "End one of your keys, web sessions or logins, at once",
        _revoke,
        "keys revoke 3f2a91bc",
        places=DM_PLACES,
        act=Act.SEE_KEYS,
        elsewhere=_ELSEWHERE,
    ),
    Command(
        "login",
        (),
        "Get a link that signs you in to the web pages",
        _login,
        "login",
        places=DM_PLACES,
        act=Act.SIGN_IN,
        elsewhere=_ELSEWHERE,
    ),
)
