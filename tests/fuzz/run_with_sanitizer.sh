#!/usr/bin/env bash
# Fuzz what drives the kernels under AddressSanitizer and UndefinedBehaviorSanitizer.
#
#     tests/fuzz/run_with_sanitizer.sh [INPUTS] [SEED]
#
# Builds a copy of the package in a temporary folder, never in the source tree. PYTHON names the
# interpreter (default: python); it needs NumPy, pip, and what an installation from source needs.
# KEEP_BUILD=folder keeps the build there and uses it again.
set -euo pipefail

inputs=${1:-200000}
seed=${2:-0}
python=${PYTHON:-python}
compiler=${CC:-gcc}
repository=$(cd "$(dirname "$0")/../.." && pwd)

if [[ -n ${KEEP_BUILD:-} ]]; then
    folder=$KEEP_BUILD
    mkdir -p "$folder"
else
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
fi

if [[ ! -d $folder/site/recordsmith ]]; then
    mkdir -p "$folder/tree"
    cp "$repository"/{pyproject.toml,setup.py,README.md,LICENSE} "$folder/tree"
    cp -r "$repository/src" "$folder/tree/src"
    find "$folder/tree" \( -name '*.so' -o -name '*.c' -o -name '*.egg-info' \) \
        -prune -exec rm -rf {} +
    CC=$compiler \
    CFLAGS="-g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined" \
    LDFLAGS="-fsanitize=address,undefined" \
        "$python" -m pip install --quiet --no-deps --no-cache-dir \
            --target "$folder/site" "$folder/tree"
fi

# Python's own allocator would hand out parts of large blocks, where an overread goes unseen.
# Python does not free everything at its end: leaks are not looked for.
export LD_PRELOAD=$("$compiler" -print-file-name=libasan.so)
export PYTHONMALLOC=malloc
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=0:exitcode=1
export UBSAN_OPTIONS=print_stacktrace=1
export PYTHONPATH=$folder/site
export PYTHONDONTWRITEBYTECODE=1

"$python" - "$folder" <<'CHECK'
import sys
import recordsmith.format.example.kernel.survey as kernel
assert kernel.__file__.startswith(sys.argv[1]), f"{kernel.__file__} is not the sanitized build"
CHECK
"$python" "$repository/tests/fuzz/run.py" --watched --inputs "$inputs" --seed "$seed"
