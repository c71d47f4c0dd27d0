"""One generator of inputs, for the tests and the benchmarks: shapes x dtypes x distributions, the same bits for the same case every time.

`make("zipf", (1000,), torch.float32, device)` fills a tensor on the device itself, so benchmarks can ask for 2^28 elements. A
distribution is described by ranks (whole numbers 0 <= rank < count) and a monotone map from ranks to the values of a dtype, or by raw
bits where the point is the bits. Complex tensors take the distribution for both parts, so that ties of the real parts occur where the
distribution has ties.
"""

import math
import zlib

import numpy as np
import torch

INTEGERS = (torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2)
COMPLEX = (torch.complex64, torch.complex128)
DTYPES = (torch.bool, *INTEGERS, *FLOATS, *COMPLEX)
BY_NAME = {str(dtype).removeprefix("torch."): dtype for dtype in DTYPES}

# Bit pattern of +inf (float8_e4m3fn has none: of its largest finite number). Above it lie only NaNs.
INFINITY_BITS = {
    torch.float16: 0x7C00,
    torch.bfloat16: 0x7F80,
    torch.float32: 0x7F80_0000,
    torch.float64: 0x7FF0_0000_0000_0000,
    torch.float8_e4m3fn: 0x7E,
    torch.float8_e5m2: 0x7C,
}
# Bits of the fraction: a magnitude below 2^bits is a denormal.
FRACTION_BITS = {torch.float16: 10, torch.bfloat16: 7, torch.float32: 23, torch.float64: 52, torch.float8_e4m3fn: 3, torch.float8_e5m2: 2}
PARTS = {torch.complex64: torch.float32, torch.complex128: torch.float64}
SIGNED_OF_SIZE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

# Lengths at which some kernel changes its tile, its pass or itself, and their neighbours.
TILES = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 20480, 24576)
EDGE_LENGTHS = (0, 1, 2, 3, 7, *(tile + step for tile in TILES for step in (-1, 0, 1)))
FEW_LENGTHS = (0, 1, 2, 33, 257, 1025, 4097, 20481)


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def element_size(dtype):
    return torch.empty((), dtype=dtype).element_size()


def seed_of(*parts):
    """The same seed for the same case, on every run and machine."""
    return zlib.crc32(repr(parts).encode())


def generator_of(device, seed):
    return torch.Generator(device=device).manual_seed(seed)


# ---- pieces


