"""Slack's events, commands and interactions by HTTP."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from bot.slack.signed_http import SLACK_EVENTS_PATH
from bot.web.dependencies import Nexus
from bot.web.problems import problem

router = APIRouter()


@router.post(SLACK_EVENTS_PATH, include_in_schema=False)
async def receive(request: Request, nexus: Nexus) -> Response:
    """Take what Slack signed; Slack looks at the status alone where it is no 200."""
    assert nexus.slack is not None
    answer = await nexus.slack.receive(await request.body(), request.headers, request.url.query)
    if answer.status >= 400:
        return problem(answer.status)
    return Response(answer.body, answer.status, dict(answer.headers))
