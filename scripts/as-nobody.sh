#!/bin/sh
# Runs the tests of the lab, of workloads, of settings, of the page, of the journal, of captures and of what a crash leaves as an ordinary user, without root's rights and without /dev/net/tun. Call it as root.
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
as_nobody() { # what to run, as an ordinary user
    (cd "$place/tmp" && HOME="$place/tmp" TMPDIR="$place/tmp" WINDTUNNEL_BIN="$place/windtunnel" \
        setpriv --reuid 65534 --regid 65534 --clear-groups "$@")
}
for test in lab lab_outside tune settings exports cc web web_door journal capture; do
    cp "$(executable $test)" "$place/$test"
    as_nobody "$place/$test" --test-threads 2
done
# What mostly waits, at once with what measures beside bulk transfers.
for test in crash workloads; do
    cp "$(executable $test)" "$place/$test"
done
as_nobody "$place/crash" --test-threads 2 &
as_nobody "$place/workloads" --test-threads 2
wait $!
# Once more with a TUN device that everybody may open, where there is one: in mounts of our own, so that nothing stays.
if [ -c /dev/net/tun ] && mknod -m 666 "$place/tun" c 10 200 2>/dev/null; then
    export place
    unshare --mount --propagation private sh -c '
        mount --bind "$place/tun" /dev/net/tun
        cd "$place/tmp" && HOME="$place/tmp" TMPDIR="$place/tmp" WINDTUNNEL_BIN="$place/windtunnel" \
            setpriv --reuid 65534 --regid 65534 --clear-groups "$place/lab" --test-threads 2 every_preset'
fi
