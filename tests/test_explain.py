"""explain and its command: the planner's answer, for shapes without data, in numbers that can be checked by hand."""

import os
import subprocess
import sys

import pytest
import torch
from cases import DTYPES, name_of

import torch_gpusort as gs
from torch_gpusort import DeviceTraits

try:
    from torch_gpusort.cli import main
except SystemExit:  # no rich
    main = None


def on_meta(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="meta")


def test_bytes_and_floor_of_the_radix_sort():
    n = 1 << 26
    plan = gs.explain(on_meta(n), algorithm="radix")
    assert plan.algorithm == "radix" and len(plan.steps) == 5
    assert plan.bytes_moved == 68 * n == sum(step.bytes_read + step.bytes_written for step in plan.steps)
    assert plan.floor_us == pytest.approx(68 * n / 4.3e6) and plan.least_us == pytest.approx(16 * n / 4.3e6)
    assert 8 * n <= plan.workspace_bytes < 8.2 * n
    assert gs.explain(on_meta(n), algorithm="radix", indices=False).bytes_moved == 36 * n
    assert gs.explain(on_meta(n), algorithm="radix", values=False, index_dtype=torch.int32).bytes_moved == 60 * n
    assert len(gs.explain(on_meta(n, dtype=torch.int64), algorithm="radix", begin_bit=3, end_bit=20).steps) == 4
    assert len(gs.explain(on_meta(n), algorithm="radix", kernel="block", digit_bits=4).steps) == 16


def test_the_note_says_what_is_decided_on_the_device():
    def note(n, dtype, **options):
        return gs.explain(on_meta(n, dtype=dtype), **options).note

    for dtype in (torch.int32, torch.uint64):
        assert "sorted as bytes" in note(1 << 28, dtype) and "sorted as bytes" not in note(1 << 20, dtype)
    assert "sorted as bytes" not in note(1 << 28, torch.float32) + note(1 << 26, torch.int64, indices=False)
    assert "leading digits" in note(1 << 26, torch.float64) and "leading digits" not in note(1 << 26, torch.float32)
    assert "samples" in note(1 << 24, torch.float32) and "left to the radix sort" in note(1 << 24, torch.float32)


def test_rows_are_read_once_and_columns_are_moved():
    rows = gs.explain(on_meta(4096, 1000))
    assert rows.algorithm == "rows" and len(rows.steps) == 1 and rows.bytes_moved == 16 * 4096 * 1000 and rows.workspace_bytes == 0
    assert rows.floor_us == rows.least_us
    columns = gs.explain(on_meta(1000, 4096), 0)
    assert columns.algorithm == "rows" and columns.bytes_moved > rows.bytes_moved and columns.workspace_bytes > 0
    assert gs.explain(on_meta(1000, 4096).t()).bytes_moved == columns.bytes_moved
    assert gs.explain(on_meta(1000, 4096).t(), 0).bytes_moved == rows.bytes_moved


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_every_dtype_and_shape(dtype):
    for shape in ((), (0,), (1,), (7,), (3, 0), (5, 3000), (3, 1 << 20), (1 << 33,)):
        for dim in (0, -1):
            for values, indices in ((True, True), (True, False), (False, True)):
                x = on_meta(*shape, dtype=dtype)
                plan = gs.explain(x, dim, True, values=values, indices=indices)
                assert plan.algorithm and (x.numel() == 0) == (plan.bytes_moved == 0)
                assert plan.floor_us >= plan.least_us * 0.999 or x.numel() == 0
                assert plan.algorithm in str(plan) and all(step.name in str(plan) for step in plan.steps)
    named = on_meta(5000, dtype=dtype)
    for algorithm in ("radix", "merge", "bitonic", "sample"):
        assert gs.explain(named, algorithm=algorithm).algorithm == algorithm


def test_the_device_decides(device):
    x = torch.zeros(3, 12000, device=device)
    here = gs.explain(x)
    if device.type == "cuda":
        assert here.device == DeviceTraits.of(device) and here.device.sm_count > 0 and here.device.copy_bytes_per_second > 1e11
    else:
        assert here == gs.explain(x, device_traits="h200")
    tiny = DeviceTraits(8, 99 << 10, 100 << 10, 4 << 20, 8, 6, 1e12)
    plan = gs.explain(x, device_traits=tiny)
    assert plan.device is tiny and all(step.shared_bytes <= 99 << 10 for step in plan.steps)
    assert gs.explain(x, device_traits="a100").floor_us > gs.explain(x, device_traits="h200").floor_us


