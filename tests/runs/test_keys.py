"""The key ring: what is read from FLOWSITE_KEYS, what is derived, and the file of debug mode."""

import base64
import multiprocessing
import os
import secrets
import stat

import pytest

from runs.keys import KeyRing, KeyRingError, read_or_make_key_file


def encoded(size=32):
    return base64.b64encode(secrets.token_bytes(size)).decode()


# ---- reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize("between", [",", ", ", "\n", " ", ",\n  "])
def test_keys_are_read_newest_first(between):
    one, two = encoded(), encoded()
    ring = KeyRing.parse(f" k2:{two}{between}k1:{one}\n")
    assert list(ring) == ["k2", "k1"]
    assert ring.newest == "k2"
    assert ring.keys == {"k2": base64.b64decode(two), "k1": base64.b64decode(one)}
    assert "k1" in ring
    assert "k3" not in ring


def test_a_longer_key_is_taken():
    assert len(KeyRing.parse("k1:" + encoded(64)).keys["k1"]) == 64


GOOD = encoded()
BAD = {
    "": "is empty",
    " ,\n": "is empty",
    GOOD: "Entry 1",
    f":{GOOD}": "Entry 1",
    f"k1:{GOOD},{GOOD}": "Entry 2",
    f"k 1:{GOOD}": "Entry 1",
    f"k.1:{GOOD}": "Entry 1",
    f"{'k' * 33}:{GOOD}": "Entry 1",
    f"schlüssel:{GOOD}": "Entry 1",
    f"k1:{GOOD[:-1]}": "'k1' in FLOWSITE_KEYS is not base64",
    f"k1:{GOOD[:10]}!{GOOD[11:]}": "'k1' in FLOWSITE_KEYS is not base64",
    f"k1:é{GOOD}": "'k1' in FLOWSITE_KEYS is not base64",
    "k1:": "has 0 bytes; it needs 32",
    f"k1:{encoded(31)}": "has 31 bytes; it needs 32",
    f"k1:{GOOD},k1:{encoded()}": "two keys with the id 'k1'",
}


@pytest.mark.parametrize("text", BAD, ids=[str(place) for place in range(len(BAD))])
def test_a_ring_that_can_not_be_used_is_refused_without_quoting_a_key(text):
    with pytest.raises(KeyRingError, match=BAD[text]) as caught:
        KeyRing.parse(text)
    told = "".join(str(error) + repr(error) for error in (caught.value, caught.value.__cause__))
    for length in range(len(GOOD) - 8):
        assert GOOD[length : length + 8] not in told


def test_most_messages_say_how_to_make_a_key_that_is_then_taken():
    with pytest.raises(KeyRingError) as caught:
        KeyRing.parse("")
    command = str(caught.value).partition("python -c ")[2]
    assert "token_bytes(32)" in command
    namespace: dict[str, object] = {}
    made: list[str] = []
    namespace["print"] = made.append
    exec(command.strip().strip('"'), namespace)  # noqa: S102 - the message's own words
    assert KeyRing.parse(made[0]).newest == "k1"


def test_a_ring_shows_its_ids_and_never_its_keys():
    ring = KeyRing.parse(f"k2:{encoded()},k1:{GOOD}")
    assert repr(ring) == str(ring) == "KeyRing(k2, k1)"


# ---- deriving -----------------------------------------------------------------------------------


def test_each_purpose_and_each_key_has_a_key_of_its_own():
    ring = KeyRing.parse(f"k2:{encoded()},k1:{encoded()}")
    derived = {
        ring.derive(purpose, key_id) for purpose in ("seal", "columns") for key_id in ("k1", "k2")
    }
    assert len(derived | set(ring.keys.values())) == 6
    assert all(len(key) == 32 for key in derived)


def test_a_derived_key_is_the_same_in_every_process():
    ring = KeyRing({"k1": b"flowsite-test-key-of-32-bytes!!!"})
    # HKDF-SHA256 (RFC 5869), no salt, info "flowsite/checkpoint-seal/1"; computed by hand below.
    import hashlib
    import hmac

    pseudorandom = hmac.new(b"\0" * 32, ring.keys["k1"], hashlib.sha256).digest()
    info = b"flowsite/checkpoint-seal/1"
    expected = hmac.new(pseudorandom, info + b"\x01", hashlib.sha256).digest()
    assert ring.derive("checkpoint-seal") == expected


def test_the_derived_keys_of_a_purpose_come_newest_first():
    ring = KeyRing.parse(f"k2:{encoded()},k1:{encoded()}")
    derived = ring.derived("seal")
    assert list(derived) == ["k2", "k1"]
    assert derived["k2"] == ring.derive("seal")
    assert derived["k1"] == ring.derive("seal", "k1")


def test_a_key_that_is_not_in_the_ring_derives_nothing():
    with pytest.raises(KeyError):
        KeyRing.parse(f"k1:{GOOD}").derive("seal", "k9")


# ---- the file of debug mode ---------------------------------------------------------------------


def test_a_key_file_is_made_once_for_its_owner_only_and_read_again(tmp_path):
    path = tmp_path / "var" / "keys"
    mask = os.umask(0)
    try:
        ring = read_or_make_key_file(path)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_or_make_key_file(path) == ring
    assert [entry.name for entry in path.parent.iterdir()] == ["keys"]


def test_a_key_file_that_is_there_is_left_as_it_is(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"k2:{GOOD}\n")
    assert list(read_or_make_key_file(path)) == ["k2"]
    assert path.read_text() == f"k2:{GOOD}\n"


def test_a_key_file_that_can_not_be_used_is_refused_and_kept(tmp_path):
    path = tmp_path / "keys"
    path.write_text("")
    with pytest.raises(KeyRingError, match="is empty"):
        read_or_make_key_file(path)
    assert path.read_text() == ""


def _read(path, barrier, answers):
    barrier.wait(60)
    answers.put(read_or_make_key_file(path).keys)


def test_processes_that_start_together_end_with_one_ring(tmp_path):
    path = tmp_path / "var" / "keys"
    # Fresh processes, because a fork of one that has threads may hang.
    start = multiprocessing.get_context("spawn")
    count = 6
    barrier, answers = start.Barrier(count), start.Queue()
    processes = [start.Process(target=_read, args=(path, barrier, answers)) for _ in range(count)]
    for process in processes:
        process.start()
    rings = [answers.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * count
    assert all(ring == rings[0] for ring in rings)
    assert read_or_make_key_file(path).keys == rings[0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["keys"]


def test_of_two_that_find_no_file_the_second_takes_what_the_first_wrote(tmp_path, monkeypatch):
    path = tmp_path / "keys"
    link = os.link

    def first_another(source, target):
        path.write_text(f"other:{GOOD}\n")
        link(source, target)

    monkeypatch.setattr(os, "link", first_another)
    assert list(read_or_make_key_file(path)) == ["other"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["keys"]
