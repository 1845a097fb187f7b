"""A Jupyter server extension: small messages of a widget are sent at once (TCP_NODELAY on the kernels' websockets).

Tornado leaves Nagle's algorithm on: an answer waits for the acknowledgement of what was sent before, and a handle that
is dragged gets its numbers some 25 ms late. `make lab` and the container switch this extension on; it is nowhere else.

    jupyter lab --ServerApp.jpserver_extensions="{'labkit.server_extension': True}"
"""

from __future__ import annotations

from typing import Any

_SETTING = "kernel_websocket_connection_class"


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """Say to the server which module has the extension."""
    return [{"module": "labkit.server_extension"}]


def _load_jupyter_server_extension(app: Any) -> None:
    """Let the connections that the server makes from now on switch Nagle's algorithm off."""
    settings = app.web_app.settings
    settings[_SETTING] = without_delay(settings[_SETTING])
    app.log.info("labkit: TCP_NODELAY on the kernels' websockets")


def without_delay(connection: Any) -> type:
    """A connection class that does as the given one does, on a socket that sends small messages at once."""

    class WithoutDelay(connection):  # type: ignore[misc]
        """The same connection, without delay."""

        async def connect(self) -> Any:
            """Connect to the kernel; the websocket is open by then."""
            self.websocket_handler.set_nodelay(True)
            return await super().connect()

    return WithoutDelay
