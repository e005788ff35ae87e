"""Values that a request holds, taken as they are written: no number stands for a time, and no text for a number."""

import re
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, StrictBool, StrictInt

from composer.text.moments import moment

_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]", re.ASCII)


def _written(value: Any) -> Any:
    if isinstance(value, datetime) or (isinstance(value, str) and _DAY.match(value)):
        return value
    raise ValueError("a time is written with its zone, as in 2026-01-31T09:00:00Z")


def told(**schema: Any) -> Any:
    """What the document says of a value besides its type; a use case sees to it, with its own sentence."""
    return Field(json_schema_extra=schema)


Moment = Annotated[AwareDatetime, BeforeValidator(_written)]
AskedMoment = Annotated[Moment, AfterValidator(moment)]  # in addresses: the database knows fewer times than Python
Flag = StrictBool  # in bodies: an address has only text
Count = StrictInt  # likewise
