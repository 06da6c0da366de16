"""The seal's codec as a LangGraph serializer, to try it with tools that are not ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from runs.engine import canonical
from runs.engine.seal import BrokenSeal, Sealer

SEAL_TYPE = "flowsite-seal"
"""What stands beside the bytes. It is outside the seal, so no other is ever read."""


class SealSerializer:
    """LangGraph's ``SerializerProtocol``: each value in canonical form, sealed by itself.

    ``keys`` are those of ``Sealer``. Only classes that ``annotations`` reach are built on
    loading. ``seal_encoder`` and ``seal_decoder`` are those of ``FlowRunner``.
    """

    def __init__(
        self,
        keys: Mapping[str, bytes],
        *,
        annotations: Iterable[Any] = (),
        seal_encoder: Callable[[Any], Any] | None = None,
        seal_decoder: Callable[[str, Any], Any] | None = None,
    ) -> None:
        self._sealer = Sealer(keys)
        self._classes = canonical.reachable(*annotations)
        self._encoder = seal_encoder
        self._decoder = seal_decoder

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Raises NotSealable, naming the place, for a value without canonical form."""
        body = canonical.dumps(canonical.encode(obj, encoder=self._encoder))
        return SEAL_TYPE, self._sealer.seal(body).text.encode("ascii")

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Raises BrokenSeal before anything is read, UnknownClass before anything is built."""
        kind, content = data
        if kind != SEAL_TYPE:
            raise BrokenSeal(f"it is of the type {kind!r}, and only {SEAL_TYPE!r} is read")
        # A byte that is not ASCII becomes a character that no sealed text holds.
        body = self._sealer.open(content.decode("ascii", "replace")).body
        return canonical.decode(canonical.loads(body), classes=self._classes, decoder=self._decoder)
