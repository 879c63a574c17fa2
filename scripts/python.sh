#!/bin/sh
# The Python package. Usage: scripts/python.sh wheel PROGRAM   makes target/python/windtunnel-….whl
#                            scripts/python.sh test PROGRAM    proves it in a fresh environment with Debian's pandas, pytest, mypy and nbclient
set -eu
cd "$(dirname "$0")/.."
what=$1
program=$(realpath "$2")
python=${PYTHON:-/usr/bin/python3}
case $what in
    wheel) exec "$python" scripts/wheel.py "$program" target/python ;;
    test) ;;
    *) echo "usage: $0 wheel|test PROGRAM" >&2; exit 2 ;;
esac
place=$(mktemp -d "${TMPDIR:-/tmp}/windtunnel-python.XXXXXX")
trap 'rm -rf "$place"' EXIT
wheel=$("$python" scripts/wheel.py --quick "$program" "$place/wheel")
"$python" -m venv --system-site-packages "$place/env"
"$place/env/bin/pip" install -q --no-index --no-deps --disable-pip-version-check "$wheel"
cp -r python/tests python/notebooks python/pyproject.toml "$place/"
cd "$place"
# Only what was installed counts, and the program that is in the wheel.
unset PYTHONPATH WINDTUNNEL
export XDG_DATA_HOME="$place/data" HOME="$place" PYTHONDONTWRITEBYTECODE=1 JUPYTER_PLATFORM_DIRS=1
# Notebooks are run by this environment's Python, not by the system's.
env/bin/python -m ipykernel install --sys-prefix >/dev/null 2>&1
env/bin/python -m mypy --strict --python-executable env/bin/python --config-file pyproject.toml -p windtunnel
env/bin/python -m pytest -q -p no:cacheprovider --durations=8 ${ONLY:+-k "$ONLY"} tests
