"""The check that a database and the keys in the settings belong together."""

import base64
import secrets

import pytest

from runs import keycheck
from runs.keys import KeyRing
from runs.models import KeyCheck

pytestmark = pytest.mark.django_db

ONE, TWO, THREE = (secrets.token_bytes(32) for _ in range(3))


@pytest.fixture
def keys(settings):
    """Sets the site's keys, newest first."""

    def set_keys(**keys):
        settings.FLOWSITE_KEYS = KeyRing(keys)

    KeyCheck.objects.all().delete()
    return set_keys


def test_a_new_database_notes_its_keys_and_nothing_of_what_they_are(keys):
    keys(k1=ONE)
    assert keycheck.problems() == []
    row = KeyCheck.objects.get()
    assert row.key_id == "k1"
    assert ONE.hex() not in row.proof
    assert base64.b64encode(ONE).decode() not in row.proof


def test_the_same_keys_again_are_no_problem_and_noted_once(keys):
    keys(k1=ONE)
    assert keycheck.problems() == keycheck.problems() == []
    assert KeyCheck.objects.count() == 1


def test_a_newer_key_beside_the_old_one_is_noted(keys):
    keys(k1=ONE)
    keycheck.problems()
    keys(k2=TWO, k1=ONE)
    assert keycheck.problems() == []
    assert set(KeyCheck.objects.values_list("key_id", flat=True)) == {"k1", "k2"}


def test_another_key_under_the_same_name_is_a_problem(keys):
    keys(k1=ONE)
    keycheck.problems()
    keys(k1=TWO)
    (problem,) = keycheck.problems()
    assert "'k1'" in problem
    assert "not the key of that name" in problem


def test_a_key_that_was_taken_out_is_a_problem(keys):
    keys(k1=ONE)
    keycheck.problems()
    keys(k2=TWO)
    (problem,) = keycheck.problems()
    assert "'k1'" in problem
    assert "Add it again" in problem


def test_new_keys_are_not_noted_while_there_is_a_problem(keys):
    keys(k1=ONE)
    keycheck.problems()
    keys(k2=TWO, k3=THREE)
    keycheck.problems()
    assert list(KeyCheck.objects.values_list("key_id", flat=True)) == ["k1"]


def test_each_problem_is_told(keys):
    keys(k1=ONE, k2=TWO)
    keycheck.problems()
    keys(k1=THREE)
    wrong, missing = keycheck.problems()
    assert "'k1'" in wrong
    assert "'k2'" in missing
    for problem in (wrong, missing):
        for key in (ONE, TWO, THREE):
            assert base64.b64encode(key).decode() not in problem
