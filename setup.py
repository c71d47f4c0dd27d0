"""Builds the two libraries of torch_gpusort: LibTorch's stable ABI only and no Python symbol, so one binary serves every later torch.

    torch_gpusort/_C.so       schemas and CPU kernels: always
    torch_gpusort/_C_cuda.so  CUDA kernels: when nvcc is found. No GPU has to be visible

An object is compiled again when its command, its source or a header that it read has changed.

Environment: GPUSORT_CUDA=0|1 (leave out or insist on CUDA), TORCH_CUDA_ARCH_LIST (as torch's: "8.0;9.0+PTX"), CUDA_HOME, CXX, MAX_JOBS,
DEBUG=1 (no optimisation, debug symbols), GPUSORT_PTXAS=1 (registers and spills of each kernel).
"""

import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
TORCH_TARGET = (2, 11)  # the oldest torch that the binaries load in
LEAST_CAPABILITY = (8, 0)  # of instructions that the kernels use
DEFAULT_CUDA_ARCHITECTURES = "9.0+PTX"  # when no GPU is visible: Hopper, and newer ones by the driver's compiler
DEBUG = os.environ.get("DEBUG") == "1"


def sources(*patterns: str) -> list[str]:
    return sorted({path.relative_to(ROOT).as_posix() for pattern in patterns for path in ROOT.glob(pattern)})


