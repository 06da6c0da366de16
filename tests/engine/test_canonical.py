"""The canonical form: every sealable type there and back, everything else refused by its path."""

import enum
import inspect
import json
import math
import re
import sys
import typing
from collections import OrderedDict
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal, localcontext
from functools import cached_property
from importlib.resources import files
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    TypedDict,
    TypeVar,
)
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    RootModel,
    SecretBytes,
    SecretStr,
    TypeAdapter,
    model_validator,
)
from typing_extensions import TypeAliasType

from runs.engine.canonical import (
    MAX_DEPTH,
    Malformed,
    NotSealable,
    UnknownClass,
    check,
    class_name,
    decode,
    dumps,
    encode,
    loads,
    reachable,
)


class Color(enum.Enum):
    RED = "red"
    BLUE = ("b", 2)
    CRIMSON = "red"


class Level(enum.IntEnum):
    LOW = 1


class Word(enum.StrEnum):
    YES = "yes"


class Size(float, enum.Enum):
    BIG = 1.5


class Perm(enum.Flag):
    R = 1
    W = 2
    X = 4
    RW = 3


class Bits(enum.IntFlag):
    A = 1
    B = 2


PICKY_LOOKED_UP: list[object] = []


class Picky(enum.Flag):
    A = 1
    B = 2

    @classmethod
    def _missing_(cls, value: object) -> Any:
        PICKY_LOOKED_UP.append(value)
        return super()._missing_(value)


class Animal(BaseModel):
    name: str = "?"


class Collar(BaseModel):
    size: int


class Dog(Animal):
    collar: Collar
    good: bool = True


class Owner(BaseModel):
    pet: Animal
    others: list[Animal] = []
    mood: Color = Color.RED


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int = 1


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)
    key: tuple[int, ...]


class Private(BaseModel):
    shown: int
    _cache: dict[str, int] = PrivateAttr(default_factory=dict)
    _limit: int = 3
    _unset: int = PrivateAttr()


class Numbers(RootModel[list[int]]):
    pass


class Tuned(RootModel[int]):
    _scale: int = 2


class Shouting(BaseModel):
    """Notes every way in which code of its own is run."""

    ran: typing.ClassVar[list[str]] = []
    n: int

    def __new__(cls, *args: Any, **kwargs: Any) -> "Shouting":
        cls.ran.append("new")
        return super().__new__(cls)

    def __init__(self, **data: Any) -> None:
        self.ran.append("init")
        super().__init__(**data)

    @model_validator(mode="before")
    @classmethod
    def _validate(cls, data: Any) -> Any:
        cls.ran.append("validator")
        return data

    def model_post_init(self, context: Any) -> None:
        self.ran.append("post_init")

    def __setattr__(self, name: str, value: Any) -> None:
        self.ran.append("setattr")
        super().__setattr__(name, value)


class Thing:
    def __init__(self, n: int) -> None:
        self.n = n


T = TypeVar("T")
Pet = TypeVar("Pet", bound=Animal)


class Box(BaseModel, Generic[T]):
    item: T


EVERYTHING = reachable(
    Owner, Open, Frozen, Private, Numbers, Tuned, Shouting, Level, Word, Size, Perm, Bits, Picky
)


def text_of(value: Any, **options: Any) -> str:
    return dumps(encode(value, **options))


def there_and_back(value: Any, classes: Any = EVERYTHING) -> Any:
    return decode(loads(text_of(value)), classes=classes)


def refusal(value: Any, path: str = "state", **options: Any) -> NotSealable:
    with pytest.raises(NotSealable) as caught:
        encode(value, path=path, **options)
    return caught.value


def berlin(fold: int) -> datetime:
    return datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=fold)


