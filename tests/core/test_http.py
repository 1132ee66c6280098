"""One request, bounded whatever the other side does."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from runq.http import BODY_LIMIT_BYTES, Garbage, TimedOut, Unreachable, request_json


def read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(4096)
    return data


def test_json_is_returned_with_status_and_text(serve):
    served = serve(lambda method, path, body: (201, {"method": method, "path": path, "got": body}))
    reply = request_json("POST", served.url + "/a?b=1", body={"x": [1, None]}, timeout_s=5, headers={"X-Y": "z"})
    assert (reply.status, reply.body) == (201, {"method": "POST", "path": "/a?b=1", "got": {"x": [1, None]}})
    assert reply.text.startswith('{"method"')
    assert served.headers[0]["X-Y"] == "z"
    assert served.headers[0]["Content-Type"] == "application/json"


@pytest.mark.parametrize("content", [b"OK", b"", b"[" * 100_000, b"\xff\xfe"])
def test_what_is_no_json_has_no_body(serve, content):
    reply = request_json("GET", serve(lambda *_: (404, content)).url, timeout_s=5)
    assert (reply.status, reply.body) == (404, None)


def test_a_summary_is_one_short_line(serve):
    reply = request_json("GET", serve(lambda *_: (500, b"a\n b" + b"c" * 1000)).url, timeout_s=5)
    assert reply.summary().startswith("HTTP 500: a bccc") and len(reply.summary()) < 250
    assert request_json("GET", serve(lambda *_: (500, b"")).url, timeout_s=5).summary() == "HTTP 500: an empty body"


def test_redirects_are_not_followed(raw_server):
    port = raw_server(
        lambda c: (
            read_request(c),
            c.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"),
        )
    )
    assert request_json("GET", f"http://127.0.0.1:{port}/", timeout_s=5).status == 302


def test_proxies_of_the_environment_are_not_used(serve, monkeypatch, free_port):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port}")
    assert request_json("GET", serve(lambda *_: (200, {})).url, timeout_s=5).status == 200


def test_nobody_listening_is_unreachable(free_port):
    with pytest.raises(Unreachable, match=f"127.0.0.1:{free_port} cannot be reached.*refused"):
        request_json("GET", f"http://127.0.0.1:{free_port}/", timeout_s=5)


@pytest.mark.parametrize("url", ["nonsense", "ftp://host/", "http://", "http://[::1", "http://host:99999/"])
def test_what_is_no_url_is_unreachable(url):
    with pytest.raises(Unreachable):
        request_json("GET", url, timeout_s=5)


def test_an_unknown_name_is_unreachable():
    with pytest.raises((Unreachable, TimedOut)):  # a name server may as well never answer
        request_json("GET", "http://runq.invalid/", timeout_s=2)


def test_a_header_that_cannot_be_sent_is_a_failure_without_its_value(serve):
    served = serve(lambda *_: (200, {}))
    with pytest.raises(Unreachable) as caught:
        request_json("GET", served.url, timeout_s=5, headers={"Authorization": "Bearer a\nb"})
    assert served.url.removeprefix("http://") in str(caught.value)


def test_credentials_in_a_url_are_not_in_the_message(free_port):
    with pytest.raises(Unreachable) as caught:
        request_json("GET", f"http://me:secret@127.0.0.1:{free_port}/", timeout_s=5)
    assert "secret" not in str(caught.value)


def test_ipv6_loopback_is_reached():
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")

    def answer() -> None:
        connection, _ = listener.accept()
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        connection.close()

    with listener:
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        assert request_json("GET", f"http://[::1]:{listener.getsockname()[1]}/", timeout_s=5).body == {}
        thread.join(5)


def drip_body(connection: socket.socket) -> None:
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        connection.sendall(b"x")
        time.sleep(0.05)


def drip_header(connection: socket.socket) -> None:
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while True:
        connection.sendall(b"x")
        time.sleep(0.05)


def never_answer(connection: socket.socket) -> None:
    read_request(connection)
    threading.Event().wait(60)


def endless_continue(connection: socket.socket) -> None:
    read_request(connection)
    while True:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.01)


@pytest.mark.parametrize("behave", [drip_body, drip_header, never_answer, endless_continue])
def test_the_limit_holds_and_the_thread_ends(raw_server, behave):
    port = raw_server(behave)
    began = time.monotonic()
    with pytest.raises(TimedOut, match=r"within 0\.4 s|in time"):
        request_json("GET", f"http://127.0.0.1:{port}/", timeout_s=0.4)
    assert time.monotonic() - began < 2
    until = time.monotonic() + 5
    while any(thread.name == "runq-http" for thread in threading.enumerate()):
        assert time.monotonic() < until, "the request's thread goes on"
        time.sleep(0.01)


def test_a_name_server_that_hangs_is_bounded_and_nothing_is_sent_late(serve, monkeypatch):
    served, release, look_up = serve(lambda *_: (200, {})), threading.Event(), socket.getaddrinfo

    def slow(*arguments, **more):
        release.wait(30)
        return look_up(*arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    began = time.monotonic()
    with pytest.raises(TimedOut):
        request_json("POST", served.url, body={}, timeout_s=0.3)
    assert time.monotonic() - began < 2
    (late,) = [thread for thread in threading.enumerate() if thread.name == "runq-http"]
    release.set()
    late.join(5)
    assert not late.is_alive() and served.requests == []


def test_an_endless_body_is_cut_off(raw_server):
    sent = 0

    def pour(connection: socket.socket) -> None:
        nonlocal sent
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65536)
            sent += 65536

    port = raw_server(pour)
    with pytest.raises(Garbage, match="more than 4 MB"):
        request_json("GET", f"http://127.0.0.1:{port}/", timeout_s=30)
    assert sent < BODY_LIMIT_BYTES + 16 * 2**20  # what the socket's buffers may still take


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "complete HTTP"),
        (b"", "without an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "complete HTTP"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "complete HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n", "complete HTTP"),
    ],
)
def test_what_is_no_complete_http_is_garbage(raw_server, answer, words):
    def behave(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_RDWR)

    with pytest.raises(Garbage, match=words):
        request_json("GET", f"http://127.0.0.1:{raw_server(behave)}/", timeout_s=5)


def test_a_reset_connection_is_garbage(raw_server):
    def behave(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        connection.close()

    with pytest.raises(Garbage):
        request_json("GET", f"http://127.0.0.1:{raw_server(behave)}/", timeout_s=5)


def test_plain_http_at_an_https_url_is_unreachable(raw_server):
    def behave(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 400 Bad\r\n\r\n")
        connection.shutdown(socket.SHUT_RDWR)

    with pytest.raises(Unreachable):
        request_json("GET", f"https://127.0.0.1:{raw_server(behave)}/", timeout_s=5)


def test_an_interrupted_night_gets_through(raw_server):
    class Interrupted(Exception):
        pass

    def sleep(seconds: float) -> None:
        assert seconds == 0
        raise Interrupted

    port = raw_server(never_answer)
    began = time.monotonic()
    with pytest.raises(Interrupted):
        request_json("GET", f"http://127.0.0.1:{port}/", timeout_s=60, sleep=sleep)
    assert time.monotonic() - began < 5
