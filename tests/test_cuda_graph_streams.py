"""Streams, CUDA graphs, threads, devices: nothing waits for the host, nothing runs on another stream than the current one, no state
is shared.
"""

import threading

import numpy as np
import pytest
import torch
from cases import generator_of, make, two_sorted
from reference import assert_is_stable_sort, assert_stable_sort, bits_of, co_ranks, signed_view, stable_order, window_order

import torch_gpusort as gs


def by_torch(x, dim=-1, descending=False):
    return torch.sort(x, dim=dim, descending=descending, stable=True)


def in_order(x, order):
    order = torch.from_numpy(order)
    return x[order], order


def merged(a, b):
    return by_torch(torch.cat([by_torch(a).values, by_torch(b).values], -1))


def merged_with_payload(x):
    keys, order = merged(x[:5000], x[5000:])
    return keys, x[order]


def runs_of(x):
    """The rows of a matrix, each sorted, one after the other."""
    return by_torch(x).values.flatten()


def merged_runs(x):
    """By offsets on the device: those on the host would be copied."""
    return gs.merge_many(runs_of(x), torch.arange(0, x.numel() + 1, x.shape[1], device=x.device), return_indices=True)


def rows_in_order(x):
    return in_order(x, np.lexsort(x.numpy().T[::-1]))


# name -> (shape, ours, the same from torch or NumPy on the CPU). One int32 input each, so that a graph's input can be refilled.
# The sizes reach every family of kernels.
CALLS = {
    "short rows": ((500, 64), lambda x: gs.sort(x), by_torch),
    "middle rows": ((40, 1000), lambda x: gs.sort(x, descending=True), lambda x: by_torch(x, descending=True)),
    "long rows": ((5, 20_000), lambda x: gs.sort(x), by_torch),
    "columns": ((3000, 17), lambda x: gs.sort(x, 0), lambda x: by_torch(x, 0)),
    "one row": ((200_000,), lambda x: gs.sort(x), by_torch),
    "a million": ((1_000_001,), lambda x: gs.sort(x), by_torch),
    "rows past one block": (
        (3, 70_000),
        lambda x: gs.sort(x, index_dtype=torch.int32),
        lambda x: (by_torch(x).values, by_torch(x).indices.int()),
    ),
    "keys": ((300_000,), lambda x: (gs.sort_keys(x),), lambda x: (by_torch(x).values,)),
    "indices": ((300_000,), lambda x: (gs.argsort(x),), lambda x: (by_torch(x).indices,)),
    "int64": ((300_000,), lambda x: gs.sort(x.to(torch.int64) << 20), lambda x: by_torch(x.to(torch.int64) << 20)),
    "uint8": ((300_000,), lambda x: gs.sort(x.to(torch.uint8)), lambda x: by_torch(x.to(torch.uint8))),
    "half": ((300_000,), lambda x: gs.sort(x.to(torch.float16)), lambda x: by_torch(x.to(torch.float16))),
    "bit window": ((100_000,), lambda x: gs.radix_sort(x, begin_bit=5, end_bit=9), lambda x: in_order(x, window_order(x, 5, 9))),
    "complex": (
        (3000,),
        lambda x: gs.sort(torch.complex(x % 7 + 0.0, x.float())),
        lambda x: in_order(torch.complex(x % 7 + 0.0, x.float()), stable_order(torch.complex(x % 7 + 0.0, x.float()))),
    ),
    "merge": ((100_000,), lambda x: (gs.merge(by_torch(x[:30_000]).values, by_torch(x[30_000:]).values),), lambda x: (by_torch(x).values,)),
    "merge with indices": (
        (4, 900),
        lambda x: gs.merge(by_torch(x[:, :99]).values, by_torch(x[:, 99:]).values, return_indices=True),
        lambda x: merged(x[:, :99], x[:, 99:]),
    ),
    "merge by key": (
        (10_000,),
        lambda x: gs.merge_by_key(by_torch(x[:5000]).values, x[:5000], by_torch(x[5000:]).values, x[5000:]),
        merged_with_payload,
    ),
    "merge of few runs": ((5, 3000), merged_runs, lambda x: by_torch(runs_of(x))),
    "merge of many runs": ((200, 500), merged_runs, lambda x: by_torch(runs_of(x))),
    "merge sort": ((200_000,), lambda x: gs.merge_sort(x), by_torch),
    "bitonic sort": ((20_000,), lambda x: gs.bitonic_sort(x), by_torch),
    "sample sort": ((100_000,), lambda x: gs.sample_sort(x), by_torch),
    "radix sort by bits": ((30_000,), lambda x: gs.radix_sort(x, kernel="scan_scatter"), by_torch),
    "radix sort by blocks": ((30_000,), lambda x: gs.radix_sort(x, kernel="block", digit_bits=4), by_torch),
    "sort by key": (
        (50_000,),
        lambda x: gs.sort_by_key(x, x.float()),
        lambda x: (by_torch(x).values, x.float()[by_torch(x).indices]),
    ),
    "lexsort": (
        (300_000,),
        lambda x: (gs.lexsort([x, (x % 64).long()]),),
        lambda x: (torch.from_numpy(np.lexsort((x.numpy(), x.numpy() % 64))),),
    ),
    "rows in order": ((3000, 5), lambda x: gs.sort_rows(x % 4), lambda x: rows_in_order(x % 4)),
    "co_rank": (
        (2000,),
        lambda x: (gs.co_rank(torch.arange(2001, device=x.device), by_torch(x[:900]).values, by_torch(x[900:]).values),),
        lambda x: (torch.from_numpy(co_ranks(by_torch(x[:900]).values, by_torch(x[900:]).values)),),
    ),
}
every_call = pytest.mark.parametrize("name", CALLS)


