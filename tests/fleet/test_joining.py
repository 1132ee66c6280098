"""Who may take part: by certificate, by version, by plugins, by what it sees of the runs folder."""

import ssl
import stat
from pathlib import Path

import pytest

from runq.fleet.dask_transport import Own
from runq.fleet.secure import is_loopback, make_certificates, security_for
from runq_schemas.errors import UsageError

MINE = ("harness", "command", "runq", "0.1.0")
OWN = Own(versions={"runq": "0.1.0"}, plugins=frozenset({MINE}), token="t", token_path=Path("/runs/journal.db.shared"))


def seen(**changes):
    return {"versions": {"runq": "0.1.0"}, "plugins": [list(MINE)], "shares": True, **changes}


def test_who_has_what_the_head_has_takes_part():
    assert OWN.refuses(seen()) == ("", "")


@pytest.mark.parametrize(
    ("there", "why", "remedy"),
    [
        ({"versions": {"runq": "0.2.0"}}, "it has runq 0.2.0, the head has 0.1.0", "install runq 0.1.0 there"),
        (
            {"plugins": []},
            "the head has the harness plugin 'command' of runq 0.1.0, and it has none",
            "install runq 0.1.0 there",
        ),
        (
            {"plugins": [["harness", "command", "mine", "3"]]},
            "the head has the harness plugin 'command' of runq 0.1.0, and it has it of mine 3",
            "install runq 0.1.0 there",
        ),
        (
            {"shares": False},
            "it does not see the runs folder /runs",
            "share that folder, or mount it at the same path there",
        ),
    ],
)
def test_who_differs_does_not(there, why, remedy):
    assert OWN.refuses(seen(**there)) == (why, remedy)


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("tcp://127.0.0.1:8786", True),
        ("tcp://127.9.9.9:1", True),
        ("tcp://[::1]:8786", True),
        ("tcp://localhost:8786", True),
        ("tcp://192.0.2.1:8786", False),
        ("tcp://head:8786", False),
        ("tcp://localhost.example:1", False),
    ],
)
def test_what_is_loopback(address, loopback):
    assert is_loopback(address) is loopback


def test_in_the_clear_only_to_this_machine_or_when_somebody_says_so(tmp_path):
    assert security_for("tcp://127.0.0.1:8786", tmp_path, insecure=False) is None
    with pytest.raises(UsageError, match="could run commands") as refused:
        security_for("tcp://192.0.2.1:8786", tmp_path, insecure=False)
    assert "--insecure" in refused.value.remedy and "runq cluster init" in refused.value.remedy
    assert security_for("tcp://192.0.2.1:8786", tmp_path, insecure=True) is None
    with pytest.raises(UsageError, match=r"has no ca.pem"):
        security_for("tls://192.0.2.1:8786", tmp_path, insecure=True)
    with pytest.raises(UsageError, match="no scheduler's address"):
        security_for("head:8786", tmp_path, insecure=True)


def test_certificates_are_for_their_owner_alone_and_not_replaced(tmp_path):
    folder = make_certificates(tmp_path / "tls")
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {
        "ca.pem": 0o600,
        "cert.pem": 0o600,
        "key.pem": 0o600,
    }
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    with pytest.raises(UsageError, match="has certificates already"):
        make_certificates(folder)


def options(folder):
    return ("--tls-ca-file", f"{folder}/ca.pem", "--tls-cert", f"{folder}/cert.pem", "--tls-key", f"{folder}/key.pem")


def test_with_tls_only_who_has_the_certificate_joins(tmp_path, cluster_class):
    folder = make_certificates(tmp_path / "tls")
    stranger = make_certificates(tmp_path / "stranger")
    (tmp_path / "night").mkdir()
    cluster = cluster_class(tmp_path / "night", scheme="tls", dask=options(folder))
    cluster.env["RUNQ_CLUSTER_TLS"] = str(folder)
    try:
        cluster.entries("a")
        cluster.scheduler()
        cluster.dask = options(stranger)
        cluster.worker("forged")
        cluster.scheme, cluster.dask = "tcp", ()
        cluster.worker("plain")
        cluster.scheme, cluster.dask = "tls", options(folder)
        cluster.worker("anna")
        cluster.joined("anna")
        done = cluster.night()
        assert done.returncode == 0, done.stderr
        assert [e.data["host"] for e in cluster.events("host.joined")] == ["anna"]
        for name in ("forged", "plain"):
            assert "Registered to:" not in (cluster.folder / f"{name}.log").read_text()
        cluster.env["RUNQ_CLUSTER_TLS"] = str(stranger)
        refused = cluster.night()
        assert refused.returncode == 2 and "no Dask scheduler answers" in refused.stderr
    finally:
        cluster.close()
