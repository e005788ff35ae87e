"""What a message asks to store: all of it that asks, and for a fact a key and its value of one clause."""

import pytest

from composer.text.asked import Asked
from composer.text.pairs import paired_value


@pytest.mark.parametrize(
    ("message", "stored"),
    [
        ("@nexus please remember that I like tea!", "I like tea"),
        ("Nexus, remember: I like tea.", "I like tea"),
        ("Thanks! And by the way, remember also that I like tea", "I like tea"),
        ("hey Nexus, could you please remember that I like tea?", "I like tea"),
        ("don't forget that I like tea", "I like tea"),
        ("Hi! Note that I like tea", "I like tea"),
        ("I like tea. Remember that!", "I like tea"),
        ("save this: I like tea", "I like tea"),
        ("I'd like you to keep in mind that I like tea", "I like tea"),
        ("make a note of the fact that I like tea", "I like tea"),
        ("Merk dir bitte, dass ich Tee mag.", "ich Tee mag"),
        ("Kannst du dir merken, dass ich Tee mag?", "ich Tee mag"),
        ("Notiere Folgendes: ich mag Tee", "ich mag Tee"),
        ("Ich mag Tee. Merk dir das!", "Ich mag Tee"),
        ("Und vergiss nicht: ich mag Tee", "ich mag Tee"),
        ("Souviens-toi que j'aime le thé", "j'aime le thé"),
        ("recuerda que me gusta el té", "me gusta el té"),
        ("Запомни, что я люблю чай", "я люблю чай"),
        ("remember this:\n- Bob owns the printer\n- Carol the tea", "- Bob owns the printer\n- Carol the tea"),
    ],
)
def test_what_follows_the_words_that_ask_is_remembered(message: str, stored: str) -> None:
    assert Asked(message, "Nexus").to_remember() == stored


@pytest.mark.parametrize(
    "said",
    [
        "I doubt that {}",
        "Mallory claims that {}",
        "we voted against: {}",
        "until 2020 it was so that {}",
        "{} is a lie",
        "{}, says Mallory",
        "{}. Just kidding",
        "{}? No way",
        "the joke: {}",
        "we stopped the practice where {}",
        'Bob wrote "{}" and I disagree',
        "{}\nJust kidding",
        "lunch. Bob says {}",
        "according to Mallory {}",
        "es falsch ist, dass {}",
        "keineswegs gilt, dass {}",
        "angeblich {}",
        "{} wäre schlimm",
        "c'est un mensonge que {}",
        "es mentira que {}",
        "неправда, что {}",
    ],
)
@pytest.mark.parametrize("asks", ["remember that ", "please note: ", "merke dir, dass ", "Recuerda que "])
def test_nothing_is_left_out_of_what_is_remembered(asks: str, said: str) -> None:
    words = said.format("Mallory pays all invoices alone")
    assert Asked(f"{asks}{words}", "Nexus").to_remember() == words


@pytest.mark.parametrize(
    ("message", "stored"),
    [
        ("Mallory wants you to note that {}", "Mallory wants you to note that {}"),
        ("Mallory will, dass du dir merkst: {}", "Mallory will, dass du dir merkst: {}"),
        ("I doubt that {}. Remember that!", "I doubt that {}"),
        ("A lie goes around. {}. Please remember that.", "A lie goes around. {}"),
        ("Das bezweifle ich: {}. Merk dir das!", "Das bezweifle ich: {}"),
        ("{}. Remember that Bob denies it!", "Bob denies it"),
    ],
)
def test_what_stands_before_the_words_that_ask_is_left_out_only_where_nothing_follows_them(
    message: str, stored: str
) -> None:
    said = "Mallory pays all invoices alone"
    assert Asked(message.format(said), "Nexus").to_remember() == stored.format(said)


def value(message: str, key: str, said: str) -> str | None:
    return next(filter(None, (paired_value(each, key, said) for each in Asked(message, "Nexus").to_set())), None)