HUGE = 10**600
EQUAL_WHEN_SAME: list[Any] = [
    None, True, False, 0, 1, -1, HUGE - 1, 1 - HUGE, HUGE, -HUGE, 10**5000, 16**1048575,
    0.0, 1.0, 1e16, 5e-324, 1.7976931348623157e308, math.inf, -math.inf,
    "", "text", "\x00\u202e", "\U0001f600", "\ud800", "\udfff", "$tuple",
    [], [1, [2, "x"]], {}, {"a": {"b": [None]}}, {"b": 1, "a": 2},
    {1: "a", "1": "b", None: 0, 2.5: 1, (1, 2): [3]}, {"$tuple": [1]}, {"$": 1, "x": 2},
    {"$model": ["os:system", {}, [], None]}, {"$custom": ["a", 1]}, {"$dict": [["a", 1]]},
    b"", b"\xff\xfe\x00", bytearray(b"\x80abc"),
    (), (1,), ((1, "a"), [2]), set(), {1, 2, 30}, {"b", "a", None}, frozenset({(1, 2), "x"}),
    date(1, 1, 1), date(9999, 12, 31), timedelta(-1, 5, 7), timedelta.max, timedelta.min,
    Decimal("1.0"), Decimal("1.00"), Decimal("-0E+3"), Decimal("1E-999999"), Decimal("Infinity"),
    Decimal("9" * 5000), UUID("12345678-1234-5678-1234-567812345678"),
    Color.RED, Color.BLUE, Color.CRIMSON, Level.LOW, Word.YES, Size.BIG, Perm.R, Perm.RW,
    Bits.A, Picky.B, Bits(HUGE),
    datetime(2026, 1, 2, 3, 4, 5, 6), datetime(1, 1, 1, fold=1), time(1, 2), time(1, 2, fold=1),
    SecretStr("s3cret"), SecretBytes(b"\xff"),
    Owner(pet=Dog(name="Rex", collar=Collar(size=3)), others=[Animal()]),
    Open(a=2, b=[1], **{"$tuple": (1,)}), Frozen(key=(1, 2)), {Frozen(key=(1,)): 1},
    Private(shown=1), Numbers([1, 2]), Tuned(4),
]  # fmt: skip


