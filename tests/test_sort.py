"""sort: values and indices bit for bit, for every dtype, distribution, length, direction, dim and layout; shapes and strides as
torch.sort has them.
"""

import numpy as np
import pytest
import torch
from cases import BY_NAME, COMPLEX, DTYPES, EDGE_LENGTHS, FEW_LENGTHS, distributions_of, make, make_rows, name_of
from reference import allowed_options, assert_is_stable_sort, assert_stable_sort, bits_of, stable_order, strides_of_torch_sort

import torch_gpusort as gs

BOTH = (False, True)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
one_of_each_width = pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.bfloat16, torch.float32, torch.int64, torch.complex64, torch.complex128], ids=name_of
)
ON_BOTH_SIDES = [(name, dtype) for dtype in DTYPES for name in distributions_of(dtype)]


def check(x, dim=-1, descending=False, **options):
    before = bits_of(x)
    result = gs.sort(x, dim, descending, **options)
    assert_stable_sort(x, result, dim, descending, options.get("index_dtype") or torch.int64)
    assert np.array_equal(bits_of(x), before), "the input was changed"
    return result


# ---- one dimension


@pytest.mark.parametrize("name, dtype", ON_BOTH_SIDES, ids=lambda v: v if isinstance(v, str) else name_of(v))
def test_every_distribution_at_every_edge(device, name, dtype):
    for n in EDGE_LENGTHS:
        x = make(name, n, dtype, device)
        for descending in BOTH:
            check(x, descending=descending)


@every_dtype
def test_lengths_up_to_two_hundred(device, dtype):
    for n in range(201):
        check(make("zipf" if n % 2 else "random_bits", n, dtype, device), descending=bool(n % 3))


@every_dtype
@pytest.mark.parametrize("descending", BOTH)
def test_one_long_row(device, dtype, descending):
    lengths = (65_535, 65_537, 131_073, 300_007) if device.type == "cuda" else (65_537, 150_001)
    for n in lengths:
        for name in ("random_bits", "zipf", "runs"):
            check(make(name, n, dtype, device), descending=descending)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in COMPLEX], ids=name_of)
def test_millions_of_elements(dtype):
    for n in (2**20, 2**20 + 1, 3_000_017, 2**24 - 1, 2**25 + 12_345):
        for name in ("random_bits", "zipf") if n < 2**24 else ("random_bits",):
            x = make(name, n, dtype, "cuda")
            for descending in BOTH:
                assert_is_stable_sort(x, *gs.sort(x, descending=descending), descending=descending)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [n for n in distributions_of(torch.float32) if n != "random_bits"])
def test_millions_of_skewed_elements(name):
    for dtype in (torch.float32, torch.int64, torch.float16, torch.uint8):
        if name in distributions_of(dtype):
            x = make(name, 5_000_011, dtype, "cuda")
            for descending in BOTH:
                assert_is_stable_sort(x, *gs.sort(x, descending=descending), descending=descending)


# ---- rows


@every_dtype
def test_rows_of_every_edge_length(device, dtype):
    """Each row is another distribution, so rows that mixed would show."""
    for n in EDGE_LENGTHS:
        if n <= 4097 or n % 2 or device.type == "cuda":
            x = make_rows(n, dtype, device)
            for descending in BOTH:
                check(x, descending=descending)


@one_of_each_width
@pytest.mark.parametrize(
    "rows, length", [(65_535, 5), (65_536, 3), (70_001, 2), (131_073, 1), (4097, 33), (1000, 100), (129, 1000), (3, 30_000), (2, 65_537)]
)
def test_many_rows_and_long_rows(device, dtype, rows, length):
    x = make("random_bits" if dtype not in COMPLEX else "few_bits", (rows, length), dtype, device)
    for descending in BOTH:
        check(x, descending=descending)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.uint8, torch.bfloat16, torch.float32, torch.int64], ids=name_of)
@pytest.mark.parametrize(
    "rows, length",
    [(127, 20_481), (128, 50_257), (133, 24_577), (2, 1_000_001), (8, 128_256), (300, 40_000), (1_000_003, 9), (300_000, 64)],
)
def test_rows_that_fill_the_gpu(dtype, rows, length):
    for name in ("random_bits", "zipf"):
        x = make(name, (rows, length), dtype, "cuda")
        for descending in BOTH:
            assert_is_stable_sort(x, *gs.sort(x, descending=descending), descending=descending)


# ---- shapes, dims, layouts

