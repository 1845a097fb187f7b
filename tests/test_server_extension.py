from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace

from jupyter_server.serverapp import ServerApp
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

from labkit import server_extension


class Connection:
    """Stands in for the server's own."""

    def __init__(self) -> None:
        self.calls: list[object] = []
        self.websocket_handler = SimpleNamespace(set_nodelay=lambda on: self.calls.append(("nodelay", on)))

    async def connect(self) -> str:
        self.calls.append("connect")
        return "connected"


def test_the_socket_is_told_before_the_kernel_is_connected() -> None:
    app = SimpleNamespace(
        web_app=SimpleNamespace(settings={"kernel_websocket_connection_class": Connection}), log=logging.getLogger()
    )
    server_extension._load_jupyter_server_extension(app)
    made = app.web_app.settings["kernel_websocket_connection_class"]()
    assert asyncio.run(made.connect()) == "connected"
    assert made.calls == [("nodelay", True), "connect"]


def test_the_server_has_the_setting_that_is_replaced_and_the_class_that_is_extended() -> None:
    assert "kernel_websocket_connection_class" in ServerApp.class_traits()
    extended = server_extension.without_delay(ZMQChannelsWebsocketConnection)
    assert issubclass(extended, ZMQChannelsWebsocketConnection)
    assert server_extension._jupyter_server_extension_points() == [{"module": "labkit.server_extension"}]
