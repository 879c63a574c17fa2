#!/bin/sh
# Fuzzes the API from its own document: no answer may be our fault (5xx). In a network namespace of its own, so that nothing
# of this machine is changed. Takes a minute or two.
set -eu
cd "$(dirname "$0")/../.."
binary=$(realpath "${1:-target/release/windtunnel}")
place=target/fuzz-api
[ -x "$place/bin/python" ] || python3 -m venv "$place"
"$place/bin/pip" install --quiet --requirement scripts/fuzz-api/requirements.txt
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
mkfifo "$home/ready"
export BINARY="$binary" PLACE="$PWD/$place" XDG_DATA_HOME="$home" WINDTUNNEL_STATE_DIR="$home/state" WINDTUNNEL_ROOT="$home/root" READY="$home/ready"
# shellcheck disable=SC2016
timeout 400 unshare -Urnm sh -c '
    PATH=$PATH:/usr/sbin:/sbin
    ip link set lo up
    "$BINARY" web --listen 127.0.0.1:0 --json >"$READY" &
    server=$!
    read -r ready <"$READY"
    url=${ready##*\"url\":\"} url=${url%%\"*}
    token=${ready##*\"token\":\"} token=${token%%\"*}
    status=0
    # What it remembers of its runs is for nobody.
    cd "$XDG_DATA_HOME"
    "$PLACE/bin/schemathesis" run "${url}api/v1/openapi.json" --checks not_a_server_error,status_code_conformance \
        --header "X-Windtunnel-Token: $token" --max-examples "${EXAMPLES:-30}" --request-timeout 60 --exclude-path-regex "/events$" || status=$?
    kill -INT "$server"
    exit "$status"
'
