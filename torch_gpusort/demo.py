"""What a training pipeline sorts before it trains, on text that every machine has: the source files of Python's standard library.

    inverted index      the word ids of the whole corpus, int64 with Zipf's distribution, sorted stably: for each word, where it stands
    length buckets      the lines, grouped by their number of words, so that a batch needs little padding
    ranking             the lines by a float32 score, the best first
    merged lists        the sorted ids of each file, merged into one list; once alone, once with the places they stand at

Every result is compared element by element with torch.sort's, and both are timed on the same device.
"""

from __future__ import annotations

import math
import re
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import torch_gpusort

from . import _library

WORD_OR_LINE_END = re.compile(r"[A-Za-z_]+|\n")
REPEATS = 3


class Corpus(NamedTuple):
    word_ids: Tensor  # int64, in reading order
    line_lengths: Tensor  # int64, words of each line that has any
    line_scores: Tensor  # float32, how rare the words of the line are, on average
    file_lengths: list[int]  # words of each file
    vocabulary: int


class Job(NamedTuple):
    name: str
    elements: int
    ours: Callable[[], tuple[Tensor, ...]]
    torchs: Callable[[], tuple[Tensor, ...]]


def read_corpus() -> Corpus:
    """Splits the files into words and numbers the words in the order in which they first occur; number 0 is the end of a line."""
    root = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(path for path in root.rglob("*.py") if not {"site-packages", "dist-packages"} & set(path.parts))
    numbers = {"\n": 0}
    tokens: list[Tensor] = []
    for path in files:
        words = WORD_OR_LINE_END.findall(path.read_text(encoding="utf-8", errors="replace") + "\n")
        tokens.append(torch.tensor([numbers.setdefault(word, len(numbers)) for word in words]))
    every = torch.cat(tokens)
    line_ends = (every == 0).nonzero().squeeze(1)
    words_before = (every != 0).cumsum(0)
    counts = torch.bincount(every[every != 0], minlength=len(numbers))
    rarity = -(counts.clamp(min=1) / counts.sum()).double().log()
    rarity[0] = 0.0
    line_lengths = words_before[line_ends].diff(prepend=torch.zeros(1, dtype=torch.int64))
    line_sums = rarity[every].cumsum(0)[line_ends].diff(prepend=torch.zeros(1, dtype=torch.float64))
    has_words = line_lengths > 0
    line_lengths = line_lengths[has_words]
    line_scores = (line_sums[has_words] / line_lengths).float()
    file_lengths = [length for length in (int((part != 0).sum()) for part in tokens) if length > 0]
    return Corpus(every[every != 0], line_lengths, line_scores, file_lengths, len(numbers) - 1)


def jobs_of(corpus: Corpus, device: torch.device) -> list[Job]:
    ids, lengths, scores = (tensor.to(device) for tensor in corpus[:3])
    starts = torch.tensor([0, *corpus.file_lengths]).cumsum(0).tolist()
    files = [torch_gpusort.sort(part) for part in ids.split(corpus.file_lengths)]
    lists = [values for values, _ in files]
    places = torch.cat([indices + start for (_, indices), start in zip(files, starts)])

    def merge_postings() -> tuple[Tensor, Tensor]:
        merged, order = torch_gpusort.merge_many(lists, return_indices=True)
        return merged, places[order]

    def stable_sort(keys: Tensor, descending: bool = False) -> tuple[Tensor, ...]:
        return torch.sort(keys, stable=True, descending=descending)

    return [
        Job("inverted index (int64 word ids)", ids.numel(), lambda: torch_gpusort.sort(ids), lambda: stable_sort(ids)),
        Job("length buckets (int64)", lengths.numel(), lambda: (torch_gpusort.argsort(lengths),), lambda: stable_sort(lengths)[1:]),
        Job(
            "ranking (float32 scores, best first)",
            scores.numel(),
            lambda: torch_gpusort.sort(scores, descending=True),
            lambda: stable_sort(scores, descending=True),
        ),
        Job(f"merge of {len(files)} id lists", ids.numel(), lambda: (torch_gpusort.merge_many(lists),), lambda: stable_sort(ids)[:1]),
        Job(f"merge of {len(files)} posting lists", ids.numel(), merge_postings, lambda: stable_sort(ids)),
    ]


def timed(call: Callable[[], tuple[Tensor, ...]], device: torch.device) -> tuple[tuple[Tensor, ...], float]:
    """The result and the shortest of a few times, in milliseconds."""
    best = math.inf
    for _ in range(REPEATS):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        start = time.perf_counter()
        result = call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, (time.perf_counter() - start) * 1e3)
    return result, best


def demo(device: torch.device | None, console: Console) -> int:
    if device is None:
        device = torch.device("cuda" if torch.cuda.is_available() and not _library.without_cuda else "cpu")
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else f"cpu, {torch.get_num_threads()} threads"
    started = time.perf_counter()
    corpus = read_corpus()
    console.print(
        f"read {len(corpus.file_lengths)} source files of Python's standard library in {time.perf_counter() - started:.1f} s: "
        f"{corpus.word_ids.numel():,} words, {corpus.vocabulary:,} different, {corpus.line_lengths.numel():,} lines"
    )
    table = Table(title=f"torch_gpusort {torch_gpusort.__version__} and torch {torch.__version__} on {where}")
    for heading in ("job", "elements", "ms ours", "ms torch", "equal"):
        table.add_column(heading, justify="left" if heading == "job" else "right")
    all_equal = True
    for job in jobs_of(corpus, device):
        ours, our_ms = timed(job.ours, device)
        expected, torch_ms = timed(job.torchs, device)
        equal = len(ours) == len(expected) and all(torch.equal(got, want) for got, want in zip(ours, expected))
        all_equal &= equal
        table.add_row(job.name, f"{job.elements:,}", f"{our_ms:.2f}", f"{torch_ms:.2f}", "yes" if equal else "NO")
    console.print(table)
    console.print("Every result is equal to torch's, element by element." if all_equal else "A result differs from torch's.")
    return 0 if all_equal else 1
