"""`/v1/settings`: what a person sets for themselves."""

from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from bot.web.call import IS_REPLAYED, ONCE, Calling
from bot.web.json_answer import json_answer
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.routes.query import SearchStrategy
from bot.web.shapes.values import Count, Flag
from composer.entries.search import MAX_ANSWER_TOKENS
from composer.model import PersonalSettings
from composer.people.own_settings import change_own_settings, own_settings
from composer.repositories.database import Transaction
from composer.text.zones import zone_named
from composer.visibility import EntryAccess

router = Router("/v1/settings", tags=["settings"])
MAX_SETTING_DAYS: Final = 365
_CHANGED: Final[dict[int | str, dict[str, Any]]] = {200: {"headers": ONCE}, **documented(400, 401, 403, 422)}
Budget = Annotated[Count, Field(ge=0, le=MAX_ANSWER_TOKENS)]


def _zone(name: str) -> str:
    if zone_named(name) is None:
        raise ValueError("a time zone is named like Europe/Berlin, or UTC")
    return name


Days = Annotated[Count, Field(ge=1, le=MAX_SETTING_DAYS)]
Zone = Annotated[str, AfterValidator(_zone)]


class SettingsResponse(BaseModel):
    """What a person has set. `recall`: whether tools, and questions over the API, are given anything. `strategy` (null:
    that of the workspace) and `budget` (tokens) are for searches that name none. `trash_days`: how long what was thrown
    away can be restored. `keep_days`: how many days after their last change entries are kept that tools wrote for the
    person alone; null: until somebody erases them. `timezone`: that of their days and hours; null: the one that their
    platform says, or else the workspace's. `changed_at` is null while all is as it is by default."""

    recall: bool
    strategy: SearchStrategy | None
    budget: int
    trash_days: int
    keep_days: int | None
    timezone: str | None
    changed_at: datetime | None


class SettingsUpdate(BaseModel):
    """What to set; what is left out stays as it is."""

    model_config = ConfigDict(extra="forbid")

    recall: Flag = Field(default_factory=bool)  # no default is shown: what is left out is not changed
    strategy: SearchStrategy | None = Field(default_factory=lambda: None)
    budget: Budget = Field(default_factory=int)
    trash_days: Days = Field(default_factory=lambda: MAX_SETTING_DAYS)
    keep_days: Days | None = Field(default_factory=lambda: None)
    timezone: Zone | None = Field(default_factory=lambda: None)


@router.get("", summary="Show one's settings", response_model=SettingsResponse, responses=documented(401, 403))
async def show_settings(call: Calling) -> SettingsResponse:
    """What the person has set, by any of their accounts. It needs the permission manage."""
    async with call.reading() as (_, access):
        return _shown(own_settings(call.principal, access))


@router.patch("", summary="Change one's settings", response_model=SettingsResponse, responses=_CHANGED)
async def change_settings(call: Calling, sent: SettingsUpdate) -> Response:
    """It holds for the next request, in every process. It needs the permission manage."""
    changed = sent.model_dump(mode="json", exclude_unset=True)

    async def shown(tx: Transaction, access: EntryAccess) -> PersonalSettings:
        return own_settings(call.principal, access)

    async def change(tx: Transaction, access: EntryAccess) -> PersonalSettings:
        own_settings(call.principal, access)
        return await change_own_settings(tx, access, changed, call.now, call.app.directory.zone(access.tenant_id))

    found, repeated = await call.change(change, shown, alone=True)
    return json_answer(_shown(found), headers=IS_REPLAYED if repeated else None)


def _shown(settings: PersonalSettings) -> SettingsResponse:
    return SettingsResponse(
        recall=settings.recall,
        strategy=None if settings.strategy is None else SearchStrategy(settings.strategy),
        budget=settings.budget,
        trash_days=settings.trash_days,
        keep_days=settings.keep_days,
        timezone=settings.timezone,
        changed_at=settings.changed_at,
    )
