#!/bin/sh
# The benches that stacks bring themselves, each over a path of the lab: what a stack reckons of itself stands beside what its adapter
# gives (`cargo bench -p windtunnel --bench stacks own` calls this).
# Usage: scripts/stacks-own.sh build NAME
#        scripts/stacks-own.sh run NAME WINDTUNNEL PATH     one line of JSON with goodput_bps
# NAME: lwip (lwiperf, of Debian's sources, against Debian's iperf), smoltcp (examples/benchmark of its package),
#       gvisor (iperf3 in its sandbox, runsc, of the same version as the adapter),
#       quic (the examples of quinn's package, around the same version of its protocol machine)
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
        gvisor)
            command -v go >/dev/null || lacks gvisor "Go, with a way to its module proxy"
            command -v iperf3 >/dev/null || lacks gvisor iperf3
            version=$(sed -n 's/^require gvisor.dev.gvisor //p' stacks/gvisor/go.mod)
            mkdir -p "$place/gvisor-module"
            cd "$place/gvisor-module"
            # A sandbox of this age runs only as a compiler of its age makes it.
            export GOTOOLCHAIN=go1.23.6 GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0
            [ -f go.mod ] || go mod init own 2>/dev/null
            go get "gvisor.dev/gvisor/runsc@$version" 2>/dev/null
            go build -o "$place/gvisor" gvisor.dev/gvisor/runsc
            ;;
        quic)
            version=$(grep -A 1 '^name = "quinn-proto"' stacks/quic/Cargo.lock | sed -n 's/^version = "\(.*\)"/\1/p')
            mkdir -p "$place/quic-module/src"
            cd "$place/quic-module"
            printf '[package]\nname = "own"\nedition = "2024"\n[dependencies]\nquinn = "0.11"\n[workspace]\n' > Cargo.toml
            : > src/lib.rs
            cargo update --quiet quinn-proto --precise "$version" 2>/dev/null || lacks quic "cargo, with a way to crates.io"
            manifest=$(cargo metadata --format-version 1 | grep -o '"manifest_path":"[^"]*/quinn-0[^"]*/Cargo.toml"' | cut -d'"' -f4 | head -n 1)
            mkdir -p "$place/quic-package"
            cp -r "$(dirname "$manifest")"/. "$place/quic-package"
            cd "$place/quic-package"
            printf '\n[workspace]\n' >> Cargo.toml
            cargo update --quiet quinn-proto --precise "$version"
            cargo build --release --quiet --example client --example server --target-dir "$place/build"
            cp "$place/build/release/examples/client" "$place/quic-client"
            cp "$place/build/release/examples/server" "$place/quic-server"
            ;;
        *) echo "stacks-own: there is no bench of $1's own" >&2; exit 2 ;;
    esac
}

# What runsc(8) takes: iperf3 on this machine's own files, in the network namespace that its stack gets.
bundle() { # folder, seconds
    cat > "$1/config.json" <<END
{"ociVersion": "1.0.0",
 "process": {"user": {"uid": 0, "gid": 0}, "cwd": "/", "env": ["PATH=/usr/bin:/bin"],
             "args": ["iperf3", "-c", "198.19.0.1", "-R", "-t", "$2", "-J"]},
 "root": {"path": "/", "readonly": true},
 "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}, {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"}],
 "linux": {"namespaces": [{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"},
                          {"type": "network", "path": "/run/netns/own"}]}}
END
}

listens() { # udp or tcp, port: in the server
    tries=0
    until ip netns exec server ss -"$(echo "$1" | cut -c1)"lnH "sport = :$2" | grep -q .; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { echo "stacks-own: nobody listens at $1 port $2" >&2; exit 5; }
        sleep 0.05
    done
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
        gvisor)
            # The sandbox takes an Ethernet device with its addresses and routes.
            ip netns add own
            ip link add wts0 type veth peer name eth0 netns own
            ip link set wts0 up
            ip -n own link set lo up
            ip -n own address add 198.18.0.2/30 dev eth0
            ip -n own link set eth0 up
            ip -n own route add default via 198.18.0.1 onlink dev eth0
            ip route add 198.18.0.2 dev wts0
            forward
            ip netns exec server iperf3 -s -1 > /dev/null &
            listens tcp 5201
            bundle "$folder" 10
            "$place/gvisor" --root "$folder" --ignore-cgroups --platform=systrap --network=sandbox \
                run --bundle "$folder" own$$ > "$out"
            awk '/"sum_received"/ { last = 1 } last && /bits_per_second/ { gsub(/[^0-9.]/, ""); printf "{\"goodput_bps\":%.0f}\n", $0; exit }' "$out"
            ;;
        quic)
            mkdir "$folder/www"
            head -c 200000000 /dev/urandom > "$folder/www/file"
            # Both take the certificate that the server makes.
            export XDG_DATA_HOME="$folder"
            ip netns exec server "$place/quic-server" --listen 0.0.0.0:4433 "$folder/www" &
            own=$!
            listens udp 4433
            "$place/quic-client" --host localhost --bind 0.0.0.0:0 https://198.19.0.1:4433/file 2> "$out" > /dev/null
            kill $own
            sed -n 's/.* - \([0-9.]*\) KiB.s$/\1/p' "$out" | awk '{ printf "{\"goodput_bps\":%.0f}\n", $1 * 8192 }'
            ;;
    esac
}

case ${1:-} in
    build) build "$2" ;;
    run)
        folder=$(mktemp -d)
        out=$folder/out
        export out folder
        trap 'rm -rf "$folder"' EXIT
        "$3" lab run "$4" --cc cubic -- "$PWD/scripts/stacks-own.sh" inside "$2"
        ;;
    inside) inside "$2" ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
