"""What is for its sender alone, in many languages; and what only tells of something private."""

import uuid
from datetime import UTC, datetime

import pytest

from composer.memory.authorship import in_own_words
from composer.memory.index import statements_by_pattern
from composer.model import Message, Visibility
from composer.text.for_oneself import is_for_oneself, is_plainly_for_oneself

WISHES = """
remember for me only: I leave at four
remember only for me: I leave at four
remember that I leave at four, just for me please
note just to myself: I leave at four
remember for me alone that I leave at four
for my eyes only, remember that I leave at four
remember privately that I leave at four
remember (private): I leave at four
remember in private: I leave at four
remember: I leave at four, confidential
remember that I leave at four. Keep it between us.
remember this only between you and me: I leave at four
remember that I leave at four but don't tell the others
remember this and keep it to yourself: I leave at four
merk dir nur für mich: ich gehe um vier
merk dir, dass ich um vier gehe, nur für mich
merk dir vertraulich, dass ich um vier gehe
notiere privat: ich gehe um vier
merk dir für mich allein, dass ich um vier gehe
merk dir, dass ich um vier gehe. Sag es niemandem
merk dir, dass ich um vier gehe, und behalte es für dich
retiens pour moi seul : je pars
souviens-toi, juste pour moi, que je pars
recuerda sólo para mí que me voy
recuerda en privado: me voy
recuerda que me voy, entre nosotros
lembra só para mim que vou
ricorda solo per me che vado
onthoud alleen voor mij dat ik ga
zapamiętaj tylko dla mnie, że wychodzę
запомни только для меня: я ухожу
sadece benim için not al: gidiyorum
kom ihåg bara för mig att jag går
husk kun for mig at jeg går
zapamatuj si jen pro mě, že jdu
muista vain minulle: lähden
ingat hanya untuk saya: saya pergi
ghi nhớ chỉ cho tôi: tôi đi
只给我记住, 我四点走
請只為我記住, 我四點走
私だけに覚えて, 四時に帰る
内緒で覚えて, 四時に帰る
나만 기억해줘: 네 시에 갈게
나한테만 기억해줘: 네 시에 갈게
""".strip().splitlines()
STATEMENTS = """
remember that I like tea
remember for me that the cleaner comes on Mondays
remember the contract between us and Bremen ends in May
remember that lunch is for me and bob
remember me only when I ask
remember only Bremen pays within 30 days
just remember that the wifi is down
remember that the private channel is called cave
remember that the price list of Bremen is confidential
remember: don't tell the customer the price
remember that nobody else has the key
remember that we keep the code secret
remember that only I have the key
remember that private rooms stay private
merk dir, dass das für mich ein Feiertag ist
merk dir, dass die Liste vertraulich ist
recuerda que para mí el té es mejor
我们只用红色
""".strip().splitlines()
IN_SUCH_WORDS = """
remember that only for me this is a problem
remember that the parking place is only for me on Mondays
remember only for me this is a problem on Mondays
remember that just for me the stand-up is too early
merk dir, dass der Parkplatz nur für mich ist
recuerda que la llave es solo para mí
retiens que la clé est juste pour moi
私だけが鍵を持っていることを覚えて
""".strip().splitlines()
MAYBE = "remember this and keep it to yourself: I leave at four"


@pytest.mark.parametrize("text", WISHES)
def test_a_wish_to_be_the_only_reader_is_understood(text: str) -> None:
    assert is_for_oneself(text)
    assert is_plainly_for_oneself(text) or text == MAYBE


@pytest.mark.parametrize("text", IN_SUCH_WORDS)
def test_what_tells_something_in_such_words_is_not_plainly_one(text: str) -> None:
    assert is_for_oneself(text)
    assert not is_plainly_for_oneself(text)


@pytest.mark.parametrize("text", STATEMENTS)
def test_what_only_tells_of_something_private_is_no_such_wish(text: str) -> None:
    assert not is_for_oneself(text)


@pytest.mark.parametrize(("where", "learnt"), [(Visibility.PUBLIC, False), (Visibility.PRIVATE, True)])
def test_such_a_message_is_learnt_from_where_its_sender_alone_reads_it(where: Visibility, learnt: bool) -> None:
    id, at, text = uuid.UUID(int=1), datetime(2026, 5, 4, tzinfo=UTC), "I prefer to leave at four, just between us."
    message = Message(id, "m1", 1, at, id, None, "alice", text, "here", where)
    assert bool(in_own_words([message])) is learnt
    assert bool(statements_by_pattern(message)) is learnt
