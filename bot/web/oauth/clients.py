"""The apps that sign in here: by an id that is the address of what they say of themselves, or by registration."""

import uuid
from dataclasses import dataclass
from typing import Final

from bot.web.oauth.documents import ClientDocuments, parse_client_url
from composer.errors import BadInput
from composer.people.credentials.redirects import same_redirect
from composer.ports.clock import Clock
from composer.repositories.oauth_clients import OAuthClients

NO_SECRET: Final = "none"  # how an app shows who it is that has no secret
UNKNOWN_CLIENT: Final = "This app is not registered here, or no more: have it sign in anew, from its beginning."


@dataclass(frozen=True, slots=True)
class Client:
    """An app. `has_address`: its id is the https address of what it says of itself; else it only calls itself `name`.
    `auth_method` is how it shows who it is for tokens, and `secret_digest` the SHA-256 of its secret."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    has_address: bool
    auth_method: str = NO_SECRET
    secret_digest: bytes | None = None

    def registered_redirect(self, asked: str | None) -> str | None:
        """The address, of those that the app has registered, which it asks to be led back to. The only one, where it
        names none. None for any other address."""
        if asked is None:
            return self.redirect_uris[0] if len(self.redirect_uris) == 1 else None
        return next((each for each in self.redirect_uris if same_redirect(asked, each)), None)


class Clients:
    """Finds apps by their ids."""

    def __init__(self, documents: ClientDocuments, registered: OAuthClients, clock: Clock) -> None:
        self._documents = documents
        self.registered = registered
        self._clock = clock

    async def find_for_consent(self, id: str) -> Client:
        """Find the app of an authorization request, with what it says of itself now. Raises BadInput with a sentence
        for the person."""
        if has_address(id):
            document = await self._documents.get(id)
            return Client(id, document.name, document.redirect_uris, has_address=True)
        found = await self._registered(id)
        if found is None:
            raise BadInput(UNKNOWN_CLIENT)
        return found

    async def find_for_tokens(self, id: str) -> Client | None:
        """Find the app of a request for tokens. For an app with an address nothing is fetched: it has no secret, and
        what it was given is bound to the address. None for what is no id that an app can have."""
        if not has_address(id):
            return await self._registered(id)
        try:
            parse_client_url(id)
        except BadInput:
            return None
        return Client(id, "", (), has_address=True)

    async def note_use(self, id: str) -> None:
        """Keep a registered app: somebody has connected it, or it has got tokens."""
        if not has_address(id):
            await self.registered.used(uuid.UUID(id), self._clock.now())

    async def _registered(self, id: str) -> Client | None:
        try:
            key = uuid.UUID(id)
        except ValueError:
            return None
        found = None if str(key) != id else await self.registered.find(key, self._clock.now())
        if found is None:
            return None
        return Client(id, found.name, found.redirect_uris, False, found.auth_method, found.secret_digest)


def has_address(id: str) -> bool:
    """Whether an app's id is an address."""
    return id.startswith("https://")