def find_nvcc() -> str | None:
    homes = [home for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")) if home]
    search_path = os.pathsep.join([*(f"{home}/bin" for home in homes), os.environ.get("PATH", ""), "/usr/local/cuda/bin"])
    wanted = os.environ.get("GPUSORT_CUDA")
    found = None if wanted == "0" else shutil.which("nvcc", path=search_path)
    if found is None and wanted == "1":
        sys.exit("GPUSORT_CUDA=1, but there is no nvcc in CUDA_HOME, CUDA_PATH, PATH or /usr/local/cuda")
    return found


def cuda_architectures() -> list[str]:
    wanted = os.environ.get("TORCH_CUDA_ARCH_LIST", "").replace(";", " ").split()
    if not wanted and torch.version.cuda and torch.cuda.is_available():
        capabilities = {torch.cuda.get_device_capability(device) for device in range(torch.cuda.device_count())}
        wanted = [f"{major}.{minor}" for major, minor in sorted(capabilities) if (major, minor) >= LEAST_CAPABILITY]
    return wanted or DEFAULT_CUDA_ARCHITECTURES.split()


def architecture_flags(architectures: list[str]) -> list[str]:
    flags = []
    for architecture in architectures:
        number = architecture.removesuffix("+PTX").replace(".", "")
        if not number.rstrip("af").isdigit():
            sys.exit(f"TORCH_CUDA_ARCH_LIST: {architecture!r} is no architecture such as 9.0, 9.0a or 9.0+PTX")
        if divmod(int(number.rstrip("af")), 10) < LEAST_CAPABILITY:
            sys.exit(f"TORCH_CUDA_ARCH_LIST: {architecture!r} is too old; the kernels need 8.0 or newer (GPUSORT_CUDA=0 leaves them out)")
        flags.append(f"-gencode=arch=compute_{number},code=sm_{number}")
        if architecture.endswith("+PTX"):
            flags.append(f"-gencode=arch=compute_{number},code=compute_{number}")
    return flags


NVCC = find_nvcc()
HOST_SOURCES = [path for path in sources("csrc/ops/*.cpp", "csrc/cpu/**/*.cpp", "csrc/plan/**/*.cpp") if not path.endswith("_cuda.cpp")]
CUDA_SOURCES = sources("csrc/ops/*_cuda.cpp", "csrc/cuda/**/*.cpp", "csrc/cuda/**/*.cu", "csrc/plan/**/*.cpp")
EXTENSIONS = [Extension("torch_gpusort._C", HOST_SOURCES)] + ([Extension("torch_gpusort._C_cuda", CUDA_SOURCES)] if NVCC else [])


class BuildLibraries(build_ext):
    """Compiles all objects of both libraries in one pool, then links what changed."""

    def get_ext_filename(self, fullname: str) -> str:
        return os.path.join(*fullname.split(".")) + ".so"

    def build_extensions(self) -> None:
        sys.stdout.reconfigure(line_buffering=True)
        self.set_up_commands()
        objects = {source: self.objects_dir / f"{source}.o" for extension in self.extensions for source in extension.sources}
        compilations = [(source, target, self.compile_command(source, target)) for source, target in objects.items()]
        pending = [compilation for compilation in compilations if is_stale(*compilation[1:])]
        jobs = int(os.environ.get("MAX_JOBS") or len(os.sched_getaffinity(0)))
        cuda = f"CUDA for {' '.join(self.architectures)} with {NVCC}" if NVCC else "no nvcc, so CPU kernels only"
        print(f"torch_gpusort: torch {torch.__version__}; {cuda}; compiling {len(pending)} of {len(objects)} objects, {jobs} at a time")
        if not NVCC:  # a CUDA library left by an earlier build would be loaded
            for folder in (ROOT, Path(self.build_lib)):
                (folder / "torch_gpusort" / "_C_cuda.so").unlink(missing_ok=True)
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda compilation: run(*compilation), pending))
        for extension in self.extensions:
            inputs = [objects[source] for source in extension.sources]
            library = self.objects_dir / Path(self.get_ext_filename(extension.name)).name
            command = self.link_command(extension, [str(path) for path in inputs], library)
            if is_stale(library, command, inputs):
                run(library.name, library, command)
            self.mkpath(os.path.dirname(self.get_ext_fullpath(extension.name)))
            self.copy_file(str(library), self.get_ext_fullpath(extension.name))

    def set_up_commands(self) -> None:
        self.objects_dir = ROOT / "build" / f"torch-{torch.__version__}{'-debug' if DEBUG else ''}"
        self.architectures = cuda_architectures() if NVCC else []
        self.torch_dir = Path(torch.__file__).parent
        target = f"-DTORCH_TARGET_VERSION={(TORCH_TARGET[0] << 56) | (TORCH_TARGET[1] << 48):#018x}ULL"
        common = ["-std=c++17", target, *(["-g", "-O0"] if DEBUG else ["-O3"])]
        host = ["-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden"]
        self.cxx = shlex.split(os.environ.get("CXX", "g++"))
        version = f'-DGPUSORT_VERSION="{self.distribution.get_version()}"'
        self.host_command = [*self.cxx, *common, *host, "-Wall", "-Wextra", version, "-isystem", str(self.torch_dir / "include")]
        if NVCC:
            self.cuda_dir = Path(NVCC).resolve().parent.parent
            built_for = f'-DGPUSORT_CUDA_ARCHITECTURES="{" ".join(self.architectures)}"'
            self.cuda_host_command = [*self.host_command, "-DUSE_CUDA", built_for, "-isystem", str(self.cuda_dir / "include")]
            self.nvcc_command = [NVCC, *common, "-lineinfo", "--expt-relaxed-constexpr", "-Xcompiler", ",".join([*host, "-Wall"])]
            self.nvcc_command += ["-ccbin", self.cxx[-1], *architecture_flags(self.architectures)]
            self.nvcc_command += ["-Xptxas", "-v"] if os.environ.get("GPUSORT_PTXAS") == "1" else []

    def compile_command(self, source: str, target: Path) -> list[str]:
        on_host = self.cuda_host_command if source.endswith("_cuda.cpp") or source.startswith("csrc/cuda/") else self.host_command
        command = self.nvcc_command if source.endswith(".cu") else on_host
        return [*command, "-MMD", "-MF", f"{target}.d", "-c", source, "-o", str(target)]

    def link_command(self, extension: Extension, objects: list[str], target: Path) -> list[str]:
        # The torch libraries are named even where no symbol is taken from them directly; import torch has loaded them by then.
        libraries = [f"-L{self.torch_dir / 'lib'}", "-Wl,--no-as-needed", "-ltorch_cpu"]
        if extension.name.endswith("_cuda"):
            libraries += ["-ltorch_cuda", "-Wl,-z,defs"] if torch.version.cuda else []
            libraries += [f"-L{self.cuda_dir / 'lib64'}", "-lcudart_static", "-ldl", "-lrt", "-lpthread"]
        return [*self.cxx, "-shared", "-Wl,--exclude-libs,ALL", *objects, *libraries, "-o", str(target)]


def is_stale(target: Path, command: list[str], inputs: list[Path] | None = None) -> bool:
    """Whether `target` has to be made: it is missing, was made by another command, or is older than an input."""
    record = Path(f"{target}.command")
    if not (target.exists() and record.exists() and record.read_text() == shlex.join(command)):
        return True
    rule = "" if inputs else Path(f"{target}.d").read_text().replace("\\\n", " ")
    inputs = inputs or [ROOT / name for name in rule.partition(":")[2].split()]  # nvcc puts a space before the colon
    return any(not path.exists() or path.stat().st_mtime > target.stat().st_mtime for path in inputs)


def run(name: str, target: Path, command: list[str]) -> None:
    print(f"  {name}")
    target.parent.mkdir(parents=True, exist_ok=True)
    if subprocess.run(command, cwd=ROOT).returncode != 0:
        sys.exit(f"torch_gpusort: {name} failed")
    Path(f"{target}.command").write_text(shlex.join(command))


setup(ext_modules=EXTENSIONS, cmdclass={"build_ext": BuildLibraries}, options={"bdist_wheel": {"py_limited_api": "cp310"}})