@pytest.mark.parametrize(
    ("message", "key", "expected"),
    [
        ("set the deploy day to Friday", "deploy_day", "Friday"),
        ("Nexus, can you set our deploy day to Friday, please?", "deploy_day", "Friday"),
        ("remember that the launch is on 12 June", "launch", "12 June"),
        ("note: deploy day = Friday", "deploy_day", "Friday"),
        ("set the payment limit of Bob to 5 and the payment limit of Carol to 100", "payment_limit_bob", "5"),
        ("set the payment limit of Bob to 5 and the payment limit of Carol to 100", "payment_limit_of_carol", "100"),
        ("save 34 as the budget", "budget", "34"),
        ("save the budget as 34", "budget", "34"),
        ("set budget 34", "budget", "34"),
        ("set the limit to -5.", "limit", "-5"),
        ("The deploy day is Friday. Remember that!", "deploy_day", "Friday"),
        ("set:\n- deploy day: Friday\n- budget: 34", "budget", "34"),
        ("set the reviewers to Alice, Bob and Carol", "reviewers", "Alice, Bob and Carol"),
        ('set our motto to "never give up"', "motto", "never give up"),
        ("Setze den Deploytag auf Freitag", "Deploytag", "Freitag"),
        ("Merk dir bitte, dass der Türcode 4455 ist", "Türcode", "4455"),
        ("Merk dir: Standup ist um 9:30", "Standup", "9:30"),
        ("Speichere 4711 als Türcode", "Türcode", "4711"),
        ("Notiere: Budget = 34", "Budget", "34"),
        ("Merk dir: die Demo ist am 3. Mai", "Demo", "3. Mai"),
        ("Kannst du dir merken, dass das Limit 5 ist?", "Limit", "5"),
    ],
)
def test_a_fact_is_a_key_and_the_rest_of_its_clause(message: str, key: str, expected: str) -> None:
    assert value(message, key, expected) == expected


@pytest.mark.parametrize(
    ("message", "key", "other"),
    [
        ("set the payment limit of Bob to 5 and the payment limit of Mallory to 100", "payment_limit_of_bob", "100"),
        ("set the limit: Bob 5, Mallory 100", "limit_bob", "100"),
        ("set the password owner to Carol, Mallory is fired", "password_owner", "Mallory"),
        ("set deploy day to Friday", "deploy", "day"),
        ("set deploy day to Friday", "day", "Friday"),
        ("set deploy day to 12 and the budget to 34", "budget", "12"),
        ("remember that the launch is on 12 June", "launch", "12"),
        ("remember that the launch is on 12 June", "launch", "June"),
        ("set the limit to 5 or 500", "limit", "5"),
        ("Merk dir: die Demo ist am 3. Mai", "Demo", "3"),
        ("Setze den Deploytag auf 12 und das Budget auf 34", "Budget", "12"),
        *(
            (message, "owner", "Mallory")
            for message in (
                "set owner to Bob; Mallory wants me to set owner to Mallory",
                'set owner to "Mallory" if Bob agrees',
                "set owner to Mallory, unless Bob objects",
                "if Bob agrees, set owner to Mallory",
                "do not set owner to Mallory",
                "I told Bob: set owner to Mallory",
                "set owner to Mallory? Never!",
                "set owner to Mallory, which is a lie",
                "remember that the owner is Mallory and that is a lie",
                "remember that Mallory says the owner is Mallory",
                "set owner to Bob and backup to Mallory",
                "I doubt the owner is Mallory. Remember that!",
                "This is false. The owner is Mallory. Remember that!",
                'remember: "Bob says that the owner is Mallory"',
                "merk dir, dass laut Mallory der Owner Mallory ist",
                "Merk dir: Owner ist Bob, Mallory geht",
                "remember that the owner was Mallory, now it is Bob",
                "note: owner: Bob (Mallory wants owner: Mallory)",
                "set owner to Mallory - just kidding",
                "remember: owner != Mallory",
            )
        ),
    ],
)
def test_no_value_is_taken_from_elsewhere_and_no_part_of_one(message: str, key: str, other: str) -> None:
    assert value(message, key, other) is None


def test_a_value_that_is_struck_through_stays_so() -> None:
    assert value("set owner to ~~Mallory~~", "owner", "Mallory") == "~~Mallory~~"
