"""One family of errors; each door turns it once into what its platform shows."""


class NexusError(Exception):
    """Something a person can act on: the text is one plain sentence, safe to show where it was raised."""


class NotFound(NexusError):
    """It does not exist, or the asker may not know that it does. The two are never told apart."""


class Refused(NexusError):
    """The asker is known and the thing is known to them, but they may not do this."""


class BadInput(NexusError):
    """The input cannot be taken; the text says what was wrong and what would be right."""


class Unavailable(NexusError):
    """A server that Nexus needs (database, cache, model) does not answer; trying again later may work."""


class Misconfigured(NexusError):
    """A setting is wrong or does not fit what is stored; trying again will not help."""
