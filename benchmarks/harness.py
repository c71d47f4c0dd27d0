"""Times a call on the device and proves its result in the same run.

What is measured, the same for this project, torch and every peer:

- `events`: a CUDA event before and after each eager call. All calls of a batch are queued behind a short spin of the device, so that the
  host is ahead and its launch cost does not show where the device has more to do than the host. Microseconds = the distance of the two
  events.
- `graph`: a CUDA graph that holds 20 calls, one after the other on one stream, replayed whole. Microseconds = one replay / 20: the
  device's time with the launch of the graph spread over its calls. (Replaying a graph of one call adds about 0.9 us to each on an H200.)
- `wall`: the host's clock around a call, on a device without events (CPU): for smoke runs.

Calls rotate over several input sets that together exceed twice the L2 cache, where memory allows, so that no input is found in the cache
because the call before left it there. Each contender gets at least two warm-up calls, then as many timed ones as fit a budget, at least
five. The result is the median; spread is the interquartile range over the median. Outputs are allocated inside the call by all
contenders, from torch's caching allocator.
"""

import dataclasses
import gc
import statistics
import time

import torch

GRAPH_CALLS = 20
BUDGET_SECONDS = 0.15
LEAST_REPEATS, MOST_REPEATS = 5, 200
COMPARE_CHUNK = 1 << 26
SPIN_CYCLES = 2_000_000  # about 1 ms: long enough for the host to queue a batch of short calls
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclasses.dataclass
class Result:
    """Median microseconds of one call, their interquartile range over the median, how many samples of which kind, and what the last timed
    call returned for which input set."""

    us: float
    spread: float
    repeats: int
    timing: str
    last_set: int
    outputs: tuple


# ---- statistics


def summarise(samples):
    """(median, interquartile range / median) of a list of times; one sample has spread 0."""
    middle = statistics.median(samples)
    if len(samples) < 2 or middle == 0:
        return middle, 0.0
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return middle, (high - low) / middle


def repeats_for(sample_seconds, budget_s=BUDGET_SECONDS, least=LEAST_REPEATS, most=MOST_REPEATS):
    """How many samples of this length fit the budget, within bounds."""
    return least if sample_seconds <= 0 else max(least, min(most, int(budget_s / sample_seconds)))


def input_set_count(bytes_per_set, cache_bytes, least=2, most=10, large=1 << 30):
    """How many input sets to rotate over: together at least twice the cache; one where a single set is a gibibyte and outlasts any cache
    by itself."""
    if bytes_per_set >= large:
        return 1
    return max(least, min(most, -(-2 * cache_bytes // max(bytes_per_set, 1))))


# ---- timers


class WallTimer:
    """The host's clock around each call; for devices whose calls have ended when they return."""

    kind = "wall"
    calls_per_sample = 1

    def __init__(self, call, input_sets):
        self.call, self.input_sets, self.outputs = call, input_sets, None

    def sample(self, repeats):
        """Microseconds of each of `repeats` calls."""
        times = []
        for repeat in range(repeats):
            self.outputs = None
            start = time.perf_counter()
            self.outputs = self.call(*self.input_sets[repeat % len(self.input_sets)])
            times.append((time.perf_counter() - start) * 1e6)
        self.last_set = (repeats - 1) % len(self.input_sets)
        return times


class EventTimer:
    """CUDA events around each eager call."""

    kind = "events"
    calls_per_sample = 1

    def __init__(self, call, input_sets):
        self.call, self.input_sets, self.outputs = call, input_sets, None
        for inputs in input_sets[:2] * (2 if len(input_sets) == 1 else 1):
            call(*inputs)

    def sample(self, repeats):
        marks = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeats)]
        torch.cuda.synchronize()
        torch.cuda._sleep(SPIN_CYCLES)
        for repeat, (start, end) in enumerate(marks):
            self.outputs = None  # freed first, so that two results never live at once
            start.record()
            self.outputs = self.call(*self.input_sets[repeat % len(self.input_sets)])
            end.record()
        torch.cuda.synchronize()
        self.last_set = (repeats - 1) % len(self.input_sets)
        return [start.elapsed_time(end) * 1e3 for start, end in marks]


class GraphTimer:
    """CUDA events around replays of a graph of `calls_per_sample` calls."""

    kind = "graph"

    def __init__(self, call, input_sets, calls=GRAPH_CALLS):
        self.calls_per_sample = -(-calls // len(input_sets)) * len(input_sets)
        self.last_set = len(input_sets) - 1
        self.outputs = None
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # warm-up off the capture: modules load, handles and temporaries are made
            for inputs in input_sets[:2] * 2:
                call(*inputs)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for index in range(self.calls_per_sample):
                self.outputs = None
                self.outputs = call(*input_sets[index % len(input_sets)])
        self.graph.replay()

    def sample(self, repeats):
        marks = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeats)]
        torch.cuda.synchronize()
        torch.cuda._sleep(SPIN_CYCLES)
        for start, end in marks:
            start.record()
            self.graph.replay()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1e3 / self.calls_per_sample for start, end in marks]