def random_bits_of(count, dtype, device, generator):
    """`count` elements of uniformly random bits, whatever the dtype makes of them (bool: bytes other than 0 and 1 too)."""
    nbytes = count * element_size(dtype)
    words = torch.empty(-(-nbytes // 8), dtype=torch.int64, device=device)
    words.random_(-(2**63), None, generator=generator)
    return words.view(torch.uint8)[:nbytes].view(dtype)


def below(limit, count, device, generator):
    return torch.randint(0, limit, (count,), device=device, generator=generator, dtype=torch.int64)


def from_bits(bits, dtype):
    """int64 bit patterns -> elements, keeping the low bits."""
    return bits.to(SIGNED_OF_SIZE[element_size(dtype)]).view(dtype)


def pick(pool, index):
    """pool[index] by bits: torch does not index every dtype on every device."""
    return pool.view(SIGNED_OF_SIZE[pool.element_size()])[index].view(pool.dtype)


def from_magnitudes(signed, dtype):
    """int64 m -> the float whose magnitude has the bits |m|, negative when m < 0. Monotone."""
    sign = 1 << (element_size(dtype) * 8 - 1)
    sign = sign - 2**64 if sign == 2**63 else sign
    return from_bits(torch.where(signed < 0, (-signed) | sign, signed), dtype)


def spread(ranks, count, dtype):
    """Ranks 0 <= rank < count, spread over the dtype's range by a monotone map; neighbours meet where the dtype has fewer values
    than `count`.
    """
    count = max(count, 1)
    if dtype is torch.bool:
        return ranks * 2 >= count
    if dtype in FLOATS:
        limit = INFINITY_BITS[dtype] // 2
        low, span = -limit, 2 * limit
    elif dtype.is_signed:
        low, span = torch.iinfo(dtype).min, 2 ** (element_size(dtype) * 8)
    else:
        low, span = 0, 2 ** (element_size(dtype) * 8)
    span = min(span, 2**63 - 1)  # int64 arithmetic; the eight-byte types keep half of their range or all but one value
    scaled = ranks * (span // count) if span >= count else ranks * span // count
    return from_magnitudes(scaled + low, dtype) if dtype in FLOATS else from_bits(scaled + low, dtype)


def normal(count, dtype, device, generator):
    wide = torch.float64 if dtype is torch.float64 else torch.float32
    return torch.randn(count, device=device, generator=generator, dtype=wide).to(dtype)


# ---- distributions: (count, dtype, device, generator) -> 1-D tensor

DISTRIBUTIONS = {}
FLOAT_ONLY = set()
INTEGER_ONLY = set()


def distribution(name, floats_only=False, integers_only=False):
    def register(function):
        DISTRIBUTIONS[name] = function
        if floats_only:
            FLOAT_ONLY.add(name)
        if integers_only:
            INTEGER_ONLY.add(name)
        return function

    return register


@distribution("uniform")
def uniform(count, dtype, device, generator):
    """Integers: all bits random. Floats: normally distributed. Bool: fair coins."""
    if dtype is torch.bool:
        return below(2, count, device, generator).to(torch.bool)
    return normal(count, dtype, device, generator) if dtype in FLOATS else random_bits_of(count, dtype, device, generator)


@distribution("random_bits")
def random_bits(count, dtype, device, generator):
    return random_bits_of(count, dtype, device, generator)


@distribution("sorted")
def ascending(count, dtype, device, generator):
    return spread(torch.arange(count, device=device), count, dtype)


@distribution("reversed")
def reversed_(count, dtype, device, generator):
    return spread(torch.arange(count - 1, -1, -1, device=device) if count else torch.arange(0, device=device), count, dtype)


@distribution("all_equal")
def all_equal(count, dtype, device, generator):
    return spread(torch.full((count,), 5, device=device), 8, dtype)


@distribution("two_values")
def two_values(count, dtype, device, generator):
    return spread(below(2, count, device, generator) * 5 + 1, 8, dtype)


@distribution("organ_pipe")
def organ_pipe(count, dtype, device, generator):
    ramp = torch.arange(count, device=device)
    return spread(torch.minimum(ramp, count - 1 - ramp), count, dtype)


@distribution("zipf")
def zipf(count, dtype, device, generator):
    """Rank r with probability about 1 / r: a few values make up most of the input."""
    draws = torch.rand(count, device=device, generator=generator, dtype=torch.float64)
    ranks = torch.exp(draws * math.log(max(count, 2))).to(torch.int64)
    return spread(ranks, max(count, 2) + 1, dtype)


@distribution("few_bits")
def few_bits(count, dtype, device, generator):
    """Only three bit positions vary, one of them the top one: most digits are constant."""
    width = element_size(dtype) * 8
    draws = below(8, count, device, generator)
    top = (draws >> 2) << (width - 1)
    return from_bits((draws & 1) | (((draws >> 1) & 1) << (width // 2)) | top, dtype)


@distribution("runs")
def runs(count, dtype, device, generator):
    """Runs of 1 to 200 equal keys, values at random."""
    starts = below(100, count, device, generator) == 0
    group = torch.cumsum(starts, 0)
    values = random_bits_of(count + 1, dtype, device, generator)
    return pick(values, group)


@distribution("extremes")
def extremes(count, dtype, device, generator):
    """The ends of the range and their neighbours, which a kernel might use as padding."""
    if dtype in FLOATS:
        infinity = INFINITY_BITS[dtype]
        magnitudes = [infinity, infinity - 1, infinity - 2, 1, 0, 1 << FRACTION_BITS[dtype]]
        pool = from_magnitudes(torch.tensor([sign * m for m in magnitudes for sign in (1, -1)], device=device), dtype)
    elif dtype is torch.bool:
        pool = torch.tensor([False, True], device=device)
    else:
        info = torch.iinfo(dtype)
        values = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, info.max // 2, info.max // 2 + 1]
        pool = from_bits(torch.tensor([v - 2**64 if v >= 2**63 else v for v in values], device=device), dtype)
    return pick(pool, below(len(pool), count, device, generator))


@distribution("nans", floats_only=True)
def nans(count, dtype, device, generator):
    """A third NaN, of both signs and every payload; a few infinities; numbers between."""
    infinity = INFINITY_BITS[dtype]
    payloads = (1 << (element_size(dtype) * 8 - 1)) - 1 - infinity  # magnitudes infinity + 1 .. infinity + payloads are NaN
    magnitude = infinity + 1 + below(payloads, count, device, generator)
    odd = torch.where(below(8, count, device, generator) == 0, infinity, magnitude)
    negative = below(2, count, device, generator) == 1
    odd = from_magnitudes(torch.where(negative, -odd, odd), dtype)
    signed = SIGNED_OF_SIZE[element_size(dtype)]
    chosen = below(3, count, device, generator) == 0
    return torch.where(chosen, odd.view(signed), normal(count, dtype, device, generator).view(signed)).view(dtype)


@distribution("all_nan", floats_only=True)
def all_nan(count, dtype, device, generator):
    """Nothing but NaN: all equal, so the result is the input, bit for bit."""
    infinity = INFINITY_BITS[dtype]
    payloads = (1 << (element_size(dtype) * 8 - 1)) - 1 - infinity
    magnitude = infinity + 1 + below(payloads, count, device, generator)
    return from_magnitudes(torch.where(below(2, count, device, generator) == 1, -magnitude, magnitude), dtype)


@distribution("signed_zeros", floats_only=True)
def signed_zeros(count, dtype, device, generator):
    """Zeros of both signs, with the smallest numbers of both signs among them."""
    sign = 1 << (element_size(dtype) * 8 - 1)
    pool = torch.tensor([0, 0, 0, 1], device=device)[below(4, count, device, generator)]
    negative = below(2, count, device, generator) == 1
    sign = sign - 2**64 if sign == 2**63 else sign
    return from_bits(torch.where(negative, pool | sign, pool), dtype)


@distribution("infinities", floats_only=True)
def infinities(count, dtype, device, generator):
    pool = torch.tensor([float("inf"), float("-inf"), 0.0, 1.0, -1.0, float("nan")], device=device).to(dtype)
    return pick(pool, below(6, count, device, generator))


@distribution("denormals", floats_only=True)
def denormals(count, dtype, device, generator):
    limit = 1 << FRACTION_BITS[dtype]
    return from_magnitudes(below(2 * limit, count, device, generator) - limit, dtype)


@distribution("ids_below_2^20", integers_only=True)
def ids_below_2_20(count, dtype, device, generator):
    return from_bits(below(min(2**20, torch.iinfo(dtype).max), count, device, generator), dtype)


@distribution("ids_below_64", integers_only=True)
def ids_below_64(count, dtype, device, generator):
    return from_bits(below(64, count, device, generator), dtype)


# ---- what tests and benchmarks call


def distributions_of(dtype):
    """The names that make sense for a dtype."""
    part = PARTS.get(dtype, dtype)
    return tuple(
        name for name in DISTRIBUTIONS if (name not in FLOAT_ONLY or part in FLOATS) and (name not in INTEGER_ONLY or part in INTEGERS)
    )


def make(name, shape, dtype, device="cpu", seed=0):
    """A contiguous tensor of the distribution. `shape` is an int or a tuple; the pattern runs through all elements in memory order."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    generator = generator_of(device, seed_of(name, shape, name_of(dtype), seed))
    count = math.prod(shape)
    function = DISTRIBUTIONS[name]
    if dtype in PARTS:
        parts = [function(count, PARTS[dtype], device, generator) for _ in range(2)]
        return torch.view_as_complex(torch.stack(parts, -1)).view(shape)
    return function(count, dtype, device, generator).view(shape)


def make_rows(length, dtype, device="cpu", seed=0, repeat=1):
    """One row of `length` for each distribution of the dtype (times `repeat`): many cases in one call."""
    rows = [make(name, length, dtype, device, seed=(seed, i)) for i in range(repeat) for name in distributions_of(dtype)]
    if dtype in PARTS:
        return torch.stack(rows)
    return torch.stack([row.view(SIGNED_OF_SIZE[element_size(dtype)]) for row in rows]).view(dtype)


def comparable(x):
    """A tensor of a dtype that torch compares and sorts on every device, in the same order as `x` (not complex). NaNs get the
    positive sign.
    """
    if x.dtype is torch.bool:
        return (x.view(torch.uint8) != 0).to(torch.uint8)
    if x.dtype in FLOATS:
        wide = x.float() if x.element_size() == 1 else x
        return torch.where(wide.isnan(), torch.full_like(wide, float("nan")), wide)
    if x.dtype in INTEGERS and not x.dtype.is_signed:
        signed = SIGNED_OF_SIZE[x.element_size()]
        return x.view(signed) ^ torch.iinfo(signed).min
    return x


def sorted_values(x, descending=False):
    """`x` sorted along the last dim by torch or NumPy, for inputs of merges."""
    if x.dtype in PARTS:
        order = np.argsort(x.detach().cpu().numpy(), axis=-1, kind="stable")
        return x.gather(-1, torch.from_numpy((order[..., ::-1] if descending else order).copy()).to(x.device))
    order = torch.sort(comparable(x), dim=-1, descending=descending, stable=True).indices
    return x.view(SIGNED_OF_SIZE[x.element_size()]).gather(-1, order).view(x.dtype)


def two_sorted(lengths, dtype, device="cpu", seed=0, name="uniform", rows=(), descending=False):
    """Two sorted inputs of a merge: shapes (*rows, lengths[0]) and (*rows, lengths[1])."""
    pair = [make(name, (*rows, length), dtype, device, seed=(seed, side)) for side, length in zip("ab", lengths)]
    return tuple(sorted_values(x, descending) for x in pair)
