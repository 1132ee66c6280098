"""A real D-Bus daemon, and on it what a desktop's power manager and systemd-logind answer when asked to stay awake."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import attrs

CONFIG = """\
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*"/><allow receive_sender="*"/><allow receive_type="method_call"/>
    <allow receive_type="method_return"/><allow receive_type="error"/><allow receive_type="signal"/>
    <allow send_type="method_call"/><allow send_type="method_return"/><allow send_type="error"/>
    <allow send_type="signal"/><allow own="*"/><allow user="*"/>
  </policy>
</busconfig>
"""

POWER_MANAGER = "org.freedesktop.PowerManagement"
LOGIND = "org.freedesktop.login1"


@attrs.define
class PowerBus:
    """One bus with both services. ``asked`` are the arguments of every `Inhibit`, ``denies`` refuses all.

    A power manager hands out cookies and forgets those of a client that left the bus, logind hands out one end of a
    pipe and counts it as held until nobody has that end open any more.
    """

    folder: Path
    denies: bool = False
    asked: list[tuple[str, ...]] = attrs.field(factory=list)
    given_back: int = 0
    _cookies: dict[int, str] = attrs.field(factory=dict)
    _pipes: list[int] = attrs.field(factory=list)
    _to_close: list[int] = attrs.field(factory=list)
    _closing: threading.Event = attrs.field(factory=threading.Event)
    _daemon: Any = None
    _thread: Any = None

    @property
    def address(self) -> str:
        return f"unix:path={self.folder / 'bus'}"

    def held(self) -> int:
        """How many hold the machine awake now."""
        still = []
        for reader in self._pipes:
            try:
                if os.read(reader, 1) != b"":
                    still.append(reader)
                else:
                    os.close(reader)
            except BlockingIOError:  # the other end is open
                still.append(reader)
        self._pipes = still
        return len(self._cookies) + len(still)

    def start(self) -> None:
        self.folder.mkdir(mode=0o700)
        config = self.folder / "bus.conf"
        config.write_text(CONFIG.format(socket=self.folder / "bus"))
        argv = ["dbus-daemon", f"--config-file={config}", "--nofork", "--nopidfile", "--print-address"]
        self._daemon = subprocess.Popen(argv, stdout=subprocess.PIPE)
        self._daemon.stdout.readline()  # it listens now
        ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(10)

    def stop(self) -> None:
        self._closing.set()
        self._daemon.terminate()
        self._daemon.communicate()
        self._thread.join(10)

    def _serve(self, ready: threading.Event) -> None:
        from jeepney import MatchRule, MessageType, message_bus
        from jeepney.io.blocking import open_dbus_connection

        with open_dbus_connection(self.address, enable_fds=True) as bus:
            for name in (POWER_MANAGER, LOGIND):
                bus.send_and_get_reply(message_bus.RequestName(name))
            left = MatchRule(type="signal", member="NameOwnerChanged")
            bus.send_and_get_reply(message_bus.AddMatch(left))
            ready.set()
            while not self._closing.is_set():
                try:
                    message = bus.receive(timeout=0.2)
                except TimeoutError:
                    continue
                except (ConnectionError, OSError):  # the daemon was stopped
                    return
                if message.header.message_type is MessageType.method_call:
                    bus.send(self._answer(message))
                    while self._to_close:  # whoever asked has it now, and nobody else may
                        os.close(self._to_close.pop())
                elif message.header.message_type is MessageType.signal and len(message.body) == 3:
                    name, _, new = message.body
                    if not new:
                        self._cookies = {cookie: who for cookie, who in self._cookies.items() if who != name}

    def _answer(self, message: Any) -> Any:
        from jeepney import HeaderFields, new_error, new_method_return

        member = message.header.fields[HeaderFields.member]
        sender = message.header.fields[HeaderFields.sender]
        interface = message.header.fields[HeaderFields.interface]
        if member == "UnInhibit":
            del self._cookies[message.body[0]]
            self.given_back += 1
            return new_method_return(message)
        if self.denies:
            return new_error(message, "org.freedesktop.DBus.Error.AccessDenied", "s", ("Permission denied",))
        self.asked.append(tuple(message.body))
        if interface.startswith(LOGIND):
            reader, writer = os.pipe()
            os.set_blocking(reader, False)
            self._pipes.append(reader)
            self._to_close.append(writer)
            return new_method_return(message, "h", (writer,))
        cookie = len(self.asked)
        self._cookies[cookie] = sender
        return new_method_return(message, "u", (cookie,))