def exactly_equal(a: Any, b: Any) -> bool:
    """Equality that tells 1 from True and 1.0, at every depth of the plain containers."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(exactly_equal, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(exactly_equal(a[key], b[key]) for key in a)
    return bool(a == b)


@pytest.mark.parametrize("value", EQUAL_WHEN_SAME, ids=lambda value: type(value).__name__)
def test_a_sealable_value_comes_back_with_its_type_and_value(value: Any) -> None:
    assert exactly_equal(there_and_back(value), value)


@pytest.mark.parametrize("value", EQUAL_WHEN_SAME, ids=lambda value: type(value).__name__)
def test_what_comes_back_has_the_same_text(value: Any) -> None:
    assert text_of(there_and_back(value)) == text_of(value)


def test_every_two_different_values_have_different_texts() -> None:
    texts = [text_of(value) for value in EQUAL_WHEN_SAME if value is not Color.CRIMSON]
    assert len(set(texts)) == len(texts)


def test_values_python_calls_equal_stay_apart_by_type_and_digits() -> None:
    alike = [1, 1.0, True, Decimal("1"), Decimal("1.0"), Decimal("1.00"), Level.LOW, Bits.A]
    assert len({text_of(value) for value in alike}) == len(alike)
    for value in alike:
        assert type(there_and_back(value)) is type(value)
        assert str(there_and_back(value)) == str(value)


def test_bytes_and_bytearray_and_the_series_stay_apart() -> None:
    for alike in ([b"a", bytearray(b"a")], [[1], (1,), {1}, frozenset({1})]):
        assert len({text_of(value) for value in alike}) == len(alike)


def test_minus_zero_and_nan_come_back() -> None:
    assert math.copysign(1, there_and_back(-0.0)) == -1
    assert math.isnan(there_and_back(math.nan))
    assert len(there_and_back({float("nan"), float("nan")})) == 2


def test_a_signalling_nan_keeps_its_payload() -> None:
    for text in ("sNaN123", "-NaN7", "NaN"):
        assert str(there_and_back(Decimal(text))) == text


def test_the_decimal_context_does_not_change_the_text() -> None:
    value = Decimal("1E+9")
    expected = text_of(value)
    with localcontext() as context:
        context.capitals = 0
        assert text_of(value) == expected
        assert there_and_back(value) == value


def test_an_int_past_600_digits_is_tagged_as_hex() -> None:
    assert encode(HUGE - 1) == HUGE - 1
    assert encode(-HUGE) == {"$int": format(-HUGE, "x")}


def test_huge_ints_pass_with_the_strictest_limit_python_can_have() -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        for value in (HUGE - 1, 1 - HUGE, HUGE, 10**5000):
            assert there_and_back(value) == value
    finally:
        sys.set_int_max_str_digits(before)


def test_an_int_past_a_mebibyte_of_hex_is_refused_by_its_path() -> None:
    assert refusal({"n": 16**1048576}).path == 'state["n"]'
    assert refusal({"n": -(16**1048576)}).path == 'state["n"]'


def test_two_surrogates_that_look_like_one_character_stay_two() -> None:
    pair = "a\ud83d\ude00b\ud83d\ude00"
    for value in (pair, {pair: 1}, {"k": pair}, SecretStr(pair), ["\ud800\ud800\udc00"]):
        assert there_and_back(value) == value
    assert text_of("\ud83d\ude00") != text_of("\U0001f600")


def test_data_shaped_like_a_tag_comes_back_as_data() -> None:
    for value in EQUAL_WHEN_SAME:
        form = encode(value)
        assert exactly_equal(there_and_back(form, classes=reachable()), form)


def test_the_order_of_a_dict_or_a_set_does_not_change_the_text() -> None:
    assert text_of({"a": 1, "b": 2}) == text_of({"b": 2, "a": 1})
    assert text_of({1: 1, "$b": 2, "a": 3}) == text_of({"a": 3, "$b": 2, 1: 1})
    assert text_of({8, 0, 16}) == text_of({16, 8, 0})


ZONES = [
    UTC,
    timezone(timedelta(0), "UTC"),
    timezone(timedelta(hours=-3, minutes=-30)),
    timezone(timedelta(hours=1), "Sommer\ud83d\ude00"),
    timezone(timedelta(microseconds=-1)),
    ZoneInfo("Europe/Berlin"),
    TypeAdapter(datetime).validate_json('"2026-01-01T00:00:00+02:00"').tzinfo,
]


@pytest.mark.parametrize("zone", ZONES, ids=repr)
def test_datetimes_and_times_keep_zone_and_fold(zone: tzinfo) -> None:
    for value in (
        datetime(2026, 10, 25, 2, 30, tzinfo=zone),
        datetime(2026, 10, 25, 2, 30, tzinfo=zone, fold=1),
        time(2, 30, 0, 5, tzinfo=zone, fold=1),
    ):
        back = there_and_back(value)
        assert back.replace(tzinfo=None) == value.replace(tzinfo=None)
        assert (type(back), back.fold) == (type(value), value.fold)
        assert type(back.tzinfo) is type(zone)
        assert repr(back.tzinfo) == repr(zone)


def test_fold_tells_two_hours_of_one_night_apart() -> None:
    assert there_and_back(berlin(0)).utcoffset() == timedelta(hours=2)
    assert there_and_back(berlin(1)).utcoffset() == timedelta(hours=1)
    assert there_and_back(berlin(1)).tzinfo is ZoneInfo("Europe/Berlin")


class OtherZone(tzinfo):
    def utcoffset(self, dt: datetime | None) -> timedelta:
        return timedelta(0)

    def dst(self, dt: datetime | None) -> None:
        return None

    def tzname(self, dt: datetime | None) -> str:
        return "other"


def test_other_zones_are_refused_by_their_path() -> None:
    refused = refusal({"at": datetime(2026, 1, 1, tzinfo=OtherZone())})
    assert refused.path == 'state["at"].tzinfo'
    assert refused.type_name == class_name(OtherZone)


def test_a_zoneinfo_without_a_key_is_refused() -> None:
    source = files("tzdata") / "zoneinfo" / "Europe" / "Berlin"
    with source.open("rb") as file:
        zone = ZoneInfo.from_file(file)
    refused = refusal(time(1, tzinfo=zone))
    assert refused.path == "state.tzinfo"
    assert "without a key" in str(refused)


def test_a_zone_that_does_not_exist_is_malformed() -> None:
    data = encode(berlin(0))
    assert isinstance(data, dict)
    broken = json.loads(dumps(data).replace("Europe/Berlin", "Nowhere/Town"))
    with pytest.raises(Malformed):
        decode(broken, classes=reachable())


def test_composite_flags_come_back_as_the_same_object() -> None:
    for value in (Perm.R | Perm.X, Perm(0), ~Perm.R, Bits.A | Bits.B, Bits(9), Bits(0)):
        assert there_and_back(value) is value or exactly_equal(there_and_back(value), value)
    assert there_and_back(Perm.R | Perm.X) is Perm.R | Perm.X


def test_an_enums_own_missing_hook_does_not_run_on_loading() -> None:
    text = text_of(Picky.A | Picky.B)
    PICKY_LOOKED_UP.clear()
    assert decode(loads(text), classes=EVERYTHING) == Picky.A | Picky.B
    assert PICKY_LOOKED_UP == []


def test_a_member_that_is_gone_is_malformed() -> None:
    for body in (["GREEN", "green"], [None, 3], [None, "red"], [7, 1]):
        with pytest.raises(Malformed):
            decode({"$enum": [class_name(Color), *body]}, classes=EVERYTHING)
    with pytest.raises(Malformed):
        decode({"$enum": [class_name(Perm), None, 8]}, classes=EVERYTHING)


def test_an_enum_with_a_value_that_cannot_be_sealed_is_refused() -> None:
    class Odd(enum.Enum):
        A = object()

    assert refusal([Odd.A]).path == "state[0].value"


def test_a_model_comes_back_with_fields_set_and_extras() -> None:
    value = Open(b=Decimal("1.0"), **{"$dict": 1})
    back = there_and_back(value)
    assert back == value
    assert back.model_fields_set == value.model_fields_set
    assert back.model_extra == value.model_extra
    assert back.model_dump() == value.model_dump()


def test_a_model_built_without_a_field_comes_back_without_it() -> None:
    value = Dog.model_construct(**{"name": "Rex"})  # type: ignore[arg-type]
    back = there_and_back(value)
    assert back == value
    assert "collar" not in back.__dict__


def test_a_rebuilt_model_is_a_working_model() -> None:
    back = there_and_back(Owner(pet=Animal(name="Tom")))
    back.pet.name = "Kit"
    assert back.model_copy(update={"mood": Color.BLUE}).pet.name == "Kit"
    with pytest.raises(ValueError, match="frozen"):
        there_and_back(Frozen(key=(1,))).key = (2,)


def test_a_cached_property_is_not_sealed_as_a_field() -> None:
    class Squares(BaseModel):
        n: int

        @cached_property
        def square(self) -> int:
            return self.n**2

    value = Squares(n=3)
    assert value.square == 9
    back = there_and_back(value, reachable(Squares))
    assert back == value
    assert back.__dict__ == {"n": 3}


def test_private_attributes_at_their_defaults_are_set_again() -> None:
    back = there_and_back(Private(shown=1))
    assert (back._cache, back._limit) == ({}, 3)
    assert "_cache" not in text_of(Private(shown=1))
    assert there_and_back(Tuned(4))._scale == 2


def test_a_changed_private_attribute_is_not_sealed_and_comes_back_as_its_default() -> None:
    changed = Private(shown=1)
    changed._limit = 4
    assert text_of(changed) == text_of(Private(shown=1))
    assert there_and_back(changed)._limit == 3


def test_no_code_of_a_model_runs_on_loading() -> None:
    text = text_of(Shouting(n=1))
    Shouting.ran.clear()
    assert decode(loads(text), classes=EVERYTHING).n == 1
    assert Shouting.ran == []


def test_what_is_decoded_shares_nothing_with_the_data() -> None:
    data = encode({"a": [1], "m": Owner(pet=Animal())})
    first, second = (decode(data, classes=EVERYTHING) for _ in range(2))
    first["a"].append(2)
    first["m"].others.append(Animal())
    assert second == {"a": [1], "m": Owner(pet=Animal())}
    assert decode(data, classes=EVERYTHING) == second


def test_what_is_encoded_does_not_change_with_the_value() -> None:
    value: dict[str, Any] = {"a": [1]}
    data = encode(value)
    value["a"].append(2)
    assert data == {"a": [1]}


class Nested(BaseModel):
    id: int = Field(default_factory=iter(range(1000)).__next__)
    x: int = 0


class Call(BaseModel):
    nested: Nested
    many: list[Nested] = []
    note: str = ""


def test_unset_fields_can_be_left_out_at_every_depth() -> None:
    first = Call(nested=Nested(x=1), many=[Nested()])
    second = Call(nested=Nested(x=1), many=[Nested()])
    assert text_of(first) != text_of(second)
    assert text_of(first, exclude_unset=True) == text_of(second, exclude_unset=True)
    explicit = Call(nested=Nested(x=1, id=5), many=[Nested()])
    assert text_of(explicit, exclude_unset=True) != text_of(first, exclude_unset=True)


class State(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    items: list[Any] = []
    map: dict[Any, Any] = {}
    note: Any = None


class Text(str):
    pass


class Number(int):
    pass


class Moment(datetime):
    pass


class Money(Decimal):
    pass


class Day(date):
    pass


class Point(NamedTuple):
    x: int


@pytest.mark.parametrize(
    "value",
    [
        object(), Thing(1), Text("a"), Number(1), Moment(2026, 1, 1), OrderedDict(a=1),
        Point(1), 1j, range(3), len, int, iter([]), memoryview(b"a"),
        Money(1), Day(2026, 1, 1),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_any_other_value_is_refused_by_path_and_type(value: Any) -> None:
    refused = refusal(State(items=[0, 1, 2, State(note=value)]))
    assert refused.path == "state.items[3].note"
    assert refused.type_name == class_name(type(value))
    for part in (refused.path, refused.type_name, "seal_encoder"):
        assert part in str(refused)


def test_paths_name_keys_items_and_extras() -> None:
    thing = Thing(1)
    assert refusal(State(map={"a b": thing})).path == 'state.map["a b"]'
    assert refusal({1: {None: (0, thing)}}).path == "state[1][None][1]"
    assert refusal({(1,): thing}).path == "state[<tuple key>]"
    assert refusal({thing: 1}).path == "state[<Thing key>]"
    assert refusal([{thing}]).path == "state[0]{item}"
    assert refusal(Open(b=thing)).path == 'state["b"]'
    assert refusal({"k" * 100: thing}).path == 'state["' + "k" * 59 + '\\u2026"]'


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = [1]
    loop.append({"again": loop})
    refused = refusal(loop)
    assert refused.path == 'state[1]["again"]'
    assert "contains itself" in str(refused)
    model = State()
    model.note = [model]
    assert refusal(model).path == "state.note[0]"


def test_one_object_at_two_places_is_no_circle() -> None:
    shared = [1]
    assert there_and_back([shared, shared]) == [[1], [1]]


class Link(BaseModel):
    next: Optional["Link"] = None


def wrapped(make: Callable[[Any], Any], depth: int) -> Any:
    value: Any = make(None)
    for _ in range(depth - 1):
        value = make(value)
    return value


WRAPPERS: list[Callable[[Any], Any]] = [
    lambda inner: [inner],
    lambda inner: (inner,),
    lambda inner: {"k": inner},
    lambda inner: {1: inner},
    lambda inner: frozenset({inner}),
    lambda inner: Link.model_construct(next=inner),
]


@pytest.mark.parametrize("make", WRAPPERS, ids=["list", "tuple", "dict", "pairs", "set", "model"])
def test_the_deepest_allowed_nesting_comes_back_and_one_more_is_refused(
    make: Callable[[Any], Any],
) -> None:
    deepest = wrapped(make, MAX_DEPTH)
    back = there_and_back(deepest, reachable(Link))
    assert text_of(back) == text_of(deepest)
    assert "levels deep" in str(refusal(wrapped(make, MAX_DEPTH + 1)))
    assert "levels deep" in str(refusal(wrapped(make, 3000)))


def test_a_stack_that_is_almost_used_up_is_a_refusal_too() -> None:
    value = wrapped(WRAPPERS[0], MAX_DEPTH)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 120)
    try:
        with pytest.raises(NotSealable):
            encode(value)
    finally:
        sys.setrecursionlimit(limit)


def test_text_and_data_nested_too_deeply_are_malformed() -> None:
    with pytest.raises(Malformed):
        loads("[" * 100_000 + "]" * 100_000)
    deep: Any = wrapped(WRAPPERS[0], MAX_DEPTH + 1)
    with pytest.raises(Malformed):
        decode(deep, classes=reachable())
    with pytest.raises(Malformed):
        dumps(wrapped(WRAPPERS[0], 100_000))


def seal_thing(value: Any) -> Any:
    if isinstance(value, Thing):
        return {"n": value.n}
    raise TypeError("not mine")


def test_a_stand_in_is_sealed_under_the_class_and_given_to_the_decoder() -> None:
    data = encode([Thing(5)], encoder=seal_thing)
    assert data == [{"$custom": [class_name(Thing), {"n": 5}]}]
    back = decode(data, classes=reachable(), decoder=lambda name, value: (name, value))
    assert back == [(class_name(Thing), {"n": 5})]


def test_stand_ins_are_asked_for_at_every_depth_and_for_refused_leaves() -> None:
    data = encode(
        {Thing(1): [datetime(2026, 1, 1, tzinfo=OtherZone())]},
        encoder=lambda value: [value.n] if isinstance(value, Thing) else value.isoformat(),
    )
    back = decode(data, classes=reachable(), decoder=lambda name, value: str(value))
    assert back == {"[1]": ["2026-01-01T00:00:00+00:00"]}


def test_an_encoder_that_gives_no_sealable_value_is_a_refusal() -> None:
    refused = refusal([object()], encoder=seal_thing)
    assert refused.path == "state[0]"
    assert "TypeError" in str(refused)
    assert isinstance(refused.__cause__, TypeError)
    assert refusal([Thing(1)], encoder=lambda value: value).path == "state[0]"
    assert refusal(Thing(1), encoder=lambda value: [object]).path.startswith("state<stand-in>")
    assert "levels deep" in str(refusal(Thing(1), encoder=lambda value: Thing(2)))


def test_a_custom_value_always_needs_a_decoder() -> None:
    data = encode(Thing(1), encoder=seal_thing)
    with pytest.raises(UnknownClass) as caught:
        decode(data, classes=EVERYTHING)
    assert caught.value.name == class_name(Thing)


def test_an_unknown_class_goes_to_the_decoder_with_fields_or_value() -> None:
    asked: list[tuple[str, Any]] = []

    def decoder(name: str, value: Any) -> Any:
        asked.append((name, value))
        return len(asked)

    unchecked: dict[str, Any] = {"a": (1,), "b": Color.BLUE}
    data = encode([Open.model_construct(**unchecked), Color.RED, Perm.R | Perm.X])
    assert decode(data, classes=reachable(), decoder=decoder) == [2, 3, 4]
    assert asked == [
        (class_name(Color), ("b", 2)),
        (class_name(Open), {"a": (1,), "b": 1}),
        (class_name(Color), "red"),
        (class_name(Perm), 5),
    ]


def test_what_a_decoder_raises_is_passed_on() -> None:
    def decoder(name: str, value: Any) -> Any:
        raise LookupError(name)

    with pytest.raises(LookupError, match="Color"):
        decode(encode(Color.RED), classes=reachable(), decoder=decoder)


def test_nothing_is_built_when_one_class_is_unknown() -> None:
    built: list[str] = []

    class Loud(BaseModel):
        n: int
        _built: None = PrivateAttr(default_factory=lambda: built.append("built"))

        def model_post_init(self, context: Any) -> None:
            built.append("post_init")

    class Strange(BaseModel):
        pass

    data = encode([Loud(n=1), {"deep": (Strange(),)}])
    built.clear()
    with pytest.raises(UnknownClass) as caught:
        decode(data, classes=reachable(Loud))
    assert caught.value.name == class_name(Strange)
    assert built == []
    decode(data, classes=reachable(Loud, Strange))
    assert built == ["built"]


def test_check_refuses_what_decode_would_refuse_and_asks_no_decoder() -> None:
    data = encode([Color.RED, Animal()])
    check(data, classes=reachable(Animal, Color))
    with pytest.raises(UnknownClass):
        check(data, classes=reachable(Animal))
    check(data, classes=reachable(), decoder=lambda name, value: pytest.fail(name))


def test_a_class_of_the_wrong_kind_is_unknown() -> None:
    wrong: list[Any] = [
        {"$model": [class_name(Color), {}, [], None]},
        {"$enum": [class_name(Dog), "A", 1]},
    ]
    for data in wrong:
        with pytest.raises(UnknownClass):
            decode(data, classes=EVERYTHING)


def test_nothing_is_imported_because_a_text_names_it() -> None:
    sys.modules.pop("this", None)
    bodies: dict[str, list[Any]] = {"$model": [{}, [], None], "$enum": ["A", 1], "$custom": [1]}
    for tag, rest in bodies.items():
        with pytest.raises(UnknownClass):
            decode({tag: ["this:s", *rest]}, classes=EVERYTHING)
    assert "this" not in sys.modules


OWNER_NAME = class_name(Owner)


@pytest.mark.parametrize(
    "data",
    [
        {"$nope": 1}, {"$": 1}, {"$tuple": [1], "x": 1}, {"$tuple": {}}, {"$tuple": None},
        {"$set": [1, 1]}, {"$set": [[1]]}, {"$set": [1, 1.0]}, {"$frozenset": "ab"},
        {"$dict": [["a", 1]]}, {"$dict": [[1, 2], [1, 3]]}, {"$dict": [[1]]}, {"$dict": {}},
        {"$dict": [[[], 1]]}, {"$dict": []}, {"$int": "1"}, {"$int": 5}, {"$int": "0xff"},
        {"$int": "F" * 600}, {"$int": "zz"}, {"$float": "1.5"}, {"$float": "NaN"}, {"$float": 1.0},
        {"$str": "plain"}, {"$str": ["a", "b"]}, {"$str": [1]}, {"$bytes": "a"}, {"$bytes": "YR=="},
        {"$bytes": 1}, {"$bytes": "YQ==\n"}, {"$date": "20260101"}, {"$date": 1},
        {"$date": "2026-13-01"}, {"$datetime": ["2026-01-01T00:00:00", 2, None]},
        {"$datetime": ["2026-01-01T00:00:00", True, None]}, {"$datetime": "2026-01-01T00:00:00"},
        {"$datetime": ["2026-01-01T00:00:00+00:00", 0, None]},
        {"$datetime": ["2026-01-01T00:00:00", 0, ["offset", 90000, 0]]},
        {"$time": ["01:00:00", 0, ["other", 1]]}, {"$time": ["01:00:00", 0, ["key", 1]]},
        {"$timedelta": [0, 90000, 0]}, {"$timedelta": [True, 0, 0]}, {"$timedelta": [10**12, 0, 0]},
        {"$decimal": "1_0"}, {"$decimal": "x"}, {"$decimal": 1}, {"$uuid": "{x}"}, {"$uuid": 1},
        {"$uuid": "12345678123456781234567812345678"}, {"$secret": 1}, {"$secretbytes": "!"},
        {"$model": []}, {"$model": [OWNER_NAME, {}, []]}, {"$model": [1, {}, [], None]},
        {"$model": [OWNER_NAME, [], [], None]}, {"$model": [OWNER_NAME, {}, [1], None]},
        {"$model": [OWNER_NAME, {}, [], []]}, {"$model": [OWNER_NAME, {"no": 1}, [], None]},
        {"$model": [OWNER_NAME, {"$dict": [[1, 1]]}, [], None]}, {"$enum": ["a", "b"]},
        {"$custom": ["a"]}, {"$custom": "a"}, {1: 2}, (1,), b"x", [object()], math.inf, [math.nan],
        HUGE, [HUGE], "\ud83d\ude00", {"\ud83d\ude00": 1},
    ],
    ids=lambda data: re.sub(r" at 0x[0-9a-f]+", "", ascii(data))[:40],
)  # fmt: skip
def test_data_that_is_not_of_the_form_is_malformed(data: Any) -> None:
    with pytest.raises(Malformed):
        decode(data, classes=EVERYTHING)


@pytest.mark.parametrize(
    "text",
    ["", "nul", "1 2", "[1,]", '{"a":1,"a":1}', '[{"a":{"b":1,"b":2}}]', "NaN", "[Infinity]",
     "-Infinity", "1e999", "-1e999", "9" * 5000, "'a'", '"\n"', "[1] x", "\ufeff1", b"1", None],
    ids=lambda text: repr(text)[:20],
)  # fmt: skip
def test_text_that_is_not_strict_json_is_malformed(text: Any) -> None:
    with pytest.raises(Malformed):
        loads(text)


def test_text_is_canonical_json() -> None:
    data: Any = {"b": [1, 1.5, None, True], "a": "\u00e9\u2028"}
    assert dumps(data) == '{"a":"\\u00e9\\u2028","b":[1,1.5,null,true]}'
    assert loads(dumps(data)) == data
    for not_json in (math.nan, [math.inf], b"x", {"a": {1}}):
        with pytest.raises(Malformed):
            dumps(not_json)  # type: ignore[arg-type]


class Row(TypedDict):
    pet: "Animal"


Alias = TypeAliasType("Alias", list[Animal] | None)
Tree = TypeAliasType("Tree", list["Tree"] | Animal)  # type: ignore[misc]
GenericAlias = TypeAliasType("GenericAlias", list[T], type_params=(T,))
AnimalId = NewType("AnimalId", Animal)


class Later(BaseModel):
    pet: "DefinedLater | None" = None


class DefinedLater(BaseModel):
    pass


class Kennel(BaseModel, Generic[Pet]):
    pet: Pet


REACHING = [
    Animal, Animal | None, list[Animal], dict[str, Animal], tuple[Animal, ...],
    tuple[int, Animal], set[Animal], Annotated[Animal | None, "x"], Alias, Tree,
    GenericAlias[Animal], AnimalId, Row, Owner, Box[Animal], list[Box[dict[str, Animal]]],
    typing.Union[int, "Animal", Animal], Pet, Kennel, typing.Sequence[Animal],
    Iterator[Animal], Annotated[list[Annotated[Animal, 1]], 2],
]  # fmt: skip


@pytest.mark.parametrize("annotation", REACHING)
def test_annotations_reach_models_and_their_subclasses(annotation: Any) -> None:
    classes = reachable(annotation)
    assert classes.get(class_name(Animal)) is Animal
    assert classes.get(class_name(Dog)) is Dog
    assert classes.get(class_name(Collar)) is Collar  # a field of the subclass
    assert classes.get(class_name(Open)) is None


def test_annotations_reach_enums() -> None:
    for annotation in (Color, list[Color | None], Literal[Color.RED], Owner):
        assert reachable(annotation).get(class_name(Color)) is Color


@pytest.mark.parametrize(
    "annotation",
    [BaseModel, RootModel, enum.Enum, enum.IntEnum, enum.StrEnum, enum.Flag, enum.IntFlag,
     list[BaseModel], enum.Enum | None, Any, object, type[Animal], Callable[[Animal], Animal],
     "Animal", None, int, dict, Literal["Animal"], T],
    ids=str,
)  # fmt: skip
def test_a_bare_base_or_an_unrelated_annotation_opens_nothing(annotation: Any) -> None:
    classes = reachable(annotation)
    for cls in (Animal, Dog, Color, Level, Word, Perm, Bits, Numbers):
        assert classes.get(class_name(cls)) is None


def test_forward_references_are_followed_before_the_first_use() -> None:
    assert reachable(Later).get(class_name(DefinedLater)) is DefinedLater


def test_a_generic_model_comes_back_as_its_own_parametrisation() -> None:
    value = Box[Animal](item=Dog(collar=Collar(size=1)))
    back = there_and_back(value, reachable(Box[Animal]))
    assert type(back) is Box[Animal]
    assert back == value


def test_a_subclass_loaded_after_the_look_up_was_made_is_found() -> None:
    classes = reachable(Animal)
    assert classes.get(class_name(Animal)) is Animal

    class Cat(Animal):
        pass

    assert classes.get(class_name(Cat)) is Cat


def test_of_two_subclasses_with_one_name_the_newest_is_taken() -> None:
    def make() -> type[Animal]:
        class Twin(Animal):
            pass

        return Twin

    older, newer = make(), make()
    assert class_name(older) == class_name(newer)
    assert reachable(Animal).get(class_name(older)) is newer
    assert reachable(Animal, older).get(class_name(older)) is older


# How fast the machine is today proves nothing about the codec.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

sealable = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=HUGE - 5, max_value=HUGE + 5)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=[]))
    | st.sampled_from(["$tuple", "$dict", "$model", "$", "\ud83d", "\ude00"])
    | st.binary()
    | st.binary().map(bytearray)
    | st.decimals(allow_nan=False)
    | st.dates()
    | st.datetimes(timezones=st.none() | st.timezones())
    | st.times()
    | st.timedeltas()
    | st.uuids()
    | st.sampled_from([Color.RED, Level.LOW, Word.YES, Perm.R | Perm.X, Bits.A]),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.sampled_from(["$tuple", "$model"]), inner)
        | st.dictionaries(st.integers() | st.tuples(st.text(), st.binary()), inner)
        | st.frozensets(st.integers() | st.text() | st.binary())
        | st.builds(lambda x, y: Open.model_construct(a=x, b=y), inner, inner)
    ),
    max_leaves=20,
)


@unhurried
@given(sealable)
def test_any_nesting_of_sealable_values_comes_back_exactly(value: Any) -> None:
    back = there_and_back(value)
    assert exactly_equal(back, value)
    assert text_of(back) == text_of(value)


@unhurried
@given(sealable)
def test_any_canonical_form_taken_as_data_comes_back_as_data(value: Any) -> None:
    form = encode(value)
    assert exactly_equal(there_and_back(form, classes=reachable()), form)


@unhurried
@given(sealable, sealable)
def test_values_share_a_text_only_where_they_are_the_same(one: Any, other: Any) -> None:
    if text_of(one) == text_of(other):
        assert exactly_equal(one, other)
