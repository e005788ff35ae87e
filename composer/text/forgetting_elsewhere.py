"""Requests to forget in German, French and Spanish, as composer/text/forgetting.py reads them in English. Pure.

Only whole requests count: a verb that begins its clause, what is to be forgotten, and the end of the clause. "Vergiss
es", "laisse tomber" and "olvídalo" say "never mind"; "vergiss das nicht", "oublie pas ça" and "no olvides eso" the
contrary.
"""

import re
from typing import Final

# Where a clause begins, or words that may stand before its verb. "No" is none: in Spanish it denies the verb.
_START: Final = (
    r"(?:^|[.!?\u00a1\u00bf,;:\n()\u2013\u2014]|@[\w.-]{1,80}|\b(?:bitte|dann|ach|oh|ok|okay|sorry|hey|nein|moment"
    r"|s'il\s{1,4}(?:te|vous)\s{1,4}pla[i\u00ee]t|stp|svp|alors|non|pardon|attends"
    r"|por\s{1,4}favor|porfa|entonces|perd[o\u00f3]n|espera))\s{0,8}"
)
_END: Final = (
    r"(?=\s{0,8}(?:\b(?:bitte|wieder|danke|jetzt|sofort|s'il\s{1,4}(?:te|vous)\s{1,4}pla[i\u00ee]t"
    r"|stp|svp|merci|maintenant|por\s{1,4}favor|porfa|gracias|ahora)\b\s{0,8})?"
    r"(?:$|[.!?;:\n()]|,(?!\s{0,4}(?:was|dass?|wie|wo|wer|der|die)\b)))"
)
# The German verb of a modal stands at the end: "kannst du das bitte löschen".
_GERMAN: Final = r"(?:vergiss|vergesst|vergessen\s{1,4}sie|l(?:\u00f6|oe)sch(?:e|t|en\s{1,4}sie)?|entferne?)"
_DAS: Final = r"(?:das|dies)(?:\s{1,4}(?:bitte|wieder)){0,2}"
_GERMAN_MODAL: Final = (
    rf"(?:kannst|k(?:\u00f6|oe)nntest|w(?:\u00fc|ue)rdest)\s{{1,4}}du\s{{1,4}}(?:bitte\s{{1,4}})?{_DAS}"
    r"\s{1,4}(?:vergessen|l(?:\u00f6|oe)schen|entfernen)"
)
_FRENCH: Final = (
    r"(?:(?:oublie|efface|supprime)z?"
    r"|(?:peux-tu|tu\s{1,4}peux|pourrais-tu|tu\s{1,4}pourrais|pouvez-vous|pourriez-vous)"
    r"\s{1,4}(?:oublier|effacer|supprimer))"
)
_SPANISH: Final = r"(?:olvida|borra|elimina|(?:puedes|podr[i\u00ed]as)\s{1,4}(?:olvidar|borrar|eliminar))"
_ASK: Final = r"(?:bitte\s{1,4})?"

THAT: Final = re.compile(
    rf"{_START}(?:{_GERMAN}\s{{1,4}}{_ASK}{_DAS}{_END}|{_GERMAN_MODAL}{_END}"
    rf"|(?:merke?\s{{1,4}}dir|(?:speicher|notier|behalt)e?)\s{{1,4}}{_DAS}\s{{1,4}}nicht{_END}"
    rf"|{_FRENCH}\s{{1,4}}(?:tout\s{{1,4}})?(?:\u00e7a|ca|cela|ceci){_END}"
    r"|(?:ne\s{1,4}(?:retiens|retenez|m\u00e9morise|m\u00e9morisez|garde|gardez|note|notez)|n'enregistrez?)\s{1,4}pas"
    rf"\s{{1,4}}(?:\u00e7a|ca|cela|ceci){_END}"
    rf"|{_SPANISH}\s{{1,4}}(?:todo\s{{1,4}})?(?:eso|esto){_END}"
    rf"|no\s{{1,4}}(?:recuerdes|guardes|memorices|anotes|almacenes)\s{{1,4}}(?:eso|esto){_END})"
)
BEFORE: Final = re.compile(
    rf"{_START}(?:{_GERMAN},?\s{{1,4}}{_ASK}"
    r"(?:meine\s{1,4}(?:letzten?|vorigen?|vorherigen?)\s{1,4}nachricht(?:en)?\b"
    r"|(?:alles|das)?\s{0,4},?\s{0,4}was\s{1,4}ich\s{1,4}(?:(?:dir|gerade|eben|vorhin|heute)\s{1,4}){0,2}"
    r"(?:gesagt|geschrieben|erz(?:\u00e4|ae)hlt|gepostet)\s{1,4}hab(?:e\b|\b))(?!\s{1,4}nicht\b)"
    rf"|{_FRENCH}\s{{1,4}}(?:(?:mon\s{{1,4}}dernier|mes\s{{1,4}}derniers)\s{{1,4}}messages?\b"
    r"|(?:tout\s{1,4})?ce\s{1,4}que\s{1,4}j(?:'|e\s{1,4}t')ai"
    r"\s{1,4}(?:dit|\u00e9crit|racont\u00e9|post\u00e9|envoy\u00e9)\b"
    r"|(?:tout\s{1,4})?ce\s{1,4}que\s{1,4}je\s{1,4}viens\s{1,4}de\s{1,4}(?:te\s{1,4})?(?:dire|\u00e9crire)\b)"
    rf"|{_SPANISH}\s{{1,4}}(?:(?:mi\s{{1,4}}[u\u00fa]ltimo|mis\s{{1,4}}[u\u00fa]ltimos)\s{{1,4}}mensajes?\b"
    r"|(?:todo\s{1,4})?lo\s{1,4}que\s{1,4}(?:te\s{1,4})?(?:he\s{1,4}(?:dicho|escrito|contado)|dije|escrib[i\u00ed]"
    r"|cont[e\u00e9]|acabo\s{1,4}de\s{1,4}(?:decir|escribir))\b))"
)
EVERYTHING: Final = re.compile(
    rf"{_START}(?:{_GERMAN}\s{{1,4}}{_ASK}alles(?:{_END}"
    r"|,?\s{1,4}was\s{1,4}du\s{1,4}(?:\u00fcber\s{1,4}mich|von\s{1,4}mir)"
    r"\s{1,4}(?:weisst|gespeichert\s{1,4}hast)\b(?!\s{1,4}nicht\b)"
    rf"|\s{{1,4}}\u00fcber\s{{1,4}}mich{_END})"
    rf"|{_FRENCH}\s{{1,4}}tout(?:{_END}|\s{{1,4}}ce\s{{1,4}}que\s{{1,4}}(?:tu\s{{1,4}}sais|vous\s{{1,4}}savez)"
    rf"\s{{1,4}}(?:sur|de)\s{{1,4}}moi\b|\s{{1,4}}sur\s{{1,4}}moi{_END})"
    rf"|{_SPANISH}\s{{1,4}}todo(?:{_END}|\s{{1,4}}lo\s{{1,4}}que\s{{1,4}}sabes\s{{1,4}}(?:de|sobre)\s{{1,4}}m[i\u00ed]\b"
    rf"|\s{{1,4}}sobre\s{{1,4}}m[i\u00ed]{_END}))"
)
_POLITE: Final = """
bitte danke dann ach nein moment stp svp merci alors non pardon attends s'il te vous plaît plait por favor porfa gracias
entonces perdón perdon espera
"""
POLITE: Final = frozenset(_POLITE.split())
