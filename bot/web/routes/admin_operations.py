"""`/v1/admin`: health, jobs, backups and settings of a workspace, and of the installation where that is its own."""

from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Query, Response
from pydantic import BaseModel, ConfigDict, Field

from bot.web.call import IS_REPLAYED, ONCE, ApiCall, Calling
from bot.web.dependencies import Nexus
from bot.web.json_answer import json_answer
from bot.web.operating import installation_jobs, operating, require_installation, start_job
from bot.web.principal import Admin
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.shapes.values import Count, told
from composer.layers.retention_settings import (
    RETENTION_SETTINGS,
    change_retention,
    chosen_retention,
    configured_retention,
)
from composer.layers.retrieval_settings import RETRIEVAL_SETTINGS, STRATEGIES, Setting
from composer.layers.tenant_settings import AS_CONFIGURED, change_retrieval, chosen_retrieval
from composer.operations.backups import stored_backups
from composer.operations.in_force import agents_in_force, settings_in_force
from composer.repositories.database import Transaction
from composer.settings.values import MAX_RETENTION_DAYS, MIN_USAGE_DAYS
from composer.visibility import EntryAccess

router = Router("/v1/admin", tags=["admin"])
_ERRORS: Final[dict[int | str, dict[str, Any]]] = documented(401, 403, 429)


class HealthCheckLine(BaseModel):
    """One thing that Nexus needs. `ok` is null for what is worth knowing and harms nothing."""

    name: str
    ok: bool | None
    message: str


class HealthReport(BaseModel):
    """What is wrong first."""

    items: list[HealthCheckLine]


class JobRunFigures(BaseModel):
    """A run of a job: done, failed, late (stopped at its time limit) or running."""

    state: str
    due_at: datetime
    started_at: datetime
    ended_at: datetime | None
    done: int
    failed: int
    message: str


class JobLine(BaseModel):
    """A job. `overdue_since`: a run that was due then is not done. `may_run`: it can be started here."""

    name: str
    what: str
    next_at: datetime | None
    overdue_since: datetime | None
    may_run: bool
    last: JobRunFigures | None


class JobLines(BaseModel):
    """All jobs."""

    items: list[JobLine]


class BackupLine(BaseModel):
    """A backup in the data folder. `size` is in bytes."""

    name: str
    made_at: datetime
    size: int


class BackupLines(BaseModel):
    """The backups in the data folder, newest first."""

    items: list[BackupLine]


class AgentLine(BaseModel):
    """An agent as it is configured. `context`: how many tokens its model takes."""

    slug: str
    name: str
    model: str
    fallbacks: list[str]
    context: int
    tools: bool


class RetrievalLine(BaseModel):
    """A setting that admins may change: its value, that of the configuration, and what it does."""

    name: str
    value: str | int
    configured: str | int
    what: str


class WorkspaceSettings(BaseModel):
    """What holds now. Admins change `retrieval`, and `retention`, which says for how many days what is kept;
    `configured` and `agents` are changed in nexus.toml or the environment, by whoever runs Nexus."""

    retrieval: list[RetrievalLine]
    retention: list[RetrievalLine]
    configured: dict[str, str]
    agents: list[AgentLine]


def _told(name: str) -> Any:
    setting = RETRIEVAL_SETTINGS[name]
    return told(minimum=setting.minimum, maximum=setting.maximum)


class WorkspaceSettingsUpdate(BaseModel):
    """What to set; null lets the configured value apply again. What is left out stays."""

    model_config = ConfigDict(extra="forbid")

    strategy: Annotated[str, told(enum=list(STRATEGIES))] | None = Field(default_factory=lambda: None)
    top_k: Annotated[Count, _told("top_k")] | None = Field(default_factory=lambda: None)
    recall_tokens: Annotated[Count, _told("recall_tokens")] | None = Field(default_factory=lambda: None)
    summary_tokens: Annotated[Count, _told("summary_tokens")] | None = Field(default_factory=lambda: None)
    retention_days: Annotated[Count, _told("retention_days")] | None = Field(default_factory=lambda: None)
    keep_days: Count | None = Field(default_factory=lambda: None, ge=0, le=MAX_RETENTION_DAYS)
    prompt_days: Count | None = Field(default_factory=lambda: None, ge=1, le=MAX_RETENTION_DAYS)
    usage_days: Count | None = Field(default_factory=lambda: None, ge=MIN_USAGE_DAYS, le=MAX_RETENTION_DAYS)


@router.get("/health", summary="Check the workspace", response_model=HealthReport, responses=_ERRORS)
async def admin_health(_: Admin, nexus: Nexus, call: Calling) -> HealthReport:
    """What nexus doctor says of this workspace, without asking models or platforms."""
    found = await operating(nexus, call.principal.tenant_id)
    return HealthReport(items=[HealthCheckLine(name=each.name, ok=each.ok, message=each.said) for each in found.health])


