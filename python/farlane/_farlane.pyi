from collections.abc import Callable, Sequence
from os import PathLike
from typing import Final, TypedDict, final, type_check_only

__all__ = [
    "Plan",
    "Table",
    "VERSION",
    "fail",
    "missing",
    "read_samples",
    "read_trace",
    "reproduce",
    "work",
]

VERSION: Final[str]

@type_check_only
class Repetition(TypedDict):
    seed: int | None
    runs: int | None
    phases: int | None
    search: bool

@type_check_only
class Place(TypedDict):
    folder: str | PathLike[str]
    engine: str
    timeout: str | None
    worker: list[str]

_Path = str | PathLike[str]
_Pairs = Sequence[tuple[str, str]]
_Ended = tuple[str, list[tuple[str, Table]], BaseException | None]
_Progress = Callable[[str], object] | None

@final
class Plan:
    def __new__(cls, text: str, name: str, set: _Pairs) -> Plan: ...
    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...
    def set(self, set: _Pairs) -> Plan: ...
    def run(self, repetition: Repetition, frames: bool, progress: _Progress) -> _Ended: ...
    def sweep(
        self,
        points: tuple[Sequence[str], Sequence[Sequence[str]]],
        repetition: Repetition,
        place: Place | None,
        progress: _Progress,
    ) -> _Ended: ...
    def bound(self, method: str) -> str: ...
    def schedule(self, deadline: _Pairs, time: str) -> str: ...

@final
class Table:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def units(self) -> dict[str, str]: ...

def read_trace(files: Sequence[_Path]) -> Table: ...
def read_samples(file: _Path) -> Table: ...
def work(folder: _Path, only: str | None, point_timeout: str | None) -> None: ...
def missing(folder: _Path) -> list[int]: ...
def fail(folder: _Path, points: Sequence[int], why: str) -> None: ...
def reproduce(publication: str, only: Sequence[str]) -> str: ...
