#!/bin/sh
# The Ansible collection with Debian's ansible-core, in a network namespace of its own and on files of its own, so that nothing of
# this machine is changed. Usage: scripts/ansible.sh PROGRAM
set -eu
cd "$(dirname "$0")/.."
program=$(realpath "$1")
command -v ansible-playbook >/dev/null || { echo "ansible: ansible-core is missing: sudo apt-get install ansible-core" >&2; exit 3; }
place=$(mktemp -d "${TMPDIR:-/tmp}/windtunnel-ansible.XXXXXX")
trap 'rm -rf "$place"' EXIT
mkdir -p "$place/collections/ansible_collections" "$place/root/etc/sysctl.d" "$place/home"
cp -r packaging/ansible/windtunnel "$place/collections/ansible_collections/"
tests=$PWD/packaging/ansible/tests
export HOME="$place/home" ANSIBLE_HOME="$place/home/ansible" ANSIBLE_COLLECTIONS_PATH="$place/collections" ANSIBLE_LOCALHOST_WARNING=False \
    ANSIBLE_LOCAL_TEMP="$place/home/local" ANSIBLE_REMOTE_TEMP="$place/home/remote" ANSIBLE_NOCOLOR=1 ANSIBLE_DEPRECATION_WARNINGS=False \
    ANSIBLE_PYTHON_INTERPRETER=/usr/bin/python3 ANSIBLE_INVENTORY_UNPARSED_WARNING=False LC_ALL=C.UTF-8
export WINDTUNNEL_STATE_DIR="$place/state" WINDTUNNEL_ROOT="$place/root"
log=$place/log
# What the modules say of themselves can be read.
ansible-doc -t module windtunnel.tcp.settings windtunnel.tcp.verdict >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
"$program" tune --lab lan --levels cc=reno --workload bulk:size=64KiB --budget "12 trials" --no-model --journal "$place/journal.sqlite3" --quiet --json >"$log" 2>&1 || [ $? = 1 ] || { cat "$log" >&2; exit 1; }
# All that is left of it ends with the first process there.
unshare -Urnmpf --mount-proc --kill-child sh -c 'PATH=$PATH:/usr/sbin:/sbin; ip link set lo up; exec "$@"' sh \
    ansible-playbook -c local -i localhost, "$tests/settings.yml" -e "program=$program" -e "place=$place" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
grep 'ok=' "$log"
# The role that installs, as far as a check goes; in sudo's place is what notes that it was asked.
echo "no package" > "$place/windtunnel_0-test_all.deb"
printf '#!/bin/sh\necho "as root" >> "%s/sudo.log"\nwhile [ "$1" != /bin/sh ]; do shift; done\nexec "$@"\n' "$place" > "$place/sudo"
chmod +x "$place/sudo"
ANSIBLE_BECOME_ALLOW_SAME_USER=true ansible-playbook --check -c local -i localhost, "$tests/install.yml" -e "place=$place" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
grep 'ok=' "$log"

if [ "$(id -u)" != 0 ]; then
    echo "ansible: left out without root: a play that cuts its own connection"
    exit 0
fi
ssh-keygen -q -t ed25519 -N '' -f "$place/host"
ssh-keygen -q -t ed25519 -N '' -f "$place/user"
cp "$place/user.pub" "$place/authorized"
cat > "$place/sshd.conf" <<END
HostKey $place/host
AuthorizedKeysFile $place/authorized
PermitRootLogin prohibit-password
PidFile none
UsePAM no
StrictModes no
Subsystem sftp internal-sftp
END
export PLACE="$place" PROGRAM="$program" TESTS="$tests"
unshare -nmpf --mount-proc --kill-child sh -eu -c '
    PATH=$PATH:/usr/sbin:/sbin
    mount --make-rprivate /
    mount -t tmpfs tmpfs /run
    mkdir -p /run/sshd
    # Here, a router, and the host that is managed.
    ip netns add router
    ip netns add host
    ip link set lo up
    ip -n host link set lo up
    ip link add near netns router type veth peer name here
    ip link add far netns router type veth peer name eth0 netns host
    ip addr add 10.9.1.1/24 dev here
    ip link set here up
    ip -n router addr add 10.9.1.2/24 dev near
    ip -n router addr add 10.9.2.2/24 dev far
    ip -n router link set near up
    ip -n router link set far up
    ip netns exec router sysctl -qw net.ipv4.ip_forward=1
    ip -n host addr add 10.9.2.1/24 dev eth0
    ip -n host link set eth0 up
    ip -n host route add default via 10.9.2.2
    ip route add 10.9.2.0/24 via 10.9.1.2
    ip netns exec host /usr/sbin/sshd -D -f "$PLACE/sshd.conf" -E "$PLACE/sshd.log" &
    exec ansible-playbook -i 10.9.2.1, -u root "$TESTS/lockout.yml" -e "program=$PROGRAM" -e "place=$PLACE" --private-key "$PLACE/user" \
        --ssh-common-args "-F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ControlMaster=no -o ConnectTimeout=3 -o ServerAliveInterval=1 -o ServerAliveCountMax=3"
' >"$log" 2>&1 || { cat "$log" "$place/sshd.log" >&2; exit 1; }
grep 'ok=' "$log"
