"""What an eager call of a small sort costs the host: microseconds per call, ours and torch's, written to results/<gpu>/host_overhead.json.

The host's clock around a batch of calls without synchronisation; the device is idle before each batch, and batches are short enough that
its queue never fills, so that the host never waits for it. Median and least over batches, which all calls take by turns: what else the
host does for a while then slows them all, and not the first ones alone.

    python -m benchmarks.host_overhead [--length 1024]
"""

import argparse
import gc
import importlib
import pathlib
import sys
import time

import torch

from benchmarks import harness, result_file

CALLS_PER_BATCH = 100
BATCHES = 51


def host_us(functions, synchronize, batches=BATCHES, calls=CALLS_PER_BATCH, clock=time.perf_counter):
    """For each function the microseconds of the host per call, one number for each batch, after one batch of warm-up."""
    samples = [[] for _ in functions]
    gc_was_on = gc.isenabled()
    gc.disable()
    try:
        for _ in range(batches + 1):
            for function, times in zip(functions, samples):
                synchronize()
                start = clock()
                for _ in range(calls):
                    function()
                times.append((clock() - start) * 1e6 / calls)
    finally:
        if gc_was_on:
            gc.enable()
    synchronize()
    return [times[1:] for times in samples]


def calls_on(library, keys):
    """(call, implementation, function): what is measured, each with the name it has in the file."""
    found = []
    if hasattr(library, "sort"):
        found.append(("sort", "gpusort", lambda: library.sort(keys)))
        found.append(("sort, raw op", "gpusort", lambda: torch.ops.gpusort.sort(keys)))
    if hasattr(library, "sort_keys"):
        found.append(("sort_keys", "gpusort", lambda: library.sort_keys(keys)))
    if hasattr(library, "merge"):
        found.append(("merge", "gpusort", lambda: library.merge(keys, keys)))
    found.append(("sort", "torch", lambda: torch.sort(keys, stable=True)))
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.host_overhead", description="Host microseconds of an eager call.")
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--output", type=pathlib.Path, help="result file (default benchmarks/results/<gpu>/host_overhead.json)")
    options = parser.parse_args(arguments)
    on_gpu = torch.device(options.device).type == "cuda"
    if on_gpu and not torch.cuda.is_available():
        print("no CUDA device", file=sys.stderr)
        return 2
    library = importlib.import_module("torch_gpusort")
    environment = result_file.environment(options.device)
    keys = torch.randn(options.length, device=options.device).sort().values
    rows = []
    calls = calls_on(library, keys)
    samples = host_us([function for _, _, function in calls], torch.cuda.synchronize if on_gpu else lambda: None)
    for (call, implementation, _), times in zip(calls, samples):
        (us, spread), least = harness.summarise(times), min(times)
        row = {"call": call, "impl": implementation, "dtype": "float32", "length": options.length}
        rows.append(row | {"host_us": round(us, 2), "least_us": round(least, 2), "spread": round(spread, 4)})
        print(f"{implementation:8} {call:14} float32 {options.length}: {us:7.2f} us on the host, least {least:.2f}, spread {spread:.1%}")
    path = options.output or (result_file.default_path(environment["gpu"], "host_overhead.json") if on_gpu else None)
    if path:
        result_file.write(path, {"environment": environment, "rows": rows})
        print(f"written to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
