#!/bin/sh
# Builds a Linux that runs as a program and in virtual time: User-Mode Linux with time travel, from Debian's own source. With
# it `windtunnel lab run --virtual --kernel DIR/linux` and `windtunnel calibrate --virtual --kernel DIR/linux` run the lab on a
# real kernel whose clock stands still while anything computes. About ten minutes on two idle cores and 2 GB of disk.
#
# Nothing is installed and nothing outside of DIR is written. Needs x86-64, gcc, make, flex, bison, bc, xz, and apt-get with
# the package's index (apt-get update).
# Usage: scripts/build-uml.sh [DIR [VERSION]]   default: target/uml 6.12
set -eu
dir=${1:-$(dirname "$0")/../target/uml}
version=${2:-6.12}
jobs=$(nproc)

[ "$(uname -m)" = x86_64 ] || { echo "build-uml: User-Mode Linux exists for x86 only, and this is $(uname -m)" >&2; exit 3; }
missing=
for tool in gcc make flex bison bc xz:xz-utils dpkg-deb:dpkg apt-get:apt; do
    command -v "${tool%%:*}" >/dev/null 2>&1 || missing="$missing ${tool##*:}"
done
[ -z "$missing" ] || { echo "build-uml: missing:$missing; install them with: sudo apt-get install$missing" >&2; exit 3; }

mkdir -p "$dir"
cd "$dir"
archive=package/usr/src/linux-source-$version.tar.xz
if [ ! -e "$archive" ]; then
    apt-get download -qq "linux-source-$version" >&2
    dpkg-deb -x linux-source-"${version}"_*.deb package
fi
source=linux-source-$version
if [ ! -e "$source/Makefile" ]; then
    # Without the largest of what isn't compiled.
    tar -xJf "$archive" --exclude '*/arch/*/boot/dts' --exclude '*/drivers/gpu/drm/amd/include' \
        --exclude '*/Documentation/devicetree' --exclude '*/tools/testing'
fi
cd "$source"

# Timers of the kernel tick as Debian's do; User-Mode Linux says 100 and asks nobody.
sed -i '/^config HZ$/,/^$/s/default 100$/default 250/' arch/um/Kconfig

cat > ../windtunnel.config <<'CONFIG'
CONFIG_64BIT=y
CONFIG_UML_TIME_TRAVEL_SUPPORT=y
CONFIG_HIGH_RES_TIMERS=y
CONFIG_NO_HZ_IDLE=y
CONFIG_HOSTFS=y
CONFIG_STDERR_CONSOLE=y
CONFIG_NULL_CHAN=y
CONFIG_FD_CHAN=y
CONFIG_TTY=y
CONFIG_UNIX98_PTYS=y
CONFIG_EXPERT=y
CONFIG_PRINTK=y
CONFIG_BUG=y
CONFIG_MULTIUSER=y
CONFIG_FUTEX=y
CONFIG_EPOLL=y
CONFIG_SIGNALFD=y
CONFIG_TIMERFD=y
CONFIG_EVENTFD=y
CONFIG_POSIX_TIMERS=y
CONFIG_SHMEM=y
CONFIG_AIO=y
CONFIG_ADVISE_SYSCALLS=y
CONFIG_MEMBARRIER=y
CONFIG_FILE_LOCKING=y
CONFIG_INOTIFY_USER=y
CONFIG_FHANDLE=y
CONFIG_SYSVIPC=y
CONFIG_POSIX_MQUEUE=y
CONFIG_PROC_FS=y
CONFIG_PROC_SYSCTL=y
CONFIG_SYSFS=y
CONFIG_TMPFS=y
CONFIG_DEVTMPFS=y
CONFIG_BINFMT_ELF=y
CONFIG_BINFMT_SCRIPT=y
CONFIG_NAMESPACES=y
CONFIG_UTS_NS=y
CONFIG_IPC_NS=y
CONFIG_USER_NS=y
CONFIG_PID_NS=y
CONFIG_NET_NS=y
CONFIG_NET=y
CONFIG_PACKET=y
CONFIG_UNIX=y
CONFIG_INET=y
CONFIG_IP_ADVANCED_ROUTER=y
CONFIG_IP_MULTIPLE_TABLES=y
CONFIG_IPV6=y
CONFIG_SYN_COOKIES=y
CONFIG_INET_DIAG=y
CONFIG_TCP_CONG_ADVANCED=y
CONFIG_TCP_CONG_CUBIC=y
CONFIG_TCP_CONG_BBR=y
CONFIG_DEFAULT_CUBIC=y
CONFIG_NETDEVICES=y
CONFIG_NET_CORE=y
CONFIG_TUN=y
CONFIG_VETH=y
CONFIG_DUMMY=y
CONFIG_NET_SCHED=y
CONFIG_NET_SCH_FQ=y
CONFIG
KCONFIG_ALLCONFIG=../windtunnel.config make -s ARCH=um allnoconfig
for wanted in UML_TIME_TRAVEL_SUPPORT HOSTFS HIGH_RES_TIMERS NET_NS USER_NS TUN VETH PACKET TCP_CONG_CUBIC TCP_CONG_BBR; do
    grep -q "^CONFIG_$wanted=y" .config || { echo "build-uml: CONFIG_$wanted can't be had in $version" >&2; exit 1; }
done
grep -q '^CONFIG_HZ=250$' .config || { echo "build-uml: CONFIG_HZ isn't 250" >&2; exit 1; }
nice -n 19 make -s -j"$jobs" ARCH=um linux >&2
cd ..
cp "$source/linux" linux
echo "$PWD/linux: Linux $(./linux --version)"
