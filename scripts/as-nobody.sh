#!/bin/sh
# Runs the tests of the lab and of settings as an ordinary user, without root's rights and without /dev/net/tun. Call it as root.
set -eu
cd "$(dirname "$0")/.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
chmod 755 "$place"
executable() { # test name -> the file that cargo built
    cargo test --locked -p windtunnel --test "$1" --no-run 2>&1 | sed -n 's/.*(\(.*\))$/\1/p' | tail -n 1
}
cp target/debug/windtunnel "$place/windtunnel"
mkdir -m 1777 "$place/tmp"
for test in lab tune settings exports; do
    cp "$(executable $test)" "$place/$test"
    (cd "$place/tmp" && HOME="$place/tmp" TMPDIR="$place/tmp" WINDTUNNEL_BIN="$place/windtunnel" \
        setpriv --reuid 65534 --regid 65534 --clear-groups "$place/$test" --test-threads 2)
done
