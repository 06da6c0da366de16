"""Encrypted columns: each value can be read in its own place, as it was written, and nowhere
else."""

import base64
import secrets
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.keys import KeyRing
from runs.storage import Unreadable, decrypt, encrypt, key_id_of

ROW = uuid.UUID("11111111-2222-3333-4444-555555555555")
COLUMN = "runs.Run.checkpoint"


def ring(*key_ids):
    """A ring with new keys, or the keys of these names as they were made first."""
    for key_id in key_ids:
        _keys.setdefault(key_id, secrets.token_bytes(32))
    return KeyRing({key_id: _keys[key_id] for key_id in key_ids})


_keys: dict[str, bytes] = {}


@pytest.fixture(autouse=True)
def keys(settings):
    settings.FLOWSITE_KEYS = ring("k1")


def put(text="secret text", column=COLUMN, row=ROW):
    return encrypt(text, column=column, row=row)


def get(stored, column=COLUMN, row=ROW):
    return decrypt(stored, column=column, row=row)


def unreadable(stored, **place):
    with pytest.raises(Unreadable) as caught:
        get(stored, **place)
    return str(caught.value)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_written_is_read_again(text):
    assert get(put(text)) == text


def test_a_stored_value_says_its_form_and_key_and_nothing_of_the_text():
    stored = put("secret text")
    version, key_id, encoded = stored.split(".")
    assert (version, key_id, key_id_of(stored)) == ("v1", "k1", "k1")
    assert b"secret" not in base64.b64decode(encoded)


def test_one_text_is_never_written_the_same_twice():
    assert len({put() for _ in range(100)}) == 100


def test_a_value_can_not_be_read_in_another_row():
    assert "code does not match" in unreadable(put(), row=uuid.uuid4())


def test_a_value_can_not_be_read_in_another_column():
    assert "code does not match" in unreadable(put(), column="approvals.Decision.content")


def test_two_values_that_change_places_can_not_be_read():
    other = uuid.uuid4()
    first, second = put("first"), put("second", row=other)
    unreadable(first, row=other)
    unreadable(second)


def test_no_character_of_a_value_can_be_changed():
    stored = put()
    for place, character in enumerate(stored):
        for other in {"A", "B", ".", chr(ord(character) ^ 1)} - {character}:
            unreadable(stored[:place] + other + stored[place + 1 :])


def test_a_value_can_not_be_cut_or_lengthened():
    stored = put()
    for length in range(len(stored)):
        unreadable(stored[:length])
    for more in ("A", "=", "AAAA", "\n", " ", ".", "é"):
        unreadable(stored + more)
        unreadable(more + stored)


@pytest.mark.parametrize("length", range(3))
def test_only_the_spelling_that_was_written_is_read(length):
    """Base64 that ends in padding has other spellings of the same bytes."""
    stored = put("x" * length)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    bare = stored.rstrip("=")
    padding = stored[len(bare) :]
    same_bytes = [
        bare[:-1] + letter + padding
        for letter in alphabet
        if base64.b64decode((bare[:-1] + letter + padding).split(".")[2])
        == base64.b64decode(stored.split(".")[2])
    ]
    assert stored in same_bytes
    assert len(same_bytes) == {0: 1, 1: 4, 2: 16}[len(padding)]
    for spelling in same_bytes:
        if spelling != stored:
            assert "not spelled as it was written" in unreadable(spelling)
    assert get(stored) == "x" * length


@pytest.mark.parametrize("stored", ["", "v1", "v1.k1", "v1.k1.", "v2.k1.AAAA", "plain text", "{}"])
def test_what_is_no_encrypted_value_is_refused(stored):
    assert "does not have the form" in unreadable(stored)


def test_a_value_too_short_for_its_nonce_is_refused():
    for length in range(30):
        unreadable("v1.k1." + base64.b64encode(b"x" * length).decode() if length else "v1.k1.")


# ---- keys ---------------------------------------------------------------------------------------


def test_the_newest_key_encrypts_and_older_ones_decrypt(settings):
    old = put("old")
    settings.FLOWSITE_KEYS = ring("k2", "k1")
    new = put("new")
    assert (key_id_of(old), key_id_of(new)) == ("k1", "k2")
    assert (get(old), get(new)) == ("old", "new")


def test_the_order_of_the_keys_alone_says_which_is_the_newest(settings):
    settings.FLOWSITE_KEYS = ring("k1", "k2")
    assert key_id_of(put()) == "k1"


def test_a_key_that_was_taken_out_is_named_and_reading_goes_on_once_it_is_back(settings):
    stored = put()
    settings.FLOWSITE_KEYS = ring("k2")
    message = unreadable(stored)
    assert "'k1'" in message
    assert "add it again" in message
    settings.FLOWSITE_KEYS = ring("k2", "k1")
    assert get(stored) == "secret text"


def test_another_key_under_the_same_name_reads_nothing(settings):
    stored = put()
    settings.FLOWSITE_KEYS = KeyRing({"k1": secrets.token_bytes(32)})
    assert "code does not match" in unreadable(stored)


def test_a_value_can_not_be_passed_off_as_written_with_another_key(settings):
    settings.FLOWSITE_KEYS = KeyRing({"k1": _keys["k1"], "k2": _keys["k1"]})
    stored = put()
    assert get(stored) == "secret text"
    unreadable(stored.replace("v1.k1.", "v1.k2."))


def test_a_long_made_up_key_name_is_cut_in_the_message():
    assert len(unreadable("v1." + "k" * 10_000 + ".AAAA")) < 300


@pytest.mark.parametrize("stored", ["", "plain", "a.b", "a.b.c.d"])
def test_what_names_no_key_has_no_key_id(stored):
    assert key_id_of(stored) == ""
