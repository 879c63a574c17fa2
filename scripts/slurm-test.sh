#!/bin/bash
# A sweep as an array of Debian's Slurm: in a fresh Debian, on a node with two processors, in a network of its own. The shards' union is
# what one process answers, a shard that was killed is run again, and the array takes little longer than the same shards without Slurm.
# Needs root and mmdebstrap. Usage: scripts/slurm-test.sh PROGRAM [SHARDS [SECONDS]]: so many shards of so many seconds each.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "$1")
shards=${2:-8}
seconds=${3:-60}
work=$PWD/target/slurm
say() { printf 'slurm-test: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
[ "$(id -u)" = 0 ] || fail "a fresh Debian is made and entered by root"
command -v mmdebstrap >/dev/null || fail "mmdebstrap is missing: apt-get install mmdebstrap"
mkdir -p "$work"
if [ ! -s "$work/slurm.tar" ]; then
    say "a minimal Debian with slurm-wlm"
    # Where this host has none, mmdebstrap knows where its distribution is.
    sources=$(find /etc/apt/sources.list /etc/apt/sources.list.d -name '*.sources' -o -path /etc/apt/sources.list -size +0 2>/dev/null | sort | head -n 1) || true
    rm -f "$work/slurm.tar.part"
    mmdebstrap --variant=minbase --quiet --format=tar --include=slurm-wlm,munge,iproute2,time bookworm "$work/slurm.tar.part" ${sources:+"$sources"}
    mv "$work/slurm.tar.part" "$work/slurm.tar"
fi
root=$(mktemp -d "${TMPDIR:-/var/tmp}/windtunnel-slurm.XXXXXX")
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
tar -C "$root" -xf "$work/slurm.tar" --exclude='./dev/*'
install -D -m 755 "$program" "$root/usr/local/bin/windtunnel"
mkdir -p "$root/etc/slurm" "$root/var/spool/slurmd" "$root/var/lib/slurmctld" "$root/work"
# Names aren't looked up where there is no address but 127.0.0.1.
printf '127.0.0.1 localhost\n192.0.2.1 node\n' >"$root/etc/hosts"
printf 'hosts: files\npasswd: files\ngroup: files\n' >"$root/etc/nsswitch.conf"
cat >"$root/etc/slurm/slurm.conf" <<END
ClusterName=test
SlurmctldHost=node
NodeName=node CPUs=2 State=UNKNOWN
PartitionName=all Nodes=node Default=YES MaxTime=INFINITE State=UP
SlurmUser=root
StateSaveLocation=/var/lib/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/work/slurmctld.log
SlurmdLogFile=/work/slurmd.log
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/builtin
# A slot that is free gets the next task at once, not at the next look around.
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
END
# Version 1 isn't looked for where nobody asks for it.
printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n' >"$root/etc/slurm/cgroup.conf"
# As docs/guide/model.md has it.
cat >"$root/work/array.sh" <<'END'
#!/bin/sh
#SBATCH --cpus-per-task=1
#SBATCH --output=/work/task-%a.log
exec windtunnel predict --table /work/paths.csv --set cc=reno --size 300kB --out /work/slurm/part-$SLURM_ARRAY_TASK_ID.csv
END
cat >"$root/work/inside.sh" <<'END'
set -eu
shards=$1 seconds=$2
ip link set lo up
ip address add 192.0.2.1/32 dev lo
hostname node
mkdir -p /run/munge /work/slurm /work/alone
chown munge /run/munge /var/lib/munge /var/log/munge
[ -s /etc/munge/munge.key ] || setpriv --reuid=munge --regid=munge --clear-groups mungekey --create
setpriv --reuid=munge --regid=munge --clear-groups munged --force 2>/dev/null
slurmctld
slurmd
table() {
    awk -v rows="$1" 'BEGIN { srand(1); print "site,link_rate,rtt,loss"
        for (n = 0; n < rows; n++) printf "s%d,%dkbit,%dms,%.3f%%\n", n, 2000 + int(rand() * 60000), 5 + int(rand() * 150), rand() }'
}
on() { threads=$1; shift; windtunnel predict --table /work/paths.csv --set cc=reno --size 300kB --threads "$threads" "$@"; }
# `sbatch --wait` looks every half minute in the end.
ended() { while [ "$(squeue -h -j "$1" 2>/dev/null)" ]; do sleep 0.5; done; }
# So many rows that a shard takes as long as was asked for, and the program's start doesn't count.
table 400 >/work/paths.csv
began=$(date +%s%N)
on 1 --out /work/alone/trial.csv
table $((400 * shards * seconds * 1000 / (($(date +%s%N) - began) / 1000000))) >/work/paths.csv
echo "$(($(wc -l </work/paths.csv) - 1)) rows in $shards shards"
for attempt in $(seq 100); do sinfo -h -t idle -o %n | grep -q node && break; sleep 0.2; done
# Ideal: as many at once as there are slots, without anybody between them.
began=$(date +%s%N)
seq "$shards" | xargs -P 2 -I N sh -c 'windtunnel predict --table /work/paths.csv --set cc=reno --size 300kB --threads 1 --shard N/'"$shards"' --out /work/alone/part-N.csv'
alone=$((($(date +%s%N) - began) / 1000000))
echo "without Slurm, two at once: $alone ms"
began=$(date +%s%N)
ended "$(sbatch --parsable --array=1-"$shards" /work/array.sh)"
by_slurm=$((($(date +%s%N) - began) / 1000000))
echo "by Slurm: $by_slurm ms, $((alone * 1000 / by_slurm)) of 1000 of ideal"
echo $((alone * 1000 / by_slurm)) >/work/share
for part in $(seq "$shards"); do cmp /work/alone/part-$part.csv /work/slurm/part-$part.csv; done
# One that is killed leaves nothing that looks like an answer, and is run again.
rm /work/slurm/part-2.csv
job=$(sbatch --parsable --array=1-"$shards" --export=ALL /work/array.sh)
for attempt in $(seq 200); do grep -q Shard /work/task-2.log 2>/dev/null && [ "$(squeue -h -j "${job}_2" -t R -o %i 2>/dev/null)" ] && break; sleep 0.1; done
scancel --signal=KILL "${job}_2"
scancel "$job"
ended "$job"
[ ! -e /work/slurm/part-2.csv ] || { echo "the shard that was killed left an answer"; exit 1; }
env SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_COUNT="$shards" SLURM_ARRAY_TASK_MIN=1 \
    windtunnel predict --table /work/paths.csv --set cc=reno --size 300kB --threads 1 --out /work/slurm/part-2.csv
{ head -n 1 /work/slurm/part-1.csv; for part in $(seq "$shards"); do tail -n +2 /work/slurm/part-$part.csv; done | sort; } >/work/union.csv
on 2 --out /work/whole.csv
{ head -n 1 /work/whole.csv; tail -n +2 /work/whole.csv | sort; } | cmp - /work/union.csv
echo "the shards' union is what one process answers"
END
unshare --mount --pid --fork --net --uts --kill-child --propagation private sh -ec '
    root=$1
    shift
    mount --bind "$root" "$root"
    cd "$root"
    mount -t proc proc proc
    mount -t sysfs sysfs sys
    mount -t tmpfs -o mode=755 tmpfs dev
    for node in null zero full random urandom tty; do touch dev/$node; mount --bind /dev/$node dev/$node; done
    mkdir -p dev/shm dev/pts
    mount -t tmpfs tmpfs run
    pivot_root . mnt
    umount -l /mnt
    export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
    cd /work
    exec sh inside.sh "$@"' inside "$root" "$shards" "$seconds" >&2 || { tail -n 20 "$root"/work/slurm*.log "$root"/work/task-*.log >&2; fail "it failed"; }
share=$(cat "$root/work/share")
[ "$share" -ge 950 ] || fail "$share of 1000 of ideal, wanted 950"
