"""Requests to forget in German, French and Spanish, as composer/text/forgetting.py reads them in English. Pure.

Only a message that is nothing but the request counts, with a greeting, the agent's name and "please" around it: in
these languages the same words say "never mind" as well, or quote somebody. "Vergiss es", "laisse tomber" and
"olvídalo" say "never mind"; "vergiss das nicht", "oublie pas ça" and "no olvides eso" the contrary.
"""

import re
from typing import Final

_PLEASE: Final = r"bitte|s'il\s{1,4}(?:te|vous)\s{1,4}pla[i\u00ee]t|stp|svp|por\s{1,4}favor|porfa"
# What may stand before the verb, from the beginning of the message, and what after it up to the end.
_START: Final = (
    rf"\A[\s\u00a1\u00bf]{{0,4}}(?:(?:@[\w-]{{1,80}}|nexus|hallo|hi|hey|hello|bonjour|salut|hola|{_PLEASE})\b"
    r"[\s,.!:\u00a1\u00bf]{1,4}){0,4}"
)
_END: Final = (
    rf"(?:[\s,]{{1,4}}(?:@[\w-]{{1,80}}|nexus|wieder|danke|jetzt|sofort|merci|maintenant|gracias|ahora|{_PLEASE})\b){{0,3}}"
    r"[\s.!?]{0,8}\Z"
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
    rf"(?:gesagt|geschrieben|erz(?:\u00e4|ae)hlt|gepostet)\s{{1,4}}habe?\b){_END}"
    rf"|{_FRENCH}\s{{1,4}}(?:(?:mon\s{{1,4}}dernier|mes\s{{1,4}}derniers)\s{{1,4}}messages?\b"
    r"|(?:tout\s{1,4})?ce\s{1,4}que\s{1,4}j(?:'|e\s{1,4}t')ai"
    r"\s{1,4}(?:dit|\u00e9crit|racont\u00e9|post\u00e9|envoy\u00e9)\b"
    rf"|(?:tout\s{{1,4}})?ce\s{{1,4}}que\s{{1,4}}je\s{{1,4}}viens\s{{1,4}}de\s{{1,4}}(?:te\s{{1,4}})?(?:dire|\u00e9crire)\b){_END}"
    rf"|{_SPANISH}\s{{1,4}}(?:(?:mi\s{{1,4}}[u\u00fa]ltimo|mis\s{{1,4}}[u\u00fa]ltimos)\s{{1,4}}mensajes?\b"
    r"|(?:todo\s{1,4})?lo\s{1,4}que\s{1,4}(?:te\s{1,4})?(?:he\s{1,4}(?:dicho|escrito|contado)|dije|escrib[i\u00ed]"
    rf"|cont[e\u00e9]|acabo\s{{1,4}}de\s{{1,4}}(?:decir|escribir))\b){_END})"
)
EVERYTHING: Final = re.compile(
    rf"{_START}(?:{_GERMAN}\s{{1,4}}{_ASK}alles(?:{_END}"
    r"|,?\s{1,4}was\s{1,4}du\s{1,4}(?:\u00fcber\s{1,4}mich|von\s{1,4}mir)"
    rf"\s{{1,4}}(?:weisst|gespeichert\s{{1,4}}hast)\b{_END}"
    rf"|\s{{1,4}}\u00fcber\s{{1,4}}mich{_END})"
    rf"|{_FRENCH}\s{{1,4}}tout(?:{_END}|\s{{1,4}}ce\s{{1,4}}que\s{{1,4}}(?:tu\s{{1,4}}sais|vous\s{{1,4}}savez)"
    rf"\s{{1,4}}(?:sur|de)\s{{1,4}}moi{_END}|\s{{1,4}}sur\s{{1,4}}moi{_END})"
    rf"|{_SPANISH}\s{{1,4}}todo(?:{_END}|\s{{1,4}}lo\s{{1,4}}que\s{{1,4}}sabes\s{{1,4}}(?:de|sobre)\s{{1,4}}m[i\u00ed]{_END}"
    rf"|\s{{1,4}}sobre\s{{1,4}}m[i\u00ed]{_END}))"
)
