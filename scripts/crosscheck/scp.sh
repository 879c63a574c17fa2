#!/bin/sh
# How long OpenSSH's scp takes for 1 MB over the path freebsd-scp, seed by seed and congestion control by congestion control.
# Needs root, sshd and scp. Usage: scripts/crosscheck/scp.sh [BINARY [SEEDS]]
set -eu
export BINARY="${1:-$(dirname "$0")/../../target/release/windtunnel}"
BINARY=$(realpath "$BINARY")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
umask 077
ssh-keygen -q -t ed25519 -N '' -f host
ssh-keygen -q -t ed25519 -N '' -f user
cp user.pub keys
head -c 1000000 /dev/urandom > file
printf '%s\n' 'Port 2222' "HostKey $place/host" "AuthorizedKeysFile $place/keys" 'StrictModes no' 'UsePAM no' 'PidFile none' \
    'PermitRootLogin yes' 'Subsystem sftp internal-sftp' > sshd.conf
sshd=$(PATH=$PATH:/usr/sbin command -v sshd)
for seed in $(seq "${2:-5}"); do
    for cc in reno cubic chd@freebsd-hz100 chd@freebsd-hz1000; do
        LABEL="seed $seed, $cc" timeout 300 "$BINARY" lab run freebsd-scp --seed "$seed" --cc "$cc" \
            --server "mkdir -p /run/sshd; exec $sshd -D -q -f $place/sshd.conf" -- sh -c '
            until ssh-keyscan -p 2222 server 2>/dev/null | grep -q ssh; do :; done
            begin=$(date +%s%N)
            scp -q -F none -P 2222 -i user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null file "server:$PWD/got"
            end=$(date +%s%N)
            cmp file got
            echo "$LABEL: $(( (end - begin) / 1000000 )) ms"'
    done
done
