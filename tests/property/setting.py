"""The people, places, projects and words of generated worlds."""

import random
from typing import Final

from tests.property.trace import Spot

PEOPLE: Final = ("alice", "bob", "carol", "dave", "erin")
BUSY_PEOPLE: Final = tuple(f"guest{number}" for number in range(1, 22))
TOPICS: Final = ("salary", "deploy", "budget", "launch", "merger", "password", "contract", "roadmap")
EVERYTHING: Final = f"what is known of {', '.join(TOPICS)}?"
KEYS: Final = ("deploy_day", "budget_cap", "owner")
PUBLIC: Final = (Spot("room", "general"), Spot("room", "ops"))
CLOSED: Final = (Spot("room", "vault"), Spot("room", "board"))
THREADS: Final = (Spot("thread", "general", "t1"), Spot("thread", "vault", "t2"))
DEALS: Final = Spot("thread", "general", "deals")  # as a private thread
PRIVATE_THREAD: Final = Spot("room", "general/deals")  # the room of its own that it is
DMS: Final = (Spot("dm", "nexus"), Spot("dm", "scout"))
SESSIONS: Final = (Spot("session", "s1"), Spot("session", "s2", agent="scout"))
ROOMS: Final = (*PUBLIC, *CLOSED, *THREADS, PRIVATE_THREAD)
PLACES: Final = (*ROOMS, *DMS, *SESSIONS)
LOBBY: Final = Spot("room", "lobby")  # of another platform, where everybody else is as well
DEN: Final = Spot("room", "den")  # a private one there
PROJECTS: Final = ("apollo", "borealis", "comet")
HOUR: Final = 3600

_SENTENCES: Final = (
    "the {a} {b} note of last week says {c} as far as we know",
    "{c} is what the {a} costs in the offer of last week",
    "keep in mind {c} for the {a} and the {b} of last week",
    "We decided that the {a} is {c}",
    "I prefer {c} over the {a}",
    "I usually check the {a} with {c}",
    "what about {c} in the {a} that we spoke of last week?",
)


class Words:
    """Generates texts about a few topics, each with a canary of its own."""

    def __init__(self, rng: random.Random, first: int = 1) -> None:
        self.rng = rng
        self._next = first

    def canary(self) -> str:
        self._next += 1
        return f"zx{self._next}q"

    def line(self) -> str:
        """Return one or two sentences with a canary each, sometimes padded: lengths influence word statistics."""
        text = ". ".join(self._sentence() for _ in range(self.rng.choice((1, 1, 1, 2))))
        return text + " " + " ".join(self.rng.choices(TOPICS, k=self.rng.choice((0, 0, 0, 2, 9)))) if text else text

    def _sentence(self) -> str:
        a, b = self.rng.sample(TOPICS, 2)
        return self.rng.choice(_SENTENCES).format(a=a, b=b, c=self.canary())

    def question(self) -> str:
        """Return a question about all topics, or a few."""
        return self.rng.choice(
            (EVERYTHING, f"tell me of the {' and the '.join(self.rng.sample(TOPICS, 2))}", "what did we decide?")
        )
