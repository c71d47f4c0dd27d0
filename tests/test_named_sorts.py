"""merge_sort, bitonic_sort, sample_sort, and the radix sort step by step: by whatever algorithm, the results are those of sort."""

# ruff: noqa: B023 (the functions made in loops are called there and then)

import pytest
import torch
from cases import COMPLEX, DTYPES, distributions_of, make, make_rows, name_of
from reference import allowed_options, assert_is_stable_sort, assert_stable_sort, strides_of_torch_sort, window_order
from torch.autograd import gradcheck, gradgradcheck

import torch_gpusort as gs

BOTH = (False, True)
NAMES = ("merge_sort", "bitonic_sort", "sample_sort")
every_name = pytest.mark.parametrize("name", NAMES)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
# Around the tiles that the algorithms sort on chip (1024, 4096, 8192), and lengths that need merges, levels and padding.
LENGTHS = (0, 1, 2, 3, 31, 33, 1023, 1025, 4096, 4097, 8191, 8192, 8193, 20_481, 33_000)


def check(name, x, dim=-1, descending=False):
    assert_stable_sort(x, getattr(gs, name)(x, dim, descending), dim, descending)


@every_name
@every_dtype
def test_every_length_and_direction(device, name, dtype):
    for i, n in enumerate(LENGTHS):
        for distribution in ("random_bits", "two_values") if i % 2 else ("zipf", "organ_pipe"):
            for descending in BOTH:
                check(name, make(distribution, n, dtype, device), descending=descending)


@every_name
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.float16, torch.float32, torch.float64, torch.complex128], ids=name_of)
def test_every_distribution(device, name, dtype):
    for distribution in distributions_of(dtype):
        for n in (300, 9001) if device.type == "cpu" else (300, 9001, 70_001):
            for descending in BOTH:
                check(name, make(distribution, n, dtype, device), descending=descending)


@every_name
@pytest.mark.parametrize("dtype", [torch.uint8, torch.bfloat16, torch.int32, torch.float64, torch.complex64], ids=name_of)
def test_rows_dims_and_strides(device, name, dtype):
    for length in (7, 700, 9000):
        check(name, make_rows(length, dtype, device, seed=1), descending=length == 700)
    x = make("zipf", (6, 130, 19), dtype, device)
    for dim in range(-3, 3):
        check(name, x, dim, dim % 2 == 0)
    for view in (x.transpose(0, 1), x[:, ::3, 1:], x[:1].expand(6, 130, 19), x[0, 0, 0], x[:, :0]):
        values, indices = getattr(gs, name)(view, 0)
        assert_stable_sort(view, (values, indices), 0)
        assert (values.stride(), indices.stride()) == strides_of_torch_sort(view, 0)


@every_name
def test_results_are_those_of_sort(device, name):
    x = make("nans", 40_000, torch.float32, device)
    result, want = getattr(gs, name)(x, descending=True), gs.sort(x, descending=True)
    assert type(result) is type(want) and torch.equal(result.indices, want.indices)
    assert_stable_sort(x, getattr(torch.ops.gpusort, name)(x, 0, True), 0, True)
    assert_stable_sort(x, gs.sort(x, algorithm=name.removesuffix("_sort"), index_dtype=torch.int32), index_dtype=torch.int32)


