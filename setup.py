"""Compiles the kernels: every `.pyx` file below `src`. All else is in pyproject.toml."""

import gzip
import os
import sys
import tarfile
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

PROCESSES = int(os.environ.get("RECORDSMITH_BUILD_PROCESSES", "0")) or os.cpu_count() or 1
"""The number of parallel jobs."""
SHARED = "recordsmith.memoryviews"
"""The module with what Cython would otherwise repeat in every kernel: half of the time and size."""

EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "1577836800"))
"""The time of all files in the source archive, in seconds since 1970; 2020 unless given."""

UNIX_OPTIONS = [
    "-O3",
    "-g0",  # information for debuggers is a third of the compiler's time
    "-ffp-contract=off",  # the same floats on every processor
    "-fno-trapping-math",  # GCC vectorizes comparisons of floats, as Clang does
    "-Wno-unused-function",  # of the C code that Cython writes
    "-Wno-unreachable-code",
]
STRIP = {"linux": ["-Wl,--strip-all"], "darwin": ["-Wl,-x"]}
"""Platform -> options of the linker that leave out names only debuggers read."""


class BuildKernels(build_ext):
    """Compiles with as many processes as there are processors."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or PROCESSES

    def build_extensions(self) -> None:
        for extension in self.extensions:
            if self.compiler.compiler_type == "msvc":
                extension.extra_compile_args = ["/O2"]
            else:  # the user's flags come last and take precedence
                extension.extra_compile_args = UNIX_OPTIONS + os.environ.get("CFLAGS", "").split()
                extension.extra_link_args = STRIP.get(sys.platform, [])
        super().build_extensions()


class ReproducibleArchive(sdist):
    """Archives the source with the same bytes from each checkout of a commit."""

    def make_archive(self, base_name: str, *_args: object, base_dir: str, **_: object) -> str:
        path = f"{base_name}.tar.gz"
        with (
            open(path, "wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=EPOCH) as stream,
            tarfile.open(fileobj=stream, mode="w") as archive,
        ):
            archive.add(base_dir, filter=_without_origin)  # sorted by name
        return path


def _without_origin(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = EPOCH
    member.mode = 0o755 if member.isdir() else 0o644
    return member


def kernels() -> list[Extension]:
    """The kernels, on Windows without those of POSIX; each depends on all headers of its folder."""
    return [
        Extension(
            ".".join(path.with_suffix("").parts[1:]),
            [str(path)],
            depends=sorted(map(str, [*path.parent.glob("*.h"), *path.parent.glob("*.pxd")])),
        )
        for path in sorted(Path("src").rglob("*.pyx"))
        if sys.platform != "win32" or "posix" not in path.read_text("utf-8")
    ]


setup(
    ext_modules=cythonize(
        [*kernels(), Extension(SHARED, ["src/recordsmith/memoryviews.c"])],
        nthreads=PROCESSES,
        quiet=True,
        shared_utility_qualified_name=SHARED,
    ),
    cmdclass={"build_ext": BuildKernels, "sdist": ReproducibleArchive},
)
