"""Finding plugins: real distribution folders on the path, good and bad."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runq.discovery import Plugins, load, offers
from runq.plugin_list import plugin_rows, plugin_text
from runq_schemas import PluginError
from runq_schemas.events import UsedPlugin

GOOD = '''
import attrs

@attrs.frozen
class Good:
    """Does nothing,
    on two lines."""

    host: str = attrs.field(default="box", metadata={"description": "Where it is."})
    port: int = attrs.field(metadata={"description": "Its port."}, kw_only=True)
'''


class Site:
    """A folder like site-packages: modules, and the metadata of distributions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def module(self, name: str, text: str) -> None:
        (self.folder / f"{name}.py").write_text(text)

    def distribution(
        self, name: str, *points: str, version: str = "1.0", group: str = "runq.reset", metadata: bool = True
    ) -> None:
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        if metadata:
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n" + "".join(f"{point}\n" for point in points))


@pytest.fixture
def make_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Site]]:
    before = set(sys.modules)
    made: list[Path] = []

    def make() -> Site:
        folder = tmp_path / f"site{len(made)}"
        folder.mkdir()
        made.append(folder)
        monkeypatch.syspath_prepend(folder)
        return Site(folder)

    yield make
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def site(make_site: Callable[[], Site]) -> Site:
    return make_site()


def test_the_built_in_plugins_come_through_entry_points() -> None:
    found = {(offer.kind, offer.name): offer.distribution for offer in offers()}
    assert set(found) >= {
        ("reset", "none"),
        ("reset", "command"),
        ("reset", "server"),
        ("reset", "lms"),
        ("reset", "ollama"),
        ("probe", "system"),
        ("probe", "psutil_used"),
        ("harness", "touchstone"),
        ("harness", "command"),
    }
    assert set(found.values()) == {"runq"}


def test_listing_imports_nothing(site: Site) -> None:
    site.module("third_party", "raise SystemExit('imported')")
    site.distribution("third-party", "mine = third_party:Good")
    (mine,) = (offer for offer in offers() if offer.name == "mine")
    assert (mine.kind, mine.distribution, mine.version, mine.target) == (
        "reset",
        "third-party",
        "1.0",
        "third_party:Good",
    )
    assert "third_party" not in sys.modules


def test_a_plugin_is_made_with_its_options(site: Site) -> None:
    site.module("third_party", GOOD)
    site.distribution("third-party", "mine = third_party:Good", version="2.5")
    plugins = Plugins()
    made = plugins.make("reset", "mine", {"port": 80})
    assert (made.host, made.port) == ("box", 80)
    assert plugins.load("reset", "mine") is plugins.load("reset", "mine"), "its class is imported once"
    used = tuple(offer.used() for offer in plugins.used([("reset", "mine"), ("probe", "system"), ("reset", "mine")]))
    assert used[0] == UsedPlugin(group="runq.reset", name="mine", distribution="third-party", version="2.5")
    assert len(used) == 2


@pytest.mark.parametrize(
    ("kind", "name", "hint"),
    [
        ("reset", "olama", "did you mean 'ollama'? known are "),
        (
            "probe",
            "sytem",
            "did you mean 'system'? known are amd, cgroup, macos, nvidia, pressure, process, psutil_used, system; "
            "`runq plugins` lists them",
        ),
        ("harness", "zzz", "known are command, inspect, lm_eval, touchstone; `runq plugins` lists them"),
        ("harness", "ollama", "known are "),
    ],
)
def test_an_unknown_name_names_the_nearest(kind: str, name: str, hint: str) -> None:
    with pytest.raises(PluginError, match=f"there is no {kind} plugin named '{name}'") as caught:
        Plugins().find(kind, name)
    assert caught.value.remedy.startswith(hint)
    assert caught.value.exit_code == 2


def test_a_name_offered_twice_names_both(make_site: Callable[[], Site]) -> None:
    one, other = make_site(), make_site()
    one.module("third_party", GOOD)
    one.distribution("third-party", "mine = third_party:Good")
    other.distribution("fourth-party", "mine = third_party:Good", version="3.0")
    with pytest.raises(PluginError, match="offered twice") as caught:
        Plugins().load("reset", "mine")
    assert "fourth-party 3.0 and third-party 1.0" in caught.value.message
    assert caught.value.remedy == "uninstall one of them: fourth-party, third-party"
    assert Plugins().load("reset", "none").cls is not None, "it stops only who uses it"
    rows = [row for row in plugin_rows() if row["name"] == "mine"]
    assert [row["distribution"] for row in rows] == ["fourth-party", "third-party"]
    assert all(row["error"] == "offered by more than one distribution; a queue that uses it is refused" for row in rows)
    assert "offered by more than one distribution" in plugin_text(plugin_rows())


