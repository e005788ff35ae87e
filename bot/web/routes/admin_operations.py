"""`/v1/admin`: health, jobs, backups and settings of a workspace, and of the installation where that is its own."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from fastapi import Query, Response
from pydantic import BaseModel, Field

from bot.web.call import IS_REPLAYED, ONCE, ApiCall, Calling
from bot.web.dependencies import Nexus
from bot.web.json_answer import json_answer
from bot.web.operating import (
    installation_jobs,
    is_of_installation,
    operating,
    require_installation,
    start_job,
)
from bot.web.principal import Admin
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.shapes.entries import RequestBody
from bot.web.shapes.values import Count, Flag, told
from composer.ingest.chosen_settings import (
    MAX_AGENT_NAME_CHARS,
    MAX_FALLBACK_MODELS,
    MAX_MODEL_CHARS,
    MAX_PERSONA_CHARS,
    PLAN,
)
from composer.ingest.retention_settings import RETENTION
from composer.layers.retrieval_settings import RETRIEVAL, STRATEGIES
from composer.layers.tenant_settings import Group
from composer.operations.backups import stored_backups
from composer.operations.changing_settings import (
    OF_PLAN,
    OF_QUARANTINE,
    OF_RETENTION,
    OF_RETRIEVAL,
    ChangeableSettings,
    changeable,
)
from composer.operations.in_force import settings_in_force
from composer.repositories.database import Transaction
from composer.settings.values import Effort
from composer.visibility import EntryAccess

MAX_CHANGED_AGENTS: Final = 100
MAX_PLAN_CHARS: Final = 100
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


class ChangedSetting(BaseModel):
    """A setting that admins may change: its value (null: without a limit), that of the configuration, and what it
    does. `operator`: only an admin of the organisation that looks after the installation changes it."""

    name: str
    value: str | int | bool | list[str] | None
    configured: str | int | bool | list[str] | None
    what: str
    operator: bool


class WorkspaceSettings(BaseModel):
    """What holds now, and what admins may change of it: how memories are recalled, for how many days what is kept,
    whose writing waits for approval, what the plan gives, and the agents, by slug. `configured` is changed in
    nexus.toml or the environment, by whoever runs Nexus."""

    retrieval: list[ChangedSetting]
    retention: list[ChangedSetting]
    quarantine: list[ChangedSetting]
    plan: list[ChangedSetting]
    agents: dict[str, list[ChangedSetting]]
    configured: dict[str, str]


def _of(group: Group, name: str) -> Any:
    """What the document says of a number."""
    setting = group.settings[name]
    return told(minimum=setting.minimum, maximum=setting.maximum)


class QuarantineUpdate(RequestBody):
    """Whose writing waits for approval."""

    guest: Flag | None = Field(default_factory=lambda: None)
    tool: Flag | None = Field(default_factory=lambda: None)


Unlimited = Literal["unlimited"]


class PlanUpdate(RequestBody):
    """Which of the plans of nexus.toml the organisation has ("": none), and how much it may use in place of that."""

    name: Annotated[str, Field(max_length=MAX_PLAN_CHARS)] | None = Field(default_factory=lambda: None)
    entries: Annotated[Count, _of(PLAN, "entries")] | Unlimited | None = Field(default_factory=lambda: None)
    writes: Annotated[Count, _of(PLAN, "writes")] | Unlimited | None = Field(default_factory=lambda: None)
    reads: Annotated[Count, _of(PLAN, "reads")] | Unlimited | None = Field(default_factory=lambda: None)
    searches: Annotated[Count, _of(PLAN, "searches")] | Unlimited | None = Field(default_factory=lambda: None)
    chats: Annotated[Count, _of(PLAN, "chats")] | Unlimited | None = Field(default_factory=lambda: None)
    tokens: Annotated[Count, _of(PLAN, "tokens")] | Unlimited | None = Field(default_factory=lambda: None)


ModelName = Annotated[str, Field(max_length=MAX_MODEL_CHARS)]


class AgentUpdate(RequestBody):
    """What to change of an agent. All but `name` and `persona` is there for an agent with a model."""

    name: Annotated[str, Field(max_length=MAX_AGENT_NAME_CHARS)] | None = Field(default_factory=lambda: None)
    persona: Annotated[str, Field(max_length=MAX_PERSONA_CHARS)] | None = Field(default_factory=lambda: None)
    model: ModelName | None = Field(default_factory=lambda: None)
    window: Annotated[Count, told(minimum=1_000, maximum=100_000_000)] | None = Field(default_factory=lambda: None)
    reply_tokens: Annotated[Count, told(minimum=1, maximum=1_000_000)] | None = Field(default_factory=lambda: None)
    reasoning_effort: Effort | Literal[""] | None = Field(default_factory=lambda: None)
    fallback_models: Annotated[list[ModelName], Field(max_length=MAX_FALLBACK_MODELS)] | None = Field(
        default_factory=lambda: None
    )
    summary_model: ModelName | None = Field(default_factory=lambda: None)
    tools: Flag | None = Field(default_factory=lambda: None)
    tool_tokens: Annotated[Count, told(minimum=100, maximum=1_000_000)] | None = Field(default_factory=lambda: None)
    images: Flag | None = Field(default_factory=lambda: None)


class WorkspaceSettingsUpdate(RequestBody):
    """What to set; null lets the configured value apply again. What is left out stays."""

    strategy: Annotated[str, told(enum=list(STRATEGIES))] | None = Field(default_factory=lambda: None)
    top_k: Annotated[Count, _of(RETRIEVAL, "top_k")] | None = Field(default_factory=lambda: None)
    recall_tokens: Annotated[Count, _of(RETRIEVAL, "recall_tokens")] | None = Field(default_factory=lambda: None)
    summary_tokens: Annotated[Count, _of(RETRIEVAL, "summary_tokens")] | None = Field(default_factory=lambda: None)
    retention_days: Annotated[Count, _of(RETRIEVAL, "retention_days")] | None = Field(default_factory=lambda: None)
    keep_days: Annotated[Count, _of(RETENTION, "keep_days")] | None = Field(default_factory=lambda: None)
    prompt_days: Annotated[Count, _of(RETENTION, "prompt_days")] | None = Field(default_factory=lambda: None)
    usage_days: Annotated[Count, _of(RETENTION, "usage_days")] | None = Field(default_factory=lambda: None)
    quarantine: QuarantineUpdate | None = Field(default_factory=lambda: None)
    plan: PlanUpdate | None = Field(default_factory=lambda: None)
    agents: Annotated[dict[str, AgentUpdate], Field(max_length=MAX_CHANGED_AGENTS)] | None = Field(
        default_factory=lambda: None
    )

    def by_group(self) -> dict[str, dict[str, Any]]:
        """What is sent, by the names of the groups."""
        sent = self.model_dump(exclude_unset=True)
        agents = {f"agents.{slug}": values for slug, values in (sent.get("agents") or {}).items()}
        of = {OF_RETRIEVAL: RETRIEVAL, OF_RETENTION: RETENTION}
        flat = {name: {key: sent[key] for key in group.settings if key in sent} for name, group in of.items()}
        named = {name: sent.get(name) or {} for name in (OF_QUARANTINE, OF_PLAN)}
        return {name: values for name, values in (flat | named | agents).items() if values}


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
    of = changeable(call.app.settings, call.app.directory, call.principal.tenant_id, call.principal.tenant)
    async with call.reading() as (tx, _access):
        return _settings(call, of, await tx.settings.all())


@router.patch(
    "/settings",
    summary="Change what is set",
    response_model=WorkspaceSettings,
    responses={200: {"headers": ONCE}, **documented(400, 401, 403, 404, 409, 422, 429)},
)
async def change_admin_settings(
    _: Admin,
    nexus: Nexus,
    call: Calling,
    sent: WorkspaceSettingsUpdate,
    confirm: Annotated[
        bool, Query(description="Without it nothing is changed that erases more than before, and 409 says what.")
    ] = False,
) -> Response:
    """It holds from the next question on, in every process, and is recorded in the audit log. `keep_days` (0: for
    ever), `prompt_days` and `usage_days` erase what is older, for good, in the next night. What costs whoever looks
    after the installation (`operator`) their admins change alone."""
    of = changeable(call.app.settings, call.app.directory, call.principal.tenant_id, call.principal.tenant)
    operator = await is_of_installation(nexus, call.principal.tenant_id)

    async def shown(tx: Transaction, access: EntryAccess) -> WorkspaceSettings:
        return _settings(call, of, await tx.settings.all())

    async def change(tx: Transaction, access: EntryAccess) -> WorkspaceSettings:
        tx.audit.act_for(access.user)
        for name, values in sent.by_group().items():
            await of.change(tx, name, values, call.now, operator=operator, confirmed=confirm)
        return await shown(tx, access)

    found, repeated = await call.change(change, shown)
    return json_answer(found, headers=IS_REPLAYED if repeated else None)


def _settings(call: ApiCall, of: ChangeableSettings, stored: Mapping[str, str]) -> WorkspaceSettings:
    def lines(name: str) -> list[ChangedSetting]:
        return [
            ChangedSetting(
                name=each.setting.name,
                value=each.value,
                configured=each.configured,
                what=each.setting.help,
                operator=each.setting.operator,
            )
            for each in of.lines(name, stored)
        ]

    who = call.principal
    app = call.app
    fixed = settings_in_force(app.settings, app.directory, who.tenant_id, who.tenant, app.embedder.name)
    return WorkspaceSettings(
        retrieval=lines(OF_RETRIEVAL),
        retention=lines(OF_RETENTION),
        quarantine=lines(OF_QUARANTINE),
        plan=lines(OF_PLAN),
        agents={slug: lines(f"agents.{slug}") for slug in of.agents},
        configured={each.name: each.value for each in fixed},
    )