@pytest.mark.parametrize("algorithm", ["radix", "merge", "bitonic", "sample"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.int64, torch.complex128], ids=name_of)
def test_numbers_of_huge_inputs_are_right_or_refused(algorithm, dtype):
    least = 2 * dtype.itemsize + 8
    for options in ({}, {"kernel": "scan_scatter"}, {"kernel": "block", "digit_bits": 1}) if algorithm == "radix" else ({},):
        if options and dtype.is_complex:
            continue
        for n in (1 << 33, 1 << 41, 1 << 48):
            plan = gs.explain(on_meta(n, dtype=dtype), algorithm=algorithm, **options)
            assert plan.bytes_moved == sum(step.bytes_read + step.bytes_written for step in plan.steps) <= 18_000 * n
            assert all(min(step) >= 0 for step in (step[1:] for step in plan.steps))
            assert least * n <= plan.bytes_moved and 0 < plan.workspace_bytes <= 128 * n
            assert plan.floor_us >= plan.least_us == pytest.approx(least * n / 4.3e6)
    for shape in ((1 << 57,), (3, 1 << 57), ((1 << 48) + 1,), (1 << 24, 1 << 25)):
        with pytest.raises(ValueError, match=rf"input has shape \[{shape[0]}.*2\^48 elements at most"):
            gs.explain(on_meta(*shape, dtype=dtype), algorithm=algorithm)
    assert gs.explain(on_meta(0, 1 << 57, dtype=dtype), algorithm=algorithm).bytes_moved == 0


def test_explaining_again_and_again_takes_no_memory():
    """A string that an op returns would be left behind by torch: 400 bytes a call."""

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    if not os.path.exists("/proc/self/statm"):
        pytest.skip("reads /proc/self/statm")
    x = on_meta(1 << 26)
    for _ in range(1000):
        gs.explain(x)
    before = resident()
    for _ in range(20_000):
        gs.explain(x)
    assert resident() - before < 3 << 20


def with_traits(**changed):
    return gs.explain(on_meta(1 << 20), device_traits=gs._explain.DEVICES["h200"]._replace(**changed))


@pytest.mark.filterwarnings("ignore:Named tensors")
def test_a_dim_by_name():
    named = torch.zeros(100, 4096).rename("row", "column")
    for dim, name in enumerate(named.names):
        assert gs.explain(named, name) == gs.explain(named, dim) == gs.explain(on_meta(100, 4096), dim)


@pytest.mark.filterwarnings("ignore:Named tensors")
def test_wrong_arguments():
    x = on_meta(10)
    for error, words, call in (
        (TypeError, "input must be a Tensor", lambda: gs.explain([1, 2])),
        (NotImplementedError, "layout torch.sparse_coo", lambda: gs.explain(torch.eye(3).to_sparse())),
        (TypeError, "complex32", lambda: gs.explain(on_meta(3, dtype=torch.complex32))),
        (IndexError, "dim=3", lambda: gs.explain(x, 3)),
        (ValueError, "algorithm is 'quick'", lambda: gs.explain(x, algorithm="quick")),
        (ValueError, "kernel is 'magic'", lambda: gs.explain(x, algorithm="radix", kernel="magic")),
        *(
            (TypeError, "input has dtype torch.complex32, which has no order here; allowed are bool", lambda d=d: gs.explain(d))
            for d in (on_meta(3, dtype=torch.complex32), torch.zeros(3, dtype=torch.complex32))
        ),
        (
            NotImplementedError,
            r"input is quantized \(torch.qint8\)",
            lambda: gs.explain(torch.quantize_per_tensor(torch.zeros(3), 1.0, 0, torch.qint8)),
        ),
        (
            TypeError,
            "input has dtype torch.complex64, which has no radix key.*allowed are bool.*float8_e5m2$",
            lambda: gs.explain(on_meta(3, dtype=torch.complex64), algorithm="radix", begin_bit=1),
        ),
        (
            ValueError,
            "begin_bit is 3 and algorithm is 'auto'; .*are allowed with algorithm 'radix' alone",
            lambda: gs.explain(x, begin_bit=3),
        ),
        (ValueError, "end_bit is 8 and algorithm is 'auto'", lambda: gs.explain(x, end_bit=8)),
        (ValueError, "digit_bits is 4 and algorithm is 'merge'", lambda: gs.explain(x, algorithm="merge", digit_bits=4)),
        (ValueError, "kernel is 'block' and algorithm is 'rows'", lambda: gs.explain(x, algorithm="rows", kernel="block")),
        (
            ValueError,
            "kernel is 'magic'; allowed are 'auto', 'onesweep', 'scan_scatter' and 'block'",
            lambda: gs.explain(x, kernel="magic"),
        ),
        (ValueError, "end_bit is 33", lambda: gs.explain(x, algorithm="radix", end_bit=33)),
        (ValueError, "index_dtype is torch.int16", lambda: gs.explain(x, index_dtype=torch.int16)),
        (ValueError, "values and indices are both False", lambda: gs.explain(x, values=False, indices=False)),
        (ValueError, "device_traits is 'z80'; allowed are 'h200'", lambda: gs.explain(x, device_traits="z80")),
        (TypeError, "device_traits must be", lambda: gs.explain(x, device_traits=3)),
        (TypeError, "algorithm must be one of 'auto', 'radix'", lambda: gs.explain(x, algorithm=3)),
        (TypeError, "kernel must be one of 'auto', 'onesweep'", lambda: gs.explain(x, algorithm="radix", kernel=3)),
        (TypeError, "values must be a bool, not NoneType None", lambda: gs.explain(x, values=None)),
        (RuntimeError, "dim is 'q'.*'row'", lambda: gs.explain(torch.zeros(3).rename("row"), "q")),
        *((ValueError, "multiprocessors must be 1 to 65535", lambda n=n: with_traits(sm_count=n)) for n in (0, -1, 2**16, 2**40)),
        *((ValueError, "traits are .*shared memory", lambda n=n: with_traits(shared_bytes_per_sm=n)) for n in (0, 2**25, 2**60)),
        (ValueError, "device_traits.copy_bytes_per_second is 0", lambda: with_traits(copy_bytes_per_second=0)),
        (TypeError, "device_traits.sm_count must be an int, not NoneType None", lambda: with_traits(sm_count=None)),
    ):
        with pytest.raises(error, match=words):
            call()


