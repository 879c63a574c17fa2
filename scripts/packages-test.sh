#!/bin/bash
# Proves the packages of scripts/packages.sh on a fresh minimal Debian: install, a first verdict within two minutes as an ordinary
# user, manual pages, the Tab key, an upgrade that keeps an edited file, a purge that leaves nothing; the image; an
# older Debian, for its glibc; piuparts. Needs root, mmdebstrap, lintian, piuparts and this host's own package sources.
# Usage: scripts/packages-test.sh [SUITE [OLDER]]
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${1:-bookworm}
older=${2:-bullseye}
work=$PWD/target/packages
say() { printf 'packages-test: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
[ "$(id -u)" = 0 ] || fail "a fresh Debian is made and entered by root"
for tool in mmdebstrap:mmdebstrap lintian:lintian piuparts:piuparts setpriv:util-linux man:man-db systemd-analyze:systemd setcap:libcap2-bin promtool:prometheus; do
    command -v "${tool%%:*}" >/dev/null || fail "${tool%%:*} is missing: apt-get install ${tool##*:}"
done
deb=$(ls "$work"/out/windtunnel_*.deb 2>/dev/null) || fail "there is no package: make packages"
(cd "$work/out" && sha256sum --quiet -c SHA256SUMS) || fail "SHA256SUMS doesn't fit"

say "lintian"
lintian --fail-on error,warning "$deb" || fail "lintian complains"
stacks=$(ls "$work"/out/windtunnel-stacks_*.deb 2>/dev/null) || fail "there is no package of stacks: apt-get install gcc liblwip-dev libslirp-dev; make packages"
lintian --fail-on error,warning "$stacks" || fail "lintian complains of the stacks"

say "units"
units=$(mktemp -d)
cp packaging/windtunnel-*.service "$units/"
# The agent with what routes need, as its own comment says.
sed -n 's/^#   \(\[Service\]\|[A-Z].*=.*\)$/\1/p' packaging/windtunnel-agent.service >"$units/routes.conf"
grep -q '^AmbientCapabilities=CAP_NET_ADMIN$' "$units/routes.conf" || fail "the agent's unit doesn't say what routes need"
cat packaging/windtunnel-agent.service "$units/routes.conf" >"$units/windtunnel-routes.service"
# Its experiments attach BPF programs, as root.
mv "$units/windtunnel-traffic@.service" "$units/windtunnel-traffic.service"
for unit in serve:12 web:12 agent:12 routes:21 traffic:23; do
    systemd-analyze security --offline=true --threshold="${unit#*:}" "$units/windtunnel-${unit%:*}.service" >"$work/security.txt" || {
        tail -n 3 "$work/security.txt" >&2
        fail "the unit of ${unit%:*} is less closed than it was"
    }
    tail -n 1 "$work/security.txt" >&2
done
rm -r "$units"

# A minimal Debian as a tar, made once. $1: its suite.
minimal() {
    [ ! -s "$work/$1.tar" ] || return 0
    say "a minimal $1"
    # Where this host has none that suits, mmdebstrap knows where its distribution is.
    local sources=() own
    own=$(find /etc/apt/sources.list /etc/apt/sources.list.d -name '*.sources' -o -path /etc/apt/sources.list -size +0 2>/dev/null | sort | head -n 1) || true
    if [ "$1" = "$suite" ] && [ -n "$own" ]; then sources=("$own"); fi
    rm -rf "$work/$1.tar.part"
    # Without a format the name decides, and makes a folder of this one.
    mmdebstrap --variant=minbase --quiet --format=tar --include=ca-certificates "$1" "$work/$1.tar.part" "${sources[@]}"
    mv "$work/$1.tar.part" "$work/$1.tar"
}
minimal "$suite"
base=$work/$suite.tar
root=$(mktemp -d)
other=$(mktemp -d)
trap 'rm -rf "$root" "$other"' EXIT
chmod 755 "$root" "$other"
tar -C "$root" -xf "$base" --exclude='./dev/*'
cp /etc/resolv.conf "$root/etc/resolv.conf"
# An installer writes it; without it names of the lab's hosts have no place.
[ -e "$root/etc/hosts" ] || printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
cp /etc/apt/apt.conf.d/*artifact* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true

# Runs a command in the fresh Debian, as root or as whom the first word names. A pivoted root, since the kernel makes no user
# namespaces for whoever is in a chroot.
inside() {
    local user=$1
    shift
    unshare --mount --pid --fork --propagation private sh -ec '
        root=$1 user=$2
        shift 2
        mount --bind "$root" "$root"
        cd "$root"
        mount -t proc proc proc
        mount -t tmpfs -o mode=755 tmpfs dev
        for node in null zero full random urandom tty; do touch dev/$node; mount --bind /dev/$node dev/$node; done
        mkdir -p dev/net dev/pts dev/shm
        if [ -e /dev/net/tun ]; then touch dev/net/tun; mount --bind /dev/net/tun dev/net/tun; fi
        mount -t tmpfs tmpfs run
        pivot_root . mnt
        umount -l /mnt
        export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
        cd /
        if [ "$user" != root ]; then
            export HOME=/home/$user
            cd "$HOME"
            exec setpriv --reuid=1000 --regid=1000 --clear-groups ${bounds:---bounding-set=-all} "$@"
        fi
        exec "$@"' inside "$root" "$user" "$@"
}
files() { (cd "$root" && find etc lib usr var/lib -path var/lib/apt -prune -o -path var/lib/dpkg -prune -o -path '*/__pycache__' -prune -o ! -type d -print | grep -v -e '^etc/ld.so.cache' -e '^etc/mailcap' | sort); }

say "what a user has beside it: curl, iproute2, man"
inside root sh -c 'apt-get update -q >/dev/null && apt-get install -q -y --no-install-recommends curl iproute2 man-db bash >/dev/null 2>&1'
inside root useradd --create-home --uid 1000 --shell /bin/bash someone
# The folder is one that apt takes packages from.
install -d "$root/srv/windtunnel"
cp "$deb" "$stacks" "$work/out/Packages.gz" "$root/srv/windtunnel/"
echo 'deb [trusted=yes] file:/srv/windtunnel ./' >"$root/etc/apt/sources.list.d/windtunnel.list"
files >"$work/before.txt"

say "from the package to the first verdict"
began=$(date +%s)
inside root sh -c 'apt-get update -q && apt-get install -q -y --no-install-recommends windtunnel' >"$work/apt.txt" 2>&1 || { tail "$work/apt.txt" >&2; fail "apt"; }
installed=$(date +%s)
verdict=$(inside someone windtunnel tune --lab transatlantic --workload page --knobs initcwnd --budget 60s --quiet) || [ $? -le 1 ]
took=$(($(date +%s) - began))
printf '%s\n' "$verdict" | head -n 5 >&2
printf '%s' "$verdict" | grep -q '^Kept: windtunnel report' || fail "there is no verdict"
say "$took s, $((installed - began)) s of them to install"
[ $took -lt 120 ] || fail "that is more than two minutes"

say "commands as an ordinary user"
[ "$(inside someone id -u)" = 1000 ] || fail "that isn't an ordinary user"
inside someone windtunnel --version
inside someone windtunnel doctor >"$work/doctor.txt" || { cat "$work/doctor.txt" >&2; fail "doctor"; }
inside someone windtunnel lab run adsl -- curl -sS -o /dev/null http://server/bytes/100kB || fail "lab run"
inside someone windtunnel predict adsl --levels rwin=8KiB --knobs rwin >/dev/null || fail "predict"
inside someone windtunnel report last --json >/dev/null || [ $? -le 1 ] || fail "report"
inside someone windtunnel tune --lab adsl --budget 60s --quiet >/dev/null || [ $? -le 1 ] || fail "tune"
inside someone windtunnel mtu 127.0.0.1 >/dev/null || fail "mtu"
# As its unit starts it, but for systemd: the token is its own account's only, and who asks is answered.
grep -q "^ExecStart=/bin/sh -c 'exec /usr/bin/windtunnel web --listen 127.0.0.1:7878 --json >%t/windtunnel-web/access.json'$" \
    "$root/lib/systemd/system/windtunnel-web.service" || fail "the unit of web starts something else"
inside someone sh -ec 'umask 077
    windtunnel web --listen 127.0.0.1:0 --json >access.json &
    web=$!
    for attempt in $(seq 100); do [ -s access.json ] && break; sleep 0.1; done
    [ "$(stat -c %a access.json)" = 600 ]
    url=$(sed -n "s/.*\"url\":\"\([^\"]*\)\".*/\1/p" access.json)
    curl -sSf "${url%/}/metrics" | grep -q "^windtunnel_journal_up 1$"
    kill $web
    wait $web || true
    rm access.json' || fail "web"

say "metrics, alerts and dashboards"
inside someone windtunnel metrics | promtool check metrics || fail "promtool complains of the metrics"
promtool check rules packaging/prometheus/windtunnel.rules.yml >/dev/null || fail "promtool complains of the alerts"
packaging/grafana/check.py "$work/stage/usr/bin/windtunnel" >&2 || fail "the dashboard asks for what isn't written"

say "a copy with file capabilities runs the lab, too"
cp "$root/usr/bin/windtunnel" "$root/home/someone/capable"
chmod 755 "$root/home/someone/capable"
setcap cap_net_raw+ep "$root/home/someone/capable"
# Who has none of these capabilities within bounds may not even start it.
bounds=--inh-caps=-all inside someone ./capable lab run adsl -- true || fail "a copy with capabilities doesn't run the lab"
rm "$root/home/someone/capable"

say "manual pages and the Tab key"
inside root sh -c 'for page in /usr/share/man/man1/windtunnel*.1.gz; do man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null; done' >"$work/man.txt"
[ ! -s "$work/man.txt" ] || { head "$work/man.txt" >&2; fail "man warns"; }
inside someone bash -ec 'bash -n /usr/share/bash-completion/completions/windtunnel
    source /usr/share/bash-completion/completions/windtunnel
    COMP_WORDS=(windtunnel tune --lab ads) COMP_CWORD=3 COMP_TYPE=9
    _clap_complete_windtunnel windtunnel ads --lab
    printf "%s\n" "${COMPREPLY[@]}" | grep -qx "adsl *"' || fail "the Tab key doesn't offer adsl"

say "nothing was enabled or started; an upgrade keeps an edited file"
for unit in serve agent web traffic@; do
    [ -e "$root/lib/systemd/system/windtunnel-$unit.service" ] || fail "the unit of $unit isn't there"
    [ ! -e "$root/etc/systemd/system/multi-user.target.wants/windtunnel-$unit.service" ] || fail "the unit of $unit was enabled"
done
echo 'SERVE_FLAGS=--listen 127.0.0.1:7411' >"$root/etc/default/windtunnel-serve"
newer=$(mktemp -d)
dpkg-deb -R "$deb" "$newer/it"
sed -i 's/^Version: .*/&.1/' "$newer/it/DEBIAN/control"
dpkg-deb --root-owner-group --build "$newer/it" "$root/tmp/newer.deb" >/dev/null
rm -rf "$newer"
inside root sh -c 'apt-get install -q -y --no-install-recommends /tmp/newer.deb >/dev/null 2>&1'
grep -q 127.0.0.1:7411 "$root/etc/default/windtunnel-serve" || fail "the upgrade overwrote an edited file"

say "a purge leaves nothing"
inside root sh -c 'dpkg --purge windtunnel >/dev/null 2>&1; dpkg -l windtunnel 2>/dev/null | grep -q ^ii' && fail "it is still there"
rm -f "$root"/tmp/*.deb
files >"$work/after.txt"
diff "$work/before.txt" "$work/after.txt" >&2 || fail "something was left behind"

say "seven stacks"
inside root sh -c 'apt-get update -q && apt-get install -q -y --no-install-recommends windtunnel windtunnel-stacks user-mode-linux' >"$work/apt.txt" 2>&1 || { tail "$work/apt.txt" >&2; fail "apt: stacks"; }
inside someone windtunnel stacks list --json | python3 -c '
import json, sys
built = {one["name"] for one in json.load(sys.stdin)["stacks"] if one["built"]}
sys.exit(not built >= {"linux-direct", "linux", "smoltcp", "lwip", "slirp", "quic", "uml"} and f"built: {sorted(built)}")' || fail "not all stacks are there"
if inside someone test -w /dev/net/tun; then
    inside someone windtunnel lab run adsl -- windtunnel stacks run lwip -- curl -sS -o /dev/null http://server/bytes/100kB || fail "curl through lwIP"
fi

say "the image"
image=$(ls "$work"/out/*.oci.tar)
mkdir "$other/image"
scripts/image.py --check "$image" "$other/image" >&2
# The date of what was built, whatever was committed since.
SOURCE_DATE_EPOCH=$(stat -c %Y "$work/stage/usr/bin/windtunnel") scripts/image.py "$work/stage/usr/bin/windtunnel" "$(dpkg-deb -f "$deb" Version)" "$other/again.tar"
cmp "$other/again.tar" "$image" || fail "the image is another one when it is built again"
if command -v skopeo >/dev/null; then skopeo inspect "oci-archive:$image" >/dev/null || fail "skopeo can't read the image"; fi
# Its only program is ours, so that nothing there could pivot: a chroot does.
contained() { unshare --mount --pid --fork --propagation private chroot --userspec=65532:65532 "$other/image" /usr/bin/windtunnel "$@"; }
contained --version >/dev/null || fail "the image's program doesn't start"
contained predict adsl --levels rwin=8KiB --knobs rwin >/dev/null || fail "predict in the image"

minimal "$older"
mkdir "$other/older"
tar -C "$other/older" -xf "$work/$older.tar" --exclude='./dev/*'
say "$older: $(chroot "$other/older" ldd --version | head -n 1)"
tar -C "$other/older/opt" -xf "$(ls "$work"/out/windtunnel-*-linux-gnu.tar.xz)" --strip-components=1
printf '127.0.0.1 localhost by-name\n' >"$other/older/etc/hosts"
chroot "$other/older" useradd --create-home --uid 1000 someone
newer_root=$root root=$other/older
inside someone /opt/usr/bin/windtunnel --version || fail "it doesn't start with the glibc of $older"
inside someone /opt/usr/bin/windtunnel predict adsl --levels rwin=8KiB --knobs rwin >/dev/null || fail "predict on $older"
# Names are resolved by that system's glibc.
inside someone /opt/usr/bin/windtunnel mtu by-name >/dev/null || fail "mtu of a name on $older"
inside someone /opt/usr/bin/windtunnel lab run adsl -- /opt/usr/bin/windtunnel mtu server >/dev/null || fail "lab on $older"
root=$newer_root

say "piuparts"
gzip -1nc "$base" >"$other/base.tar.gz"
piuparts -b "$other/base.tar.gz" -d "$suite" --no-eatmydata "$deb" >"$work/piuparts.log" 2>&1 || { tail -n 20 "$work/piuparts.log" >&2; fail "piuparts"; }
tail -n 1 "$work/piuparts.log" >&2
say "all of it holds, in $SECONDS s"