@every_name
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_cpu_threads(name, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for dtype in (torch.float32, torch.int64):
            for distribution in ("random_bits", "two_values"):
                check(name, make(distribution, 300_001, dtype), descending=threads == 2)
    finally:
        torch.set_num_threads(before)


@pytest.mark.gpu
@every_name
@pytest.mark.parametrize("dtype", [torch.uint8, torch.bfloat16, torch.float32, torch.int64], ids=name_of)
def test_millions(name, dtype):
    for shape in ((3_000_017,), (2**21,), (3, 700_001), (300, 20_011)):
        for distribution in ("random_bits", "two_values", "sorted"):
            x = make(distribution, shape, dtype, "cuda")
            for descending in BOTH:
                assert_is_stable_sort(x, *getattr(gs, name)(x, -1, descending), descending=descending)


@every_name
def test_gradients_vmap_and_errors(device, name):
    sort = getattr(gs, name)
    x = (torch.randperm(20, generator=torch.Generator().manual_seed(1)).double() / 3).view(4, 5).to(device).requires_grad_()
    assert gradcheck(lambda t: sort(t, 0).values, (x,), check_forward_ad=True)
    assert gradgradcheck(lambda t: sort(t, 1, True).values ** 2, (x,))
    y = make("zipf", (4, 5, 6), torch.float32, device)
    for in_dim in (0, 1, 2):
        mapped = torch.vmap(lambda t: tuple(sort(t, 0, True)), in_dims=in_dim)(y)
        for got, want in zip(mapped, zip(*[sort(t, 0, True) for t in y.unbind(in_dim)])):
            assert torch.equal(got, torch.stack(want))
    with pytest.raises(IndexError, match="dim=3"):
        sort(y, 3)
    with pytest.raises(TypeError, match=r"input.*complex32"):
        sort(torch.zeros(3, dtype=torch.int32, device=device).view(torch.complex32))
    with pytest.raises(TypeError):
        sort([3, 1])


def test_algorithms_have_one_list_on_every_device(device):
    names = allowed_options(lambda: gs.sort(torch.zeros(3, device=device), algorithm="no such"), "algorithm")
    assert names == ["auto", "radix", "merge", "bitonic", "sample", "rows", "grid", "buckets"]
    assert names == allowed_options(lambda: gs.sort(torch.zeros(3, device="meta"), algorithm="no such"), "algorithm")
    x = torch.tensor([[3.0, 1.0, 2.0]], device=device)
    for name in names:
        assert gs.sort(x.to("meta"), algorithm=name).indices.shape == x.shape
        compiled = torch.compile(lambda t, name=name: gs.sort(t, algorithm=name), backend="eager", fullgraph=True)
        assert compiled(x).indices.tolist() == [[1, 2, 0]]


# ---- the radix sort, step by step

DIGITS = {"auto": [1, 2, 4, 8], "onesweep": [8], "scan_scatter": [1], "block": [1, 2, 4, 8]}


def test_kernels_have_one_list_on_every_device(device):
    for where in (device, "meta"):
        x = torch.zeros(3, dtype=torch.int32, device=where)
        assert allowed_options(lambda: gs.radix_sort(x, kernel="no such"), "kernel") == list(DIGITS)
        for kernel, digits in DIGITS.items():
            for wrong in (0, 3, 16, -1, *({1, 2, 4, 8} - set(digits))):
                assert allowed_options(lambda: gs.radix_sort(x, kernel=kernel, digit_bits=wrong), "digit_bits") == digits


@pytest.mark.parametrize("kernel", DIGITS)
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in COMPLEX], ids=name_of)
def test_every_kernel_and_digit(device, kernel, dtype):
    width = dtype.itemsize * 8
    for digit_bits in (None, *DIGITS[kernel]):
        options = {"kernel": kernel, "digit_bits": digit_bits}
        for n in (0, 1, 255, 4096, 4097, 20_001):
            x = make("random_bits", n, dtype, device)
            for descending in BOTH:
                assert_stable_sort(x, gs.radix_sort(x, descending=descending, **options), descending=descending)
        x = make_rows(5001, dtype, device)
        for begin, end in ((0, width), (3, 3), (1, 7), (width - 5, width)):
            result = gs.radix_sort(x, -1, True, begin_bit=begin, end_bit=end, **options)
            assert_stable_sort(x, result, -1, True, order=window_order(x, begin, end, -1, True))
    check_columns = make("zipf", (300, 17), dtype, device)
    assert_stable_sort(check_columns, gs.radix_sort(check_columns, 0, kernel=kernel), 0)


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", ["scan_scatter", "block"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.int32, torch.float64], ids=name_of)
def test_radix_steps_of_millions(kernel, dtype):
    for shape in ((1_500_001,), (5, 300_007)):
        x = make("random_bits", shape, dtype, "cuda")
        for digit_bits in DIGITS[kernel]:
            assert_is_stable_sort(x, *gs.radix_sort(x, kernel=kernel, digit_bits=digit_bits))
