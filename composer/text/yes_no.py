"""Read whether a whole message is a yes or a no, in some thirty languages. Pure."""

import re
import unicodedata
from enum import StrEnum
from typing import Final

# A whole message of such words, with nothing but polite ones beside them, is the answer to the question before it.
_YES: Final = (
    "yes y yep yup yeah yea aye ok okay okej sure confirm confirmed absolutely ja jo joo jawohl klar "
    "bestätigt oui ouais si sí sì claro vale confirmo sim certo confermo jazeker tak ano evet tamam kyllä "
    "igen da да ага конечно так звісно ναι כן نعم أجل ايوه हाँ हां जी ya iya vâng ใช่ ตกลง はい うん 是 是的 "
    "对 對 好 好的 可以 确认 確認 예 네 응 확인 👍 ✅ 👌"
)
_NO: Final = (
    "no n nope nah cancel stop abort nevermind nein nee abbrechen abbruch non annuler não cancelar "
    "cancela annulla niet annuleren nie anuluj ne zrušit nej avbryt avbryd ei peruuta nem hayır iptal нет "
    "отмена отменить ні скасувати όχι ακύρωση לא ביטול لا إلغاء नहीं tidak batal không ไม่ ยกเลิก いいえ "
    "キャンセル やめて 不 不要 不用 取消 아니요 아니 취소 👎 ❌"
)
_WITH_ACCENT: Final = "có"  # a yes in Vietnamese; without its accent it asks "what?" in Polish and Czech
_YES_OR_THANKS: Final = "tak"  # a yes in Polish; in Danish it is polite beside a yes or a no
_POLITE_WORDS: Final = (
    "please pls plz thanks thank you thx bitte danke gern gerne merci s'il te vous plaît svp stp por "
    "favor porfa gracias obrigado obrigada per favore grazie alsjeblieft graag bedankt dank je proszę "
    "dzięki prosím děkuji tack takk пожалуйста спасибо будь ласка дякую lütfen teşekkürler kiitos "
    "köszönöm mulțumesc dziękuję ευχαριστώ παρακαλώ בבקשה תודה شكرا कृपया धन्यवाद cảm ơn terima kasih "
    "ขอบคุณ お願いします ありがとう 谢谢 謝謝 请 고마워요 부탁해요 부탁드립니다"
)
_YES_NO_PHRASES: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("do it", "go ahead", "of course", "d'accord", "va bene", "mach es", "mach das", "hazlo"), True),
    **dict.fromkeys(
        ("don't", "do not", "don't do it", "never mind", "lieber nicht", "doch nicht", "no lo hagas"), False
    ),
}
_PAUSE: Final = re.compile("[\\s.!,;\u2026\u3002\uff01\uff0c\u3001\ufe0f\U0001f3fb-\U0001f3ff]+")
MAX_YES_NO_CHARS: Final = 60


class Answered(StrEnum):
    """What somebody writes below a question."""

    YES = "yes"
    CANCEL = "cancel"


def read_answer(text: str) -> Answered | None:
    """The answer that a whole message is, in any of some thirty languages; None for any other message."""
    if len(text) > MAX_YES_NO_CHARS:
        return None
    folded = unicodedata.normalize("NFC", text.casefold())
    words = [word if word == _WITH_ACCENT else _plain(word) for word in _PAUSE.split(folded) if word]
    answers = {word for word in words if word in _ANSWERS_YES or word in _ANSWERS_NO}
    said: set[bool | None] = {word in _ANSWERS_YES for word in answers - {_YES_OR_THANKS} or answers}
    if rest := " ".join(word for word in words if word not in _YES_NO_OR_POLITE):
        said.add(_YES_NO_PHRASES.get(rest))
    phrase = said.pop() if len(said) == 1 else None
    return None if phrase is None else Answered.YES if phrase else Answered.CANCEL


def _plain(text: str) -> str:
    """A text as it is compared: in lower case, without accents."""
    parts = unicodedata.normalize("NFKD", text.casefold().replace("\u2019", "'"))
    return unicodedata.normalize("NFC", "".join(each for each in parts if not unicodedata.combining(each)))


_ANSWERS_YES: Final = frozenset((*_plain(_YES).split(), _WITH_ACCENT))
_ANSWERS_NO: Final = frozenset(_plain(_NO).split())
_YES_NO_OR_POLITE: Final = frozenset((*_ANSWERS_YES, *_ANSWERS_NO, *_plain(_POLITE_WORDS).split()))
