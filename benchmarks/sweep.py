"""A random sweep of shapes beside torch.sort: rows x length x dtype x dim x distribution x direction, every result compared bit by bit.

    python -m benchmarks.sweep [--count 2000] [--seed 0]   # to results/<gpu>/sweep.json
    python -m benchmarks.sweep --device cpu --count 20 --largest 4096

A shape counts as slower when it takes more than 5 % beyond noise longer than torch.sort(stable=True): a first look of a few calls picks
the suspects, which are then timed again, in turns with torch, over at least 40 calls; noise is the sum of both interquartile ranges.
"""

import argparse
import collections
import json
import math
import random
import sys

import torch

from benchmarks import contract, data, harness, result_file

DTYPES = ("float32",) * 4 + ("int64", "int32", "float16", "bfloat16", "float64", "uint8", "int16", "int8", "bool")
DISTRIBUTIONS = ("uniform", "few_bits", "two_values", "all_equal", "random_bits", "zipf", "half_zeros", "low_bits", "sorted", "runs")
TOLERANCE = 1.05


def make_keys(distribution, shape, dtype, device, seed):
    """`low_bits`: keys that differ in their low bits alone, which leading bits do not tell apart."""
    generator = data.generator()
    if distribution == "half_zeros":
        keys = generator.make("uniform", shape, dtype, device, seed)
        bits = keys.view(harness.BITS[keys.element_size()])
        return bits.masked_fill_(generator.make("uniform", shape, torch.bool, device, seed), 0).view(dtype)
    if distribution == "low_bits":
        keys = generator.make("random_bits", shape, dtype, device, seed)
        bits = keys.view(harness.BITS[keys.element_size()])
        low = (1 << (4 * keys.element_size() - 2)) - 1
        return (bits & low).add_(0 if keys.element_size() == 1 else 1 << (8 * keys.element_size() - 4)).view(dtype)
    return generator.make(distribution, shape, dtype, device, seed)


def random_case(rng, largest):
    """One shape of at most `largest` elements: lengths and numbers of rows even on the scale of logarithms, one in four with dim 0."""
    total = math.exp(rng.uniform(math.log(64), math.log(largest)))
    length = max(2, round(math.exp(rng.uniform(math.log(2), math.log(total)))))
    if rng.random() < 0.3:
        length = 1 << max(1, length.bit_length() - 1)
    rows = max(1, int(total) // length)
    case = {"rows": rows, "length": length, "dim": rng.choice((-1, -1, -1, 0)), "dtype": rng.choice(DTYPES)}
    return case | {"distribution": rng.choice(DISTRIBUTIONS), "descending": rng.random() < 0.3, "seed": rng.randrange(1 << 30)}


def keys_of(case, device):
    """The keys of a case, None where the distribution is not one of the dtype."""
    dtype = getattr(torch, case["dtype"])
    if case["distribution"] not in (*data.generator().distributions_of(dtype), "half_zeros", "low_bits"):
        return None
    shape = (case["rows"], case["length"]) if case["dim"] == -1 else (case["length"], case["rows"])
    return make_keys(case["distribution"], shape, dtype, device, case["seed"])


def calls_of(case, library):
    options = {"dim": case["dim"], "descending": case["descending"]}
    return (lambda keys: library.sort(keys, **options)), (lambda keys: torch.sort(keys, stable=True, **options))


def measure_case(case, keys, library, device):
    """The row of one case: microseconds of ours and torch's, whether ours is right, and whether it is slower beyond noise."""
    ours, torchs = calls_of(case, library)
    first = [harness.measure(call, [(keys,)], device=device, budget_s=0.002, least=3) for call in (ours, torchs)]
    equal = contract.equal_to_contract(first[0].outputs, keys, case["dim"], case["descending"])
    slower = first[0].us > first[1].us
    if slower:  # again, in turns, so that a drift of the clock meets both
        turns = [[harness.measure(call, [(keys,)], device=device, budget_s=0.01, least=10) for call in (ours, torchs)] for _ in range(4)]
        first = [min((turn[side] for turn in turns), key=lambda result: result.us) for side in (0, 1)]
        noise = first[0].us * first[0].spread + first[1].us * first[1].spread
        slower = first[0].us > TOLERANCE * first[1].us + noise
    return case | {"us": round(first[0].us, 2), "torch_us": round(first[1].us, 2), "equal": equal, "slower": slower}


def summary(rows):
    """What a reader wants of the rows: counts, the geometric mean of torch / ours, its quantiles, and the slow ones."""
    ratios = sorted(row["torch_us"] / row["us"] for row in rows)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    slow = collections.Counter((row["dtype"], row["distribution"], row["dim"]) for row in rows if row["slower"])
    return {
        "cases": len(rows),
        "equal": sum(row["equal"] for row in rows),
        "slower": sum(row["slower"] for row in rows),
        "geometric_mean": round(mean, 3),
        "least": round(ratios[0], 3),
        "tenth": round(ratios[len(ratios) // 10], 3),
        "median": round(ratios[len(ratios) // 2], 3),
        "slower_kinds": [f"{kind}: {count}" for kind, count in slow.most_common(20)],
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep", description="Random shapes beside torch.sort.")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=1 << 24, help="most elements of a case (default %(default)s)")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--output", help="result file (default benchmarks/results/<gpu>/sweep.json on a GPU)")
    options = parser.parse_args(arguments)
    import torch_gpusort

    environment = result_file.environment_with_copy_rate(options.device)
    rng = random.Random(options.seed)
    rows = []
    while len(rows) < options.count:
        case = random_case(rng, options.largest)
        keys = keys_of(case, options.device)
        if keys is None:
            continue
        row = measure_case(case, keys, torch_gpusort, options.device)
        rows.append(row)
        if row["slower"] or not row["equal"]:
            print(f"{'' if row['equal'] else 'NOT EQUAL '}{json.dumps(row)}", flush=True)
    counts = summary(rows)
    print(json.dumps(counts, indent=1))
    path = result_file.path_for(options.output, options.device, "sweep.json")
    if path:
        result_file.write(path, {"environment": environment | {"seed": options.seed}, "summary": [counts], "rows": rows})
    return 0 if counts["equal"] == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
