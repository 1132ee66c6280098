"""A real terminal for tests: a shell in tmux."""

import shutil
import subprocess
from contextlib import contextmanager


class Terminal:
    """A shell in tmux, on a server of its own."""

    def __init__(self, shop, tmp_path):
        self.shop = shop
        self.socket = tmp_path / "tmux"
        env = {**shop.env, "TERM": "xterm-256color"}
        env.pop("TMUX", None)
        self.env = env

    def tmux(self, *words, check=True):
        command = ["tmux", "-f", "/dev/null", "-S", str(self.socket), *words]
        return subprocess.run(command, env=self.env, cwd=self.shop.folder, capture_output=True, text=True, check=check)

    @classmethod
    @contextmanager
    def opened(cls, shop, tmp_path, missing, **size):
        """One that is closed at the end; ``missing`` is called where there is no tmux."""
        if shutil.which("tmux") is None:
            missing("tmux is not installed")
        made = cls(shop, tmp_path)
        made.open(**size)
        yield made
        made.close()

    def open(self, width=140, height=50):
        # Without a profile: it could print, or change the prompt and the PATH.
        self.tmux("new-session", "-d", "-x", str(width), "-y", str(height), "bash --norc --noprofile")

    def resize(self, width, height):
        self.tmux("resize-window", "-x", str(width), "-y", str(height))

    def close(self):
        """As one closes a window: its processes get SIGHUP."""
        server = self.tmux("display-message", "-p", "#{pid}", check=False).stdout.strip()
        self.tmux("kill-server", check=False)
        if server:  # one that is still going down would take the next session with it
            self.shop.wait_for(lambda: self.shop.gone(int(server)))

    def type(self, text):
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def key(self, name):
        self.tmux("send-keys", name)

    def screen(self, *, colours=False):
        return self.tmux("capture-pane", "-p", *(["-e"] if colours else [])).stdout

    def wait_for(self, *texts):
        """Wait until all of them are on the screen, and return it."""
        return self.shop.wait_for(lambda: shown if all(text in (shown := self.screen()) for text in texts) else None)

    def run(self, text):
        """Type a command, and wait until it is over. Returns its exit code and what the screen shows of it."""
        self.tmux("send-keys", "-R")
        self.tmux("clear-history")
        self.type(f"clear; {text}; echo over:$?:")
        self.shop.wait_for(lambda: [line for line in self.screen().splitlines() if line.startswith("over:")])
        shown, _, rest = self.screen().rpartition("over:")
        return int(rest.split(":")[0]), shown
