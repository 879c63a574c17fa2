#!/bin/sh
# The benches that stacks bring themselves, each over a path of the lab: what a stack reckons of itself stands beside what its adapter
# gives (`cargo bench -p windtunnel --bench stacks own` calls this).
# Usage: scripts/stacks-own.sh build NAME
#        scripts/stacks-own.sh run NAME WINDTUNNEL PATH     one line of JSON with goodput_bps
# NAME: lwip (lwiperf, of Debian's sources, against Debian's iperf), smoltcp (examples/benchmark of its package)
set -eu
cd "$(dirname "$0")/.."
place=$PWD/target/stacks-own
mkdir -p "$place"

lacks() { # stack, what to install
    echo "stacks-own: no bench of $1's own: install $2" >&2
    exit 3
}

# Debian's sources from wherever this machine has its packages from.
debian_source() { # package, folder
    mkdir -p "$2/parts" "$2/lists"
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -f "$file" ] && sed 's/^Types:.*/Types: deb-src/' "$file" > "$2/parts/$(basename "$file")"
    done
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | sed -n 's/^deb /deb-src /p' > "$2/parts/own.list" || true
    set -- "$1" "$2" -q -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$2/parts" -o "Dir::State::Lists=$2/lists" \
        -o APT::Sandbox::User=root
    package=$1 folder=$2
    shift 2
    (cd "$folder" && apt-get "$@" update >/dev/null && apt-get "$@" source --download-only "$package" >/dev/null)
}

build() {
    case $1 in
        lwip)
            [ -f /usr/include/lwip/lwip/tcp.h ] && command -v gcc >/dev/null || lacks lwip "gcc and liblwip-dev"
            command -v iperf >/dev/null || lacks lwip iperf
            if ! ls "$place"/lwip-sources/lwip_*.orig.tar.* >/dev/null 2>&1; then
                debian_source lwip "$place/lwip-sources"
            fi
            tar -xf "$place"/lwip-sources/lwip_*.orig.tar.* -C "$place/lwip-sources"
            gcc -O2 -w -isystem /usr/include/lwip -Istacks/lwip -o "$place/lwip" stacks/lwip/own.c \
                "$place"/lwip-sources/lwip-*/src/apps/lwiperf/lwiperf.c -llwip
            ;;
        smoltcp)
            # The very package that the adapter is built from, with its own lock file.
            manifest=$(cargo metadata --locked --format-version 1 |
                grep -o '"manifest_path":"[^"]*/smoltcp-[^"]*/Cargo.toml"' | cut -d'"' -f4 | head -n 1)
            [ -n "$manifest" ] || lacks smoltcp "cargo, with a way to crates.io"
            mkdir -p "$place/smoltcp-package"
            cp -r "$(dirname "$manifest")"/. "$place/smoltcp-package"
            # Below this workspace, and none of it.
            printf '\n[workspace]\n' >> "$place/smoltcp-package/Cargo.toml"
            cargo build --release --quiet --example benchmark --manifest-path "$place/smoltcp-package/Cargo.toml" \
                --target-dir "$place/build"
            cp "$place/build/release/examples/benchmark" "$place/smoltcp"
            ;;
        *) echo "stacks-own: there is no bench of $1's own" >&2; exit 2 ;;
    esac
}

device_is_there() { # its name, and of whom to ask: ip, or ip -n server
    name=$1
    shift
    tries=0
    until "$@" link show "$name" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { echo "stacks-own: $name doesn't come" >&2; exit 5; }
        sleep 0.05
    done
}

forward() {
    for what in conf/all/rp_filter conf/wt0/rp_filter conf/all/send_redirects; do
        echo 0 > "/proc/sys/net/ipv4/$what"
    done
    echo 1 > /proc/sys/net/ipv4/ip_forward
}

# In the lab's client.
inside() {
    case $1 in
        lwip)
            "$place/lwip" --device wts0 --address 198.18.0.2 --server 198.19.0.1:5001 --mtu 1500 --listen - &
            own=$!
            device_is_there wts0 ip
            ip link set wts0 mtu 1500 txqueuelen 10000 up
            ip route add 198.18.0.2 dev wts0
            forward
            ip netns exec server iperf -c 198.18.0.2 -t 10 >&2
            wait $own
            ;;
        smoltcp)
            # Its bench has the stack and a program of the kernel's in one process. The process is in the server, where the program
            # belongs, and its device is moved here before the program's second SYN.
            ip -n server address add 192.168.69.2 dev lo
            ip -n server route add 192.168.69.1 via 198.19.0.2 src 192.168.69.2 2>/dev/null ||
                ip -n server route add 192.168.69.1 dev wt0 src 192.168.69.2
            ip route add 192.168.69.2 dev wt0
            ip netns exec server "$place/smoltcp" --tun wts0 writer > "$out" &
            own=$!
            device_is_there wts0 ip -n server
            ip -n server link set wts0 netns $$
            device_is_there wts0 ip
            ip link set wts0 mtu 1500 txqueuelen 10000 up
            ip route add 192.168.69.1 dev wts0
            forward
            wait $own
            sed -n 's/^throughput: \([0-9.]*\) Gbps$/\1/p' "$out" | awk '{ printf "{\"goodput_bps\":%.0f}\n", $1 * 1e9 }'
            ;;
    esac
}

case ${1:-} in
    build) build "$2" ;;
    run)
        out=$(mktemp)
        export out
        trap 'rm -f "$out"' EXIT
        "$3" lab run "$4" --cc cubic -- "$PWD/scripts/stacks-own.sh" inside "$2"
        ;;
    inside) inside "$2" ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
