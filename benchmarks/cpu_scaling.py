"""How the CPU kernels scale with threads, beside torch.sort: 2^24 float32, one thread and all of them.

python -m benchmarks.cpu_scaling               # to results/cpu/scaling.json
python -m benchmarks.cpu_scaling --log2 10 --output /tmp/scaling.json
"""

import argparse
import os
import pathlib
import sys

import torch

from benchmarks import data, harness, result_file


def processor():
    """The name of the CPU, as Linux has it."""
    path = pathlib.Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def calls_of(library, keys):
    """(name, call): sorts of `keys`, merges of its sorted halves, eighths and hundredths."""
    halves, eighths, hundredths = ([part.sort().values for part in keys.chunk(parts)] for parts in (2, 8, 100))
    yield "torch.sort", lambda: torch.sort(keys, stable=True)
    yield "sort", lambda: library.sort(keys)
    yield "merge_sort", lambda: library.merge_sort(keys)
    yield "merge", lambda: library.merge(*halves)
    yield "merge with indices", lambda: library.merge(*halves, return_indices=True)
    yield "merge_many of 8", lambda: library.merge_many(eighths, return_indices=True)
    yield "merge_many of 100", lambda: library.merge_many(hundredths, return_indices=True)


def measure(library, keys, threads):
    """The rows of one number of threads: milliseconds, and whether the values are torch.sort's."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    expected = torch.sort(keys, stable=True).values
    rows = []
    try:
        for name, call in calls_of(library, keys):
            result = harness.measure(lambda _, call=call: call(), [(keys,)], device="cpu", budget_s=1.0, least=3)
            equal = harness.same_bits(result.outputs[0], expected)
            rows.append(
                {"call": name, "threads": threads, "ms": round(result.us / 1e3, 3), "spread": round(result.spread, 3), "equal": equal}
            )
    finally:
        torch.set_num_threads(before)
    return rows


def table(rows):
    """Markdown: milliseconds by number of threads, and torch.sort on all threads over it."""
    counts = sorted({row["threads"] for row in rows})
    time_of = {(row["call"], row["threads"]): row["ms"] for row in rows}
    lines = [
        f"| call | {' | '.join(f'{count} threads' for count in counts)} | scaling | torch.sort / it |",
        "|---|" + "---:|" * (len(counts) + 2),
    ]
    for name in dict.fromkeys(row["call"] for row in rows):
        times = [time_of[name, count] for count in counts]
        cells = " | ".join(f"{time:.4g}" for time in times)
        lines.append(f"| {name} | {cells} | {times[0] / times[-1]:.2f} | {time_of['torch.sort', counts[-1]] / times[-1]:.2f} |")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu_scaling", description="CPU kernels on one and on all threads.")
    parser.add_argument("--log2", type=int, default=24)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=pathlib.Path, default=result_file.ROOT / "benchmarks" / "results" / "cpu" / "scaling.json")
    options = parser.parse_args(arguments)
    import torch_gpusort

    keys = data.generator().make("uniform", 1 << options.log2, torch.float32)
    rows = [row for threads in sorted({1, options.threads}) for row in measure(torch_gpusort, keys, threads)]
    print(table(rows))
    result_file.write(options.output, {"environment": result_file.environment("cpu") | {"cpu": processor()}, "rows": rows})
    return 0 if all(row["equal"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
