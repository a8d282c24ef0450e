#!/usr/bin/env bash
# Build wheel and sdist, and use them as somebody does who has nothing installed: with every supported Python that is on
# this machine, install each into an empty environment and run `ckcv run` on a CSV file; then the one line
# `uvx --from ckcv-ray ckcv run table.csv --target y`, with the folder of the wheel as an index.
#
#     jobs/try_wheel.sh [VERSION ...]      # 3.11 3.12 3.13 3.14
#
# It prints seconds of installation from an empty cache (with the downloads) and from a full one, and megabytes
# without bytecode. Needs the package registry; uv, if it is missing, comes from there too. Nothing is left behind.
set -euo pipefail
cd "$(dirname "$0")/.."
unset PYTHONPATH PYTHONDONTWRITEBYTECODE
most_megabytes=900 most_seconds=25
versions=("$@")
[ $# -gt 0 ] || versions=(3.11 3.12 3.13 3.14)

say() { printf '%-18s %s\n' "$1" "$2"; }
die() { say FAILED "$1" >&2; exit 1; }
quietly() { "$@" &> "$scratch/log" || { cat "$scratch/log" >&2; die "$*"; }; }
timed() {  # sets seconds
    local begin; begin=$(date +%s%N)
    quietly "$@"
    seconds=$(( ($(date +%s%N) - begin + 500000000) / 1000000000 ))
}
find_python() {  # prints the path of a version that runs
    local candidate
    for candidate in "$(type -P "python$1" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
        [ -x "$candidate" ] && "$candidate" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" \
            &> /dev/null && echo "$candidate" && return
    done
    return 1
}

scratch=$(mktemp -d "${TMPDIR:-/var/tmp}/ckcvXXXXXX")
trap 'rm -rf "$scratch"' EXIT
if ! type uv &> /dev/null; then
    quietly python3 -m pip --disable-pip-version-check install --quiet --target "$scratch/uv" uv
    export PATH=$scratch/uv/bin:$PATH
fi
export UV_PYTHON_DOWNLOADS=never UV_NO_PROGRESS=1 NUMBA_CACHE_DIR=$scratch/numba

quietly uv build --python "$(find_python 3.12 || find_python 3.11 || find_python 3.13)" --out-dir "$scratch/dist" .
wheel=$(ls "$scratch"/dist/*.whl) sdist=$(ls "$scratch"/dist/*.tar.gz)
for file in "$wheel" "$sdist"; do say "${file##*.}" "$(basename "$file"), $(($(stat -c %s "$file") / 1024)) KiB"; done
mkdir "$scratch/work"
python3 - "$scratch/work/table.csv" << 'END'
import random, sys
random.seed(0)
with open(sys.argv[1], "w") as file:
    print("age,dose,kind,y", file=file)
    for i in range(150):
        print(f"{random.gauss(50 + 20 * (i % 2), 9):.1f},{random.random():.3f},{'ab'[i % 3 > 0]},{'no yes'.split()[i % 2]}", file=file)
END
study=(run table.csv --target y --k 3,5 --n-splits 5 --backend serial)

tried=0
for version in "${versions[@]}"; do
    python=$(find_python "$version") || { say "Python $version" "not on this machine"; continue; }
    export UV_CACHE_DIR=$scratch/cache$version
    quietly uv venv --python "$python" "$scratch/env"
    timed uv pip install --python "$scratch/env" "$wheel"
    cold=$seconds
    megabytes=$(du -sm --exclude=__pycache__ "$scratch/env" | cut -f1)
    (cd "$scratch/work" && quietly "$scratch/env/bin/ckcv" "${study[@]}" --out "wheel$version")
    for built in "$wheel" "$sdist"; do
        rm -rf "$scratch/env"
        quietly uv venv --python "$python" "$scratch/env"
        timed uv pip install --python "$scratch/env" "$built"
        [ "$built" = "$wheel" ] && warm=$seconds
    done
    (cd "$scratch/work" && quietly "$scratch/env/bin/ckcv" "${study[@]}" --out "sdist$version")
    cmp "$scratch/work"/{wheel,sdist}"$version/certificate.json" || die "wheel and sdist have different certificates"
    say "Python $version" "installed in $cold s with downloads, $warm s from the cache; $megabytes MB; wheel and sdist run"
    [ "$megabytes" -le $most_megabytes ] || die "$megabytes MB are more than $most_megabytes"
    [ "$warm" -le $most_seconds ] || say slow "more than $most_seconds s from the cache: is the machine busy?"
    tried=$((tried + 1))
    rm -rf "$scratch/env"
    last=$version
    [ "$version" = "${versions[-1]}" ] || rm -rf "$UV_CACHE_DIR"
done
[ "$tried" -gt 0 ] || die "no Python of ${versions[*]} is on this machine"

# The one line, as it is typed once the package is in an index.
export UV_FIND_LINKS=$scratch/dist UV_PYTHON=$(find_python "$last") UV_CACHE_DIR=$scratch/cache$last
(cd "$scratch/work" && timed uvx --from ckcv-ray ckcv run table.csv --target y && echo "$seconds" > "$scratch/seconds")
say uvx "--from ckcv-ray ckcv run table.csv --target y: $(cat "$scratch/seconds") s, the first time"
say "" "$(grep -m1 quoted "$scratch/log")"
(cd "$scratch/work" && quietly uvx --from ckcv-ray ckcv verify table_run)
say "" "ckcv verify: $(grep -m1 contradicts "$scratch/log")"