def timer_for(device, timing):
    """The timer class for `events` or `graph` on this device; a CPU has the wall clock only."""
    if torch.device(device).type == "cpu":
        return WallTimer
    return {"events": EventTimer, "graph": GraphTimer}[timing]


def measure(
    call, input_sets, *, timing="events", device="cuda", budget_s=BUDGET_SECONDS, least=LEAST_REPEATS, most=MOST_REPEATS, timer=None
):
    """Time `call(*inputs)` over rotating `input_sets` (a list of tuples of tensors) and keep what the last timed call returned, so that
    the very call that was timed can be compared with a reference. `timer` replaces the timer class (tests)."""
    timer = (timer or timer_for(device, timing))(call, input_sets)
    gc_was_on = gc.isenabled()
    gc.disable()
    try:
        pilot = timer.sample(1)[0] * timer.calls_per_sample / 1e6
        repeats = repeats_for(pilot, budget_s, least, most)
        us, spread = summarise(timer.sample(repeats))
    finally:
        if gc_was_on:
            gc.enable()
    return Result(us, spread, repeats, timer.kind, timer.last_set, keep(timer.outputs))


# ---- correct results


def as_tensors(outputs):
    """A call's result as a tuple of tensors: a tensor, a tuple or a named tuple."""
    return (outputs,) if isinstance(outputs, torch.Tensor) else tuple(outputs)


def keep(outputs):
    """Copies of the outputs, bit for bit (torch makes 0 or 1 of the bytes of bools that it copies): what a graph wrote lives in the graph's
    own memory, which the next graph may take over."""
    return tuple(tensor.view(BITS[tensor.element_size()]).clone().view(tensor.dtype) for tensor in as_tensors(outputs))


def same_bits(got, expected, chunk=COMPARE_CHUNK):
    """Whether two tensors hold the same bits; index tensors of different integer widths are compared by value. Chunked, so that it needs
    little memory."""
    if got.shape != expected.shape or got.is_floating_point() != expected.is_floating_point():
        return False
    indices = not got.is_floating_point() and got.dtype != expected.dtype
    if not indices and got.dtype != expected.dtype:
        return False
    if not indices:
        bits = BITS[got.element_size()]
        got, expected = got.contiguous().view(bits), expected.contiguous().view(bits)
    got, expected = got.reshape(-1), expected.reshape(-1)
    pieces = [(got[i : i + chunk], expected[i : i + chunk]) for i in range(0, got.numel(), chunk)]
    return all(torch.equal(left.to(right.dtype), right) for left, right in pieces)


def same_result(outputs, reference):
    """Whether values (same dtype, same bits) and indices equal the reference. What the call does not return (keys only) is not asked of
    it."""
    outputs, reference = as_tensors(outputs), as_tensors(reference)
    if not outputs or len(outputs) > len(reference) or outputs[0].dtype != reference[0].dtype:
        return False
    return all(same_bits(got, expected) for got, expected in zip(outputs, reference))


def verify(call, input_sets, references):
    """Whether the call gives the reference on every input set. Its outputs are overwritten and freed, and it is called again: the
    allocator hands out the same blocks, so an element left unwritten holds the pattern and can not look right."""
    for inputs, reference in zip(input_sets, references):
        for tensor in as_tensors(call(*inputs)):
            tensor.view(BITS[tensor.element_size()]).fill_(0x5A)
        if not same_result(call(*inputs), reference):
            return False
    return True


# ---- memory and bandwidth


def extra_bytes_per_element(call, inputs):
    """Peak bytes that a call takes beyond its inputs and outputs, per element of its first output. None where the device keeps no such
    count. Counts what was asked of torch's allocator, not the rounding of its blocks."""
    if inputs[0].device.type != "cuda":
        return None
    call(*inputs)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_stats()["requested_bytes.all.current"]
    outputs = as_tensors(call(*inputs))
    torch.cuda.synchronize()
    peak = torch.cuda.memory_stats()["requested_bytes.all.peak"]
    stores = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in outputs}
    return max(0, peak - before - sum(stores.values())) / max(1, outputs[0].numel())


def copy_gb_per_second(device="cuda", count=1 << 30):
    """The device's copy rate: bytes read plus bytes written per second of a copy of one gibibyte, in GB/s. None on a CPU."""
    if torch.device(device).type != "cuda":
        return None
    source = torch.randint(0, 256, (count,), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    us = measure(lambda tensor: target.copy_(tensor), [(source,)], most=30).us
    return 2 * count / us / 1e3
