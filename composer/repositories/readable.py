"""A Readable as the parameters of a query."""

from typing import Any

from composer.visibility import Readable


def readable_parameters(readable: Readable) -> dict[str, Any]:
    """The parameters by which a query reads only what a viewer may read."""
    return {
        "namespaces": list(readable.all_namespaces),
        "pooled": list(readable.pooled),
        "visibilities": [str(visibility) for visibility in readable.visibilities],
        "readers": list(readable.readers),
        "vendor": readable.vendor,
    }