def test_one_distribution_seen_twice_counts_once(make_site: Callable[[], Site]) -> None:
    # An editable install beside a build folder: the first on the path is the one that Python imports.
    older, newer = make_site(), make_site()
    older.distribution("third-party", "mine = old_module:Good", version="1.0")
    newer.distribution("Third_Party", "mine = third_party:Good", version="2.0")
    newer.module("third_party", GOOD)
    (mine,) = (offer for offer in offers() if offer.name == "mine")
    assert (mine.version, mine.target) == ("2.0", "third_party:Good")
    assert Plugins().load("reset", "mine").cls is not None


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("import no_such_module_at_all", "ModuleNotFoundError: No module named 'no_such_module_at_all'"),
        ("raise RuntimeError('no\\nlicence')", "RuntimeError: no licence"),
        ("raise SystemExit('needs Python 4')", "SystemExit: needs Python 4"),
        ("def f(:", "SyntaxError"),
        ("x = 1", "AttributeError: module 'third_party' has no attribute 'Good'"),
        ("class Good: pass", "third_party:Good is not an attrs class"),
        ("Good = 7", "third_party:Good is not an attrs class"),
    ],
)
def test_a_broken_plugin_is_a_value_and_stops_only_who_uses_it(site: Site, text: str, error: str) -> None:
    site.module("third_party", text)
    site.distribution("third-party", "mine = third_party:Good")
    plugins = Plugins()
    with pytest.raises(PluginError, match=r"'mine' of third-party 1\.0 is broken") as caught:
        plugins.make("reset", "mine", {})
    assert "repair or uninstall third-party" in caught.value.remedy
    assert plugins.make("reset", "none", {}) is not None
    (row,) = (row for row in plugin_rows() if row["name"] == "mine")
    assert row["error"].startswith(f"broken: {error}")
    assert (row["about"], row["options"]) == ("", [])
    assert f"mine         broken: {error}" in plugin_text(plugin_rows())


def test_what_a_plugin_prints_at_import_is_no_result(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.module("third_party", "print('hello from the plugin')\n" + GOOD)
    site.distribution("third-party", "mine = third_party:Good")
    assert Plugins().load("reset", "mine").cls is not None
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "hello from the plugin\n")


def test_a_distribution_without_metadata_hides_nobody(site: Site) -> None:
    # An installation that broke off.
    site.module("third_party", GOOD)
    site.distribution("third-party", "mine = third_party:Good", metadata=False)
    (mine,) = (offer for offer in offers() if offer.name == "mine")
    assert (mine.distribution, mine.version) == ("unknown", "unknown")
    assert load(mine).cls is not None
    assert any(offer.name == "ollama" for offer in offers())


def test_a_damaged_list_of_entry_points_hides_nobody(site: Site) -> None:
    site.distribution("third-party", "this is no entry point")
    assert any(offer.name == "ollama" for offer in offers())


def test_a_plugin_is_listed_with_its_options(site: Site) -> None:
    site.module("third_party", GOOD)
    site.distribution("third-party", "mine = third_party:Good")
    (row,) = (row for row in plugin_rows() if row["name"] == "mine")
    assert row == {
        "kind": "reset",
        "name": "mine",
        "distribution": "third-party",
        "version": "1.0",
        "about": "Does nothing,",
        "options": [
            {"name": "host", "required": False, "default": "box", "about": "Where it is."},
            {"name": "port", "required": True, "default": None, "about": "Its port."},
        ],
        "error": "",
    }
    text = plugin_text(plugin_rows())
    assert "  mine         Does nothing,  [third-party 1.0]\n      host [box]: Where it is." in text
    assert "      port (required): Its port." in text


def test_every_built_in_option_says_what_it_is() -> None:
    for row in plugin_rows():
        assert row["about"] and not row["error"], row["name"]
        assert all(option["about"] for option in row["options"]), row["name"]