SHAPES = [
    (),
    (0,),
    (1,),
    (3, 0),
    (0, 3),
    (2, 0, 4),
    (1, 1, 1),
    (5, 1),
    (1, 5),
    (2, 1, 3),
    (4, 6, 5),
    (3, 2, 4, 2, 3),
    (40, 300),
    (300, 40),
    (1, 2, 1, 3, 1, 2, 1),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_dim_of_every_rank(device, shape):
    for dtype in (torch.float32, torch.uint8, torch.int64, torch.complex128):
        x = make("zipf", shape, dtype, device)
        for dim in range(-max(1, len(shape)), max(1, len(shape))):
            for descending in BOTH:
                values, indices = check(x, dim, descending)
                assert values.is_contiguous() and indices.is_contiguous()


def layouts(dtype, device):
    """(what, tensor): every way in which a tensor's memory is not one plain block."""
    base = make("random_bits" if dtype not in COMPLEX else "two_values", (6, 40, 8, 5), dtype, device)
    flat = base.flatten()
    yield "transposed", base.transpose(0, 1)
    yield "permuted", base.permute(3, 1, 0, 2)
    yield "sliced with steps", base[:, ::2, 1:, ::3]
    yield "narrowed", base[2:5, :, 3:, :]
    yield "channels last", base.contiguous(memory_format=torch.channels_last)
    yield "expanded", base[:, :1].expand(6, 40, 8, 5)
    yield "expanded along the last dim", base[..., :1].expand(6, 40, 8, 50)
    yield "expanded everywhere", flat[:1].reshape(()).expand(3, 4, 2)
    yield "offset and transposed", flat[3:][:4096].view(64, 64).t()
    yield "every seventh", flat[1::7]
    yield "overlapping windows", flat.as_strided((50, 20), (3, 1), 5)
    yield "size one dims with odd strides", flat.as_strided((1, 30, 1), (7, 4, 999), 2)
    yield "row step", flat.as_strided((30, 100), (111, 1), 1)
    yield "empty and permuted", base[:, :0].permute(2, 0, 1, 3)


@every_dtype
def test_every_layout_sorts_like_its_copy(device, dtype):
    for what, x in layouts(dtype, device):
        for dim in range(-x.dim(), x.dim()):
            for descending in BOTH if dim >= 0 else (False,):
                values, indices = check(x, dim, descending)
                assert (values.stride(), indices.stride()) == strides_of_torch_sort(x, dim), f"strides of {what}, dim {dim}"


@every_dtype
def test_storage_offsets_of_every_alignment(device, dtype):
    for n in (5, 100, 1000, 4099, 30_001):
        storage = make("random_bits" if dtype not in COMPLEX else "zipf", 2 * n + 40, dtype, device)
        for offset in (1, 2, 3, 5, 8, 15, 16, 17):
            check(storage[offset : offset + n])
        check(storage[3 : 3 + 2 * (n // 2) * 2].view(2, -1)[:, 1:], descending=True)


@one_of_each_width
def test_columns_of_tall_and_wide_matrices(device, dtype):
    name = "random_bits" if dtype not in COMPLEX else "zipf"
    for shape in ((1000, 33), (33, 1000), (4097, 3), (5, 5000), (257, 129)):
        x = make(name, shape, dtype, device)
        for descending in BOTH:
            check(x, 0, descending)
            check(x.t(), -1, descending)
    x = make(name, (17, 130, 19), dtype, device)
    for dim in range(3):
        check(x, dim)


def test_conjugated_and_negated_views(device):
    """Lazy views: the bits in memory are not the values."""
    x = make("zipf", (7, 50), torch.complex64, device)
    for view in (x.conj(), x.conj().t()):
        result = gs.sort(view)
        assert_stable_sort(view.resolve_conj().clone(), result)
    negated = x.conj().imag
    assert negated.is_neg()
    assert_stable_sort(negated.resolve_neg().clone(), gs.sort(negated))


# ---- arguments and results


@one_of_each_width
def test_index_dtype(device, dtype):
    for n in FEW_LENGTHS:
        x = make("zipf", (3, n), dtype, device)
        for index_dtype in (None, torch.int64, torch.int32):
            for descending in BOTH:
                check(x, descending=descending, index_dtype=index_dtype)
                check(x, 0, descending, index_dtype=index_dtype)


@one_of_each_width
def test_algorithms_by_name(device, dtype):
    """Every algorithm that the error of a wrong name lists, here or on the other device."""
    names = allowed_options(lambda: gs.sort(torch.zeros(3, device=device), algorithm="no such"), "algorithm")
    assert "auto" in names and len(names) > 1
    for algorithm in names:
        for shape in ((0,), (1,), (300,), (40, 33), (3, 5000), (2, 0), (70_001,)):
            x = make("zipf", shape, dtype, device)
            for descending in BOTH:
                check(x, 0, descending, algorithm=algorithm)
        check(make("zipf", (30, 200), dtype, device).t(), 0, algorithm=algorithm, index_dtype=torch.int32)


def test_arguments_as_torch_sort_has_them(device):
    x = make("zipf", (40, 30), torch.float32, device)
    for result in (
        gs.sort(x, 0, True),
        gs.sort(x, dim=0, descending=True),
        gs.sort(input=x, dim=0, descending=True, stable=True),
        gs.sort(x, 0, True, stable=False),
        gs.sort(x, 0, True, stable=None),
        gs.sort(x, 0, True, True),
        torch.ops.gpusort.sort(x, 0, True),
        torch.ops.gpusort.sort(x, dim=0, descending=True, stable=False),
    ):
        assert_stable_sort(x, result, 0, True)
    for stable in (True, False):
        values, indices = gs.sort(x, stable=stable, dim=0, descending=True)
        want = torch.sort(x.cpu(), stable=True, dim=0, descending=True)
        assert torch.equal(values.cpu(), want.values) and torch.equal(indices.cpu(), want.indices)


def test_result_is_a_named_tuple(device):
    result = gs.sort(make("uniform", 9, torch.float32, device))
    values, indices = result
    assert result.values is values and result.indices is indices and result[0] is values and result[1] is indices
    assert isinstance(result, tuple) and len(result) == 2 and "values" in repr(result) and "indices" in repr(result)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (5, 1), (1, 1), (64,)], ids=str)
def test_results_are_new_tensors(device, shape):
    x = make("sorted", shape, torch.int32, device)
    values, indices = gs.sort(x)
    assert values is not x and not values._is_view()
    if x.numel():
        assert values.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
        values.fill_(99)
        assert not x.eq(99).any()
        assert indices.untyped_storage().data_ptr() != values.untyped_storage().data_ptr()


def test_bool_bytes_other_than_zero_and_one(device):
    """Every nonzero byte is True, equal to every other, and keeps its own bits."""
    for n in (3, 40, 300, 5000, 30_000):
        x = torch.arange(n, dtype=torch.int64).mul(37).remainder(256).to(torch.uint8).view(torch.bool).to(device)
        for descending in BOTH:
            check(x, descending=descending)


def test_bitwise_equal_to_torch_on_the_cpu(device):
    """torch.sort itself as the reference, in the dtypes that it sorts rightly on the CPU."""
    for dtype in (
        BY_NAME[n]
        for n in ("uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "uint16", "uint32", "uint64")
    ):
        x = make("random_bits", (11, 513), dtype, device)
        for dim in (0, 1):
            for descending in BOTH:
                values, indices = gs.sort(x, dim, descending)
                want = torch.sort(x.cpu(), dim=dim, descending=descending, stable=True)
                assert torch.equal(indices.cpu(), want.indices)
                assert np.array_equal(bits_of(values), bits_of(want.values))


def test_the_same_answer_every_time(device):
    x = make("two_values", 100_003, torch.float32, device)
    order = stable_order(x)
    for _ in range(10):
        assert_stable_sort(x, gs.sort(x), order=order)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_any_number_of_cpu_threads(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for dtype in (torch.uint8, torch.float32, torch.int64, torch.complex64):
            for n in (0, 1, 1000, 33_000, 250_001):
                check(make("zipf", n, dtype), descending=threads % 2 == 0)
            check(make("zipf", (7, 9001), dtype), 0)
            check(make("zipf", (7, 9001), dtype), 1)
    finally:
        torch.set_num_threads(before)


def test_stale_memory_does_not_show(device):
    """Temporaries come from memory that other tensors have filled with ones."""
    for n in (1, 40, 1000, 5000, 100_000):
        junk = [torch.full((4 * n + 4096,), -1, dtype=torch.int64, device=device) for _ in range(4)]
        del junk
        check(make("uniform", n, torch.float32, device))
        check(make("extremes", (3, n), torch.int32, device))


def test_parameters_and_subclasses_are_taken(device):
    x = torch.nn.Parameter(make("uniform", (4, 9), torch.float32, device))
    assert_stable_sort(x.detach(), tuple(t.detach() for t in gs.sort(x)))
    with torch.inference_mode():
        y = make("uniform", 50, torch.float32, device)
        values, indices = gs.sort(y)
        assert values.is_inference() and indices.is_inference()
