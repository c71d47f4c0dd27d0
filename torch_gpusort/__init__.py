"""Sort and merge for PyTorch, on GPU and CPU: stable, exact in every corner, and a drop-in for torch.sort.

Importing this registers the operators torch.ops.gpusort.*; the functions here are a thin layer over them.
"""

from . import _autograd, _fake, _lexsort, _library, _vmap

_library.load_libraries()
_fake.register()
_autograd.register()
_vmap.register()
_lexsort.register()

from ._explain import DeviceTraits, Explanation, explain  # noqa: E402
from ._lexsort import SortRowsResult, lexsort, sort_rows  # noqa: E402
from .functional import (  # noqa: E402
    MergeResult,
    argsort,
    bitonic_sort,
    co_rank,
    merge,
    merge_by_key,
    merge_many,
    merge_sort,
    msort,
    radix_sort,
    sample_sort,
    sort,
    sort_by_key,
    sort_keys,
)

__version__ = "0.1.0"
__all__ = [
    "DeviceTraits",
    "Explanation",
    "MergeResult",
    "SortRowsResult",
    "argsort",
    "bitonic_sort",
    "co_rank",
    "explain",
    "lexsort",
    "merge",
    "merge_by_key",
    "merge_many",
    "merge_sort",
    "msort",
    "radix_sort",
    "sample_sort",
    "sort",
    "sort_by_key",
    "sort_keys",
    "sort_rows",
]