def fill(name, seed, device="cuda"):
    return torch.randint(0, 5000, CALLS[name][0], generator=generator_of("cpu", seed), dtype=torch.int32).to(device)


def answers(name, x):
    return CALLS[name][2](x.cpu())


def equal(got, want):
    return all(torch.equal(signed_view(g.cpu()), signed_view(w)) for g, w in zip(got, want, strict=True))


@every_call
def test_the_calls_are_right(device, name):
    x = fill(name, 0, device)
    assert equal(CALLS[name][1](x), answers(name, x))


@pytest.mark.gpu
@every_call
def test_no_host_synchronisation(name):
    x = fill(name, 1)
    CALLS[name][1](x)
    torch.cuda.set_sync_debug_mode("error")
    try:
        got = CALLS[name][1](x)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert equal(got, answers(name, x))


@pytest.mark.gpu
@every_call
def test_captured_and_replayed(name):
    call = CALLS[name][1]
    x = fill(name, 1)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        call(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = call(x)
    for seed in (2, 3, 4):
        x.copy_(fill(name, seed))
        for _ in range(2):  # the second replay finds the first one's workspace
            graph.replay()
        assert equal(got, answers(name, x))


@pytest.mark.gpu
@every_call
def test_runs_on_the_current_stream(name):
    """The stream is kept busy while the input is still empty, then the input is written: work on any other stream would sort the zeros."""
    call, source = CALLS[name][1], fill(name, 5).cpu().pin_memory()
    want = answers(name, source)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        call(torch.zeros_like(source, device="cuda"))  # loads the kernels, and leaves memory for this stream with the allocator
        side.synchronize()
        x = torch.zeros_like(source, device="cuda")
        torch.cuda._sleep(400_000_000)
        x.copy_(source, non_blocking=True)
        got = call(x)
    assert not side.query(), "the host waited for the stream"
    side.synchronize()
    assert equal(got, want)


@pytest.mark.gpu
def test_many_streams_at_once():
    streams = [torch.cuda.Stream() for _ in range(6)]
    work = []
    names = list(CALLS)
    torch.cuda.synchronize()
    for i in range(60):
        name = names[i % len(names)]
        with torch.cuda.stream(streams[i % len(streams)]):
            x = fill(name, i)
            work.append((name, x, CALLS[name][1](x)))
    torch.cuda.synchronize()
    for name, x, got in work:
        assert equal(got, answers(name, x)), name


def test_threads_share_nothing(device):
    failures = []

    def work(seed):
        try:
            stream = torch.cuda.Stream() if device.type == "cuda" else None
            with torch.cuda.stream(stream):
                for k in range(12):
                    x = make("zipf", (1 + seed % 3, 1000 + 977 * seed + k), torch.float32 if k % 2 else torch.int64, device, seed=(seed, k))
                    assert_stable_sort(x, gs.sort(x, descending=bool(k % 2)), descending=bool(k % 2))
                    a, b = two_sorted((100 * seed, 999), torch.float32, device, seed=k)
                    assert torch.equal(gs.merge(a, b), torch.sort(torch.cat([a, b])).values)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.gpu
def test_results_may_be_freed_before_the_kernels_ran():
    """Workspaces belong to the stream: what was freed may be given to the next call on it, and to no other."""
    torch.cuda.synchronize()
    x = make("uniform", 500_000, torch.float32, "cuda")
    torch.cuda._sleep(50_000_000)
    for _ in range(20):
        gs.sort(x)
    y = make("zipf", 500_000, torch.float32, "cuda")
    values, indices = gs.sort(y)
    assert_is_stable_sort(y, values, indices)


@pytest.mark.two_gpus
@every_call
def test_second_gpu_without_making_it_current(name):
    torch.cuda.set_device(0)
    x = fill(name, 7, "cuda:1")
    before = torch.cuda.memory_allocated(0)
    got = CALLS[name][1](x)
    assert all(t.device == x.device for t in got)
    assert torch.cuda.current_device() == 0 and torch.cuda.memory_allocated(0) == before
    assert equal(got, answers(name, x))


@pytest.mark.two_gpus
def test_two_gpus_at_once():
    inputs = [make("zipf", 1_000_000, torch.float32, f"cuda:{i % 2}", seed=i) for i in range(8)]
    for x, result in [(x, gs.sort(x)) for x in inputs]:
        assert_is_stable_sort(x, *result)


@pytest.mark.gpu
def test_raw_bits_survive_the_graph():
    """NaN payloads and zeros too."""
    x = make("nans", 50_000, torch.float32, "cuda")
    gs.sort(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = gs.sort(x)
    x.copy_(make("random_bits", 50_000, torch.float32, "cuda"))
    graph.replay()
    assert_stable_sort(x, got)
    assert np.array_equal(np.sort(bits_of(x)), np.sort(bits_of(got[0])))
