#!/bin/sh
# Pictures of each view for the guide, in a network namespace of its own with addresses that are nobody's, so that they show no
# particular machine and change none.
# Usage: scripts/pictures.sh BINARY [FOLDER [all]]
set -eu
cd "$(dirname "$0")/../ui"
binary=$(realpath "${1:-../target/release/windtunnel}" 2>/dev/null || realpath "$OLDPWD/$1")
[ "$#" -eq 0 ] || shift
[ -d node_modules ] || npm ci --no-audit --no-fund --loglevel=error
export WINDTUNNEL="$binary" WINDTUNNEL_PICTURES=own-namespace
# shellcheck disable=SC2016
exec timeout 900 unshare -Urnm sh -c '
    PATH=$PATH:/usr/sbin:/sbin
    ip link set lo up
    ip link add eth0 type veth peer name eth1
    ip link set eth0 up; ip link set eth1 up
    ip address add 192.0.2.10/24 dev eth0
    ip route add default via 192.0.2.1
    exec node e2e/screenshots.mjs "$@"' sh "$@"
