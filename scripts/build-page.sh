#!/bin/sh
# Builds the page into ui/dist, from where it is embedded. Where that can't be done (no Node, no registry) it says so and
# leaves the page out, unless WINDTUNNEL_PAGE=must.
set -eu
cd "$(dirname "$0")/../ui"

without() {
    echo "page: $1; the program will be without its page, all else works" >&2
    [ "${WINDTUNNEL_PAGE:-}" != must ] || exit 3
    exit 0
}

sources="src public index.html vite.config.ts tsconfig.json package.json package-lock.json"
# shellcheck disable=SC2086
if [ -f dist/index.html.gz ] && [ -z "$(find $sources -newer dist/index.html.gz)" ]; then
    exit 0
fi
command -v npm >/dev/null 2>&1 || without "there is no npm (sudo apt-get install --no-install-recommends nodejs npm)"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
npm ci --no-audit --no-fund --loglevel=error >"$log" 2>&1 || { head -n 5 "$log" >&2; without "npm ci failed"; }
npm run --silent build -- --logLevel warn
