"""The router of a file of routes: their bodies are JSON, and all of them may answer any problem."""

from collections.abc import Sequence
from enum import Enum

from fastapi import APIRouter
from fastapi.params import Depends
from fastapi.routing import APIRoute

from bot.web.bodies import JsonRoute
from bot.web.problems import documented


class Router(APIRouter):
    """A router whose routes are complete: an app takes them as they are. One that FastAPI includes would be made anew
    for each app, and looked through at each request."""

    def __init__(
        self,
        prefix: str = "",
        *,
        tags: Sequence[str | Enum] = (),
        dependencies: Sequence[Depends] = (),
        include_in_schema: bool = True,
        route_class: type[JsonRoute] = JsonRoute,
    ) -> None:
        """As of FastAPI's."""
        super().__init__(
            prefix=prefix,
            tags=list(tags),
            dependencies=dependencies,
            include_in_schema=include_in_schema,
            route_class=route_class,
            responses=documented(),
            generate_unique_id_function=_operation_id,
        )


def _operation_id(route: APIRoute) -> str:
    """The name of the route's function, which is unique among all routes."""
    return route.name
