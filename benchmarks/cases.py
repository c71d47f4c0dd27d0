"""The official cases: read from official_cases.json, chosen by id or group, and shrunk for a smoke run."""

import dataclasses
import json
import pathlib

OFFICIAL = pathlib.Path(__file__).with_name("official_cases.json")


@dataclasses.dataclass(frozen=True)
class Case:
    """One measurement: an operation on inputs of one dtype, shape and distribution. `shape` holds the two lengths for the merges."""

    id: str
    group: str
    name: str
    op: str
    dtype: str
    shape: tuple
    distribution: str
    options: dict
    timing: str
    target_us: float
    peer: str | None = None
    torch_us: float | None = None
    peer_us: float | None = None
    floor_us: float | None = None


def load(path=OFFICIAL):
    """All official cases, in the order of the file."""
    fields = {field.name for field in dataclasses.fields(Case)}
    entries = json.loads(pathlib.Path(path).read_text())["cases"]
    return [Case(**{key: tuple(value) if key == "shape" else value for key, value in entry.items() if key in fields}) for entry in entries]


def select(cases, only=None, group=None):
    """The cases named by `only` ("A11,B01") or by `group` ("A", or "A,B"); both together choose either.
    An unknown name raises ValueError."""
    if not only and not group:
        return list(cases)
    wanted = {name.strip().upper() for name in (only or "").split(",") if name.strip()}
    groups = {name.strip().upper() for name in (group or "").split(",") if name.strip()}
    unknown = sorted(wanted - {case.id for case in cases}) + sorted(groups - {case.group for case in cases})
    if unknown:
        raise ValueError(f"no such case or group: {', '.join(unknown)}; there are cases {cases[0].id}..{cases[-1].id}")
    return [case for case in cases if case.id in wanted or case.group in groups]


def shrink(case, longest=500, rows=7):
    """The same case over a tiny shape, for a smoke run that compares results only."""
    if case.op in ("merge", "merge_by_key"):
        shape = tuple(min(length, longest) for length in case.shape)
    elif case.op == "unique":
        shape = (min(case.shape[0], longest), *case.shape[1:])
    else:
        shape = tuple(min(size, longest if axis == len(case.shape) - 1 else rows) for axis, size in enumerate(case.shape))
    return dataclasses.replace(case, shape=shape)