@router.get("/jobs", summary="List the jobs", response_model=JobLines, responses={**_ERRORS, **documented(404)})
async def admin_jobs(_: Admin, nexus: Nexus, call: Calling) -> JobLines:
    """The scheduled jobs with their last runs. They work for the whole installation: 404 where it has several
    workspaces, and this is not that of its owner."""
    found = await installation_jobs(nexus, call.principal.tenant_id)
    return JobLines(
        items=[
            JobLine(
                name=each.name,
                what=each.help,
                next_at=each.next_at,
                overdue_since=each.overdue_since,
                may_run=each.may_run,
                last=None
                if each.last is None
                else JobRunFigures(
                    state=each.last.state,
                    due_at=each.last.due_at,
                    started_at=each.last.started_at,
                    ended_at=each.last.ended_at,
                    done=each.last.done,
                    failed=each.last.failed,
                    message=each.last.note,
                ),
            )
            for each in found
        ]
    )


@router.post(
    "/jobs/{name}/run",
    summary="Run a job now",
    status_code=202,
    response_class=Response,
    responses={**_ERRORS, **documented(404)},
)
async def run_job(_: Admin, nexus: Nexus, call: Calling, name: str) -> Response:
    """Begin a run, which goes on by itself. Running a job twice changes nothing."""
    await start_job(nexus, call.principal.tenant_id, name)
    return Response(status_code=202)


@router.get(
    "/backups", summary="List the backups", response_model=BackupLines, responses={**_ERRORS, **documented(404)}
)
async def admin_backups(_: Admin, nexus: Nexus, call: Calling) -> BackupLines:
    """Those in the data folder. They hold the whole installation: 404 as for the jobs."""
    await require_installation(nexus, call.principal.tenant_id)
    found = stored_backups(call.app.settings.home)
    return BackupLines(items=[BackupLine(name=each.name, made_at=each.made_at, size=each.size) for each in found])


@router.get("/settings", summary="Show what is set", response_model=WorkspaceSettings, responses=_ERRORS)
async def admin_settings(_: Admin, call: Calling) -> WorkspaceSettings:
    """The settings that are in force. No key and no secret is among them."""
    async with call.reading() as (tx, _access):
        return await _settings(call, tx)


@router.patch(
    "/settings",
    summary="Change what is set",
    response_model=WorkspaceSettings,
    responses={200: {"headers": ONCE}, **documented(400, 401, 403, 409, 422, 429)},
)
async def change_admin_settings(
    _: Admin,
    call: Calling,
    sent: WorkspaceSettingsUpdate,
    confirm: Annotated[
        bool, Query(description="Without it nothing is changed that erases more than before, and 409 says what.")
    ] = False,
) -> Response:
    """As /nexus settings does: it holds from the next question on, and is recorded in the audit log. `keep_days` (0:
    for ever), `prompt_days` and `usage_days` erase what is older, for good, in the next night."""
    changed = sent.model_dump(exclude_unset=True)
    kept = {name: changed.pop(name) for name in RETENTION_SETTINGS if name in changed}

    async def shown(tx: Transaction, access: EntryAccess) -> WorkspaceSettings:
        return await _settings(call, tx)

    async def change(tx: Transaction, access: EntryAccess) -> WorkspaceSettings:
        tx.audit.act_for(access.user)
        configured = configured_retention(call.app.settings, call.principal.tenant)
        await change_retention(tx, kept, configured, call.now, confirmed=confirm)
        for name, value in changed.items():
            await change_retrieval(tx, name, AS_CONFIGURED if value is None else str(value), call.now)
        return await _settings(call, tx)

    found, repeated = await call.change(change, shown)
    return json_answer(found, headers=IS_REPLAYED if repeated else None)


async def _settings(call: ApiCall, tx: Transaction) -> WorkspaceSettings:
    app, who = call.app, call.principal
    configured = app.directory.retrieval(who.tenant_id)
    chosen = await chosen_retrieval(tx, configured)
    as_configured = configured_retention(app.settings, who.tenant)
    kept = await chosen_retention(tx, as_configured)
    fixed = settings_in_force(app.settings, app.directory, who.tenant_id, who.tenant)
    return WorkspaceSettings(
        retrieval=[_line(each, chosen, configured) for each in RETRIEVAL_SETTINGS.values()],
        retention=[_line(each, kept, as_configured) for each in RETENTION_SETTINGS.values()],
        configured={each.name: each.value for each in fixed},
        agents=[
            AgentLine(
                slug=each.slug,
                name=each.name,
                model=each.model,
                fallbacks=list(each.fallbacks),
                context=each.context,
                tools=each.tools,
            )
            for each in agents_in_force(app.directory, who.tenant_id)
        ],
    )


def _line(setting: Setting, chosen: object, configured: object) -> RetrievalLine:
    name = setting.name
    return RetrievalLine(
        name=name, value=getattr(chosen, name), configured=getattr(configured, name), what=setting.help
    )
