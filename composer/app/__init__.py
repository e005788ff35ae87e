"""The composition root: settings in, a running Nexus out."""

from composer.app.app import App, open_app

__all__ = ["App", "open_app"]