def test_the_command():
    pytest.importorskip("rich")
    arguments = ["explain", "--shape", "4096,1000", "--dtype", "float16", "--descending", "--device-traits", "h200"]
    result = subprocess.run([sys.executable, "-m", "torch_gpusort", *arguments], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == str(gs.explain(on_meta(4096, 1000, dtype=torch.float16), -1, True, device_traits="h200"))
    assert "us at the copy rate of 4.30 TB/s" in result.stdout


@pytest.mark.skipif(main is None, reason="the commands need rich")
def test_what_the_command_says(capsys):
    assert main(["explain", "--shape", "67108864", "--algorithm", "radix", "--keys-only", "--device-traits", "h200"]) == 0
    assert capsys.readouterr().out.strip() == str(gs.explain(on_meta(1 << 26), algorithm="radix", indices=False, device_traits="h200"))
    assert main(["explain", "--shape", "", "--device-traits", "h200"]) == 0
    capsys.readouterr()
    no_gpu = [("demo --device cuda:99", "'cuda:99' is not there: torch sees")]
    if not torch.cuda.is_available():
        no_gpu.append(("demo --device cuda", "'cuda' is not there: torch sees 0 GPUs"))
    for line, words in (
        ("explain --shape 5 --dim 3", "dim=3"),
        ("explain --shape 5 --dtype foo", "'foo' is no dtype"),
        ("explain --shape 5 --dtype qint8", "qint8"),
        ("explain --shape 5 --dtype uint4", "input has dtype torch.uint4"),
        ("explain --shape 4,x", "'4,x' is no shape"),
        ("explain --shape 3,,4", "'3,,4' is no shape"),
        ("explain --shape 3,", "'3,' is no shape"),
        ("explain --shape ,", "',' is no shape"),
        ("explain --shape=-3", "'-3' is no shape; sizes must be 0 or more"),
        ("explain --shape 16777216,16777217", "no more than 2**48 elements"),
        ("explain --shape 99999999999,99999999999", "no more than 2**48 elements"),
        ("explain", "--shape"),
        ("demo --device foo", "'foo' is no device for this; allowed are cpu, cuda and cuda:0"),
        ("demo --device meta", "'meta' is no device for this"),
        *(no_gpu if not gs._library.without_cuda else [("demo --device cuda", "'cuda' needs CUDA kernels, and there are none: ")]),
    ):
        try:
            status = main(line.split())
        except SystemExit as left:  # argparse's way
            status = left.code
        said = capsys.readouterr()
        assert status == 2 and words in said.err.splitlines()[-1] and not said.out, (line, said)
