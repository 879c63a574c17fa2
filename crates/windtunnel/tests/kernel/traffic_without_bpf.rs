//! `windtunnel traffic` by routes and by slots, with nginx in the lab: no BPF, and nothing of it stays.

use crate::common::nginx::shell;
use crate::common::{binary, ran, windtunnel};
use std::path::Path;
use wt_testing::require;

/// Clients of 16 networks; the state of the server's network in a file; and the start of an experiment.
const HEAD: &str = r#"
command -v nft >/dev/null || { echo "nft isn't installed" >&2; exit 77; }
ip route add local 11.0.0.0/8 dev lo
server() { ip netns exec server "$@"; }
state() { server nft list ruleset; server ip rule; server ip -6 rule; server ip route show table all; server ip -6 route show table all
    server cat /proc/sys/net/ipv4/tcp_fwmark_accept; }
begin() { # waits until connections are assigned
    rm -f stream; : > stream # or else the last one's may be read, until the shell has opened it anew
    ip netns exec server "$WT" traffic start --port 8080 --no-ramp --age 5s --beside-programs --json-stream "$@" > stream 2> said & traffic=$!
    while ! grep -q '"event":"epoch"' stream; do kill -0 $traffic 2>/dev/null || { cat said stream >&2; exit 5; }; done
}
as_before() { # within 10 s, which a loaded machine may take; the loop looks all the while
    until=$(($(date +%s) + 10))
    while state > now; ! diff before now > differs; do [ $(date +%s) -lt $until ] || { cat differs >&2; exit 6; }; done
}
state > before
mkfifo held
fetch() { # transfers from the addresses in a file, $1 of them, of which none can end before let_go
    xargs -P $1 -I{} curl -s --interface {} -o held -w '%{http_code} %{size_download}\n' http://server:8080/1m.bin < clients > fetched & all=$!
    while [ "$(server ss -Htn state established sport = :8080 | wc -l)" -lt $1 ]; do kill -0 $all || exit 7; done
}
let_go() {
    exec 9<> held; cat <&9 > /dev/null & reader=$!
    wait $all; kill $reader; exec 9>&-
}
"#;

#[test]
fn each_client_network_has_its_arm_by_marks_and_routes_and_every_connection_is_accounted_for() {
    let script = r#"
begin --backend routes --epoch 1h --levels cc=cubic,reno --private
for n in $(seq 40); do echo 11.0.$n.$((n + 1)); done > clients
fetch 40
server ss -Htin state established sport = :8080 > sockets
let_go
[ "$(grep -c '^200 1000000$' fetched)" = 40 ] || { cat fetched >&2; exit 8; }
server nft list ruleset > ruleset
kill -INT $traffic; wait $traffic
tail -1 stream > report
as_before
python3 - <<'P'
import json
report, sockets = json.load(open("report")), open("sockets").read()
arms = {arm["name"]: arm for arm in report["arms"]}
assert report["backend"] == "routes", report["backend"]
reno, cubic = sockets.count(" reno "), sockets.count(" cubic ")
assert (arms["cc=reno"]["assigned"], arms["cc=cubic"]["assigned"]) == (reno, cubic) and reno + cubic == 40, (arms, reno, cubic)
assert 5 <= reno <= 35, reno
assert all(arm["recorded"] == arm["assigned"] and arm["not_compliant"] == 0 for arm in arms.values()), arms
accounting = next(check for check in report["self_checks"] if check["name"] == "accounting")
assert accounting["ok"], accounting
assert "flags owner" in open("ruleset").read()
P
"#;
    let ran = shell(&format!("{HEAD}{script}"));
    require!("nft", if ran.code == 77 { Err(&ran.err) } else { Ok(()) });
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
}

#[test]
fn a_connection_that_the_server_has_closed_and_its_client_still_holds_counts_once_and_is_not_waited_for() {
    let script = r#"
cat > keep.py <<'P' # until the pipe's end
import socket, sys
held = [socket.create_connection(("server", 8080), source_address=(f"11.0.{n}.1", 0)) for n in range(30)]
for one in held: one.sendall(b"GET /short.bin HTTP/1.0\r\n\r\n")
sys.stdin.read()
P
for way in "routes --unit connection" "slots --unit slot"; do
    begin --backend $way --epoch 1h --levels initcwnd=10,32 --private
    python3 keep.py < held & clients=$!
    exec 8> held
    while [ "$(server ss -Htan state fin-wait-2 sport = :8080 | wc -l)" -lt 30 ]; do kill -0 $clients || exit 5; done
    kill -INT $traffic; wait $traffic
    exec 8>&-; wait $clients
    tail -1 stream > report
    python3 - <<'P' || exit 6
import json
report = json.load(open("report"))
of = lambda name: sum(arm[name] for arm in report["arms"])
accounting = next(check for check in report["self_checks"] if check["name"] == "accounting")
assert accounting["ok"] and (of("assigned"), of("recorded"), of("open")) == (30, 30, 0), (accounting, report["arms"])
P
done
"#;
    let ran = shell(&format!("{HEAD}{script}"));
    require!("nft", if ran.code == 77 { Err(&ran.err) } else { Ok(()) });
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
}

#[test]
fn routes_that_went_with_a_link_are_made_anew_and_who_came_without_them_is_told_as_not_compliant() {
    let script = r#"
copy() { server ip route show table 1465188354; server ip -6 route show table 1465188354; } # of the second arm
get() { for n in $(seq $1); do curl -s -m 20 -o /dev/null --interface 11.0.$n.1 http://server:8080/short.bin || return 1; done; }
begin --backend routes --epoch 1h --unit connection --levels initcwnd=20,32 --private
copy > whole; grep -q 'initcwnd 32' whole || { cat whole >&2; exit 5; }
server ip route save > saved; server ip -6 route save > saved6
kill -STOP $traffic # so that it comes too late for sure
server ip link set wt0 down; server ip link set wt0 up
server ip route restore < saved 2> /dev/null; server ip -6 route restore < saved6 2> /dev/null # some the kernel has made
[ -z "$(copy | grep default)" ] || { copy >&2; exit 6; }
get 4 || exit 7
kill -CONT $traffic
until=$(($(date +%s) + 10))
while copy > now; ! diff whole now > differs; do [ $(date +%s) -lt $until ] || { cat differs >&2; exit 8; }; done
get 8 || exit 9
kill -INT $traffic; wait $traffic
tail -1 stream > report
python3 - <<'P'
import json
arms = json.load(open("report"))["arms"]
of = lambda name: sum(arm[name] for arm in arms)
assert of("recorded") == of("assigned") == 12 and 4 <= of("not_compliant") < 12, arms
P
"#;
    let ran = shell(&format!("{HEAD}{script}"));
    require!("nft", if ran.code == 77 { Err(&ran.err) } else { Ok(()) });
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
}

#[test]
fn a_kill_leaves_no_table_rule_route_or_setting_and_breaks_no_transfer() {
    let script = r#"
for turn in 1 2 3; do
    begin --backend routes --epoch 1s --unit connection --levels initcwnd=10,32 --private
    server ip rule | grep -q 'fwmark' || exit 4
    for n in $(seq 8); do echo 11.0.0.$n; done > clients
    fetch 8
    kill -9 $traffic; as_before
    let_go
    [ "$(grep -c '^200 1000000$' fetched)" = 8 ] || { cat fetched >&2; exit 8; }
done
"#;
    let ran = shell(&format!("{HEAD}{script}"));
    require!("nft", if ran.code == 77 { Err(&ran.err) } else { Ok(()) });
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
}

#[test]
fn no_rule_of_an_experiment_is_in_the_history_of_the_users_nft_however_it_ends() {
    let script = r#"
history=$HOME/.nft.history
printf '_HiStOrY_V2_\nlist\\040ruleset\n' > $history; cp $history was
for end in INT KILL; do
    begin --backend routes --epoch 1h --levels initcwnd=10,32 --private
    kill -$end $traffic; wait $traffic; as_before # nft writes before its table goes
    cmp $history was || { cat $history >&2; exit 4; }
done
"#;
    let ran = shell(&format!("{HEAD}{script}"));
    require!("nft", if ran.code == 77 { Err(&ran.err) } else { Ok(()) });
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
}

#[test]
fn a_server_that_began_before_the_hosts_congestion_control_changed_takes_part_and_one_that_sets_its_own_does_not() {
    let script = r#"
cat > serve.py <<'P' # with a congestion control of its own
import socket, sys
listener, held = socket.socket(), []
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
listener.bind(("", 8081)); listener.listen(1000)
while True: held.append(listener.accept())
P
usual=$(server cat /proc/sys/net/ipv4/tcp_congestion_control); other=reno
[ "$usual" != reno ] || other=cubic
server sh -c "echo $other > /proc/sys/net/ipv4/tcp_congestion_control" || exit 4
dry() { server "$WT" traffic start --levels cc=$other,$usual --dry-run --private "$@" > said 2>&1; code=$?; tr '\n' ' ' < said | tr -s ' ' > line; }
start() { begin --epoch 1h --levels cc=$other,$usual --private "$@"; kill -INT $traffic; wait $traffic; }
# Nobody is there who shows it.
dry --port 8080 --backend routes; [ $code = 2 ] && grep -q 'may set its own congestion control: it listens with' line || { cat said >&2; exit 5; }
(while :; do curl -s -o /dev/null http://server:8080/1m.bin; done) & clients=$!
start --backend routes --unit connection; start --backend slots --unit slot
dry --port 8080 --backend routes; kill $clients
[ $code = 0 ] || { cat said >&2; exit 6; }
server python3 serve.py $usual & own=$!
until server ss -Htln sport = :8081 | grep -q 8081; do kill -0 $own || exit 7; done
(while :; do curl -s -m 0.3 -o /dev/null http://server:8081/; done) & clients=$!
dry --port 8081 --backend routes; kill $clients $own
[ $code = 2 ] && grep -q "on port 8081 sets its own congestion control, $usual" line || { cat said >&2; exit 8; }
"#;
    let ran = shell(&format!("{HEAD}{script}"));
    require!("nft", if ran.code == 77 { Err(&ran.err) } else { Ok(()) });
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
}

#[test]
fn a_slot_gives_the_whole_host_a_setting_and_a_kill_amid_it_takes_it_back() {
    let script = r#"
begin --backend slots --unit slot --epoch 1s --levels initcwnd=10,32 --private
while ! server ip route | grep -q 'initcwnd 32'; do kill -0 $traffic || exit 4; done
kill -9 $traffic; as_before
begin --backend slots --unit slot --epoch 1s --levels initcwnd=10,32 --private
while ! server ip route | grep -q 'initcwnd 32'; do curl -s -o /dev/null http://server:8080/short.bin; done
kill -INT $traffic; wait $traffic
as_before
tail -1 stream | grep -q '"backend":"slots"' || { tail -1 stream >&2; exit 8; }
server "$WT" traffic start --port 8080 --backend slots --levels initcwnd=10,32 2> refused; [ $? = 2 ] || exit 9
grep -q -- '--unit slot' refused || { cat refused >&2; exit 10; }
"#;
    let ran = shell(&format!("{HEAD}{script}"));
    require!("nft", if ran.code == 77 { Err(&ran.err) } else { Ok(()) });
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
}

#[test]
fn a_slot_whose_guards_are_killed_with_it_is_told_by_status_and_put_back_by_stop_or_by_the_next_experiment() {
    let script = r#"
for way in stop begin; do
    begin --backend slots --unit slot --epoch 1h --levels initcwnd=32,20 --private
    while ! server ip route | grep -q 'initcwnd'; do kill -0 $traffic || exit 4; done
    guards=$(for p in /proc/[0-9]*; do
        tr '\0' ' ' < $p/cmdline 2>/dev/null | grep -q "/proc/self/exe settings guard" && [ "$(readlink $p/ns/net)" = "$(server readlink /proc/self/ns/net)" ] && echo ${p#/proc/}
    done)
    [ "$(echo "$guards" | wc -w)" = 2 ] || { echo "guards: $guards" >&2; exit 5; }
    kill -STOP $traffic; kill -9 $guards $traffic; wait $traffic
    for guard in $guards; do # they watch as long as they have files open
        while [ -n "$(ls /proc/$guard/fd 2>/dev/null)" ]; do :; done
    done
    server ip route | grep -q 'initcwnd' || { echo "nothing was left: this shows nothing" >&2; exit 6; }
    server "$WT" traffic status > said; tr '\n' ' ' < said | grep -q 'killed with its guards' || { cat said >&2; exit 7; }
    if [ $way = stop ]; then
        server "$WT" traffic stop | grep -q 'Put back' || exit 8
    else
        begin --backend routes --levels initcwnd=10,20 --private; kill -INT $traffic; wait $traffic
    fi
    as_before
    server "$WT" traffic status | grep -q 'guards' && exit 9
done
true
"#;
    let ran = shell(&format!("{HEAD}{script}"));
    require!("nft", if ran.code == 77 { Err(&ran.err) } else { Ok(()) });
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
}

#[test]
fn what_the_guide_types_goes_from_nothing_to_applied_with_nginx_in_the_lab() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/traffic.md");
    let text = std::fs::read_to_string(page).unwrap();
    let (_, typed) = text.split_once("```sh\n").unwrap();
    let (typed, _) = typed.split_once("```").unwrap();
    let home = tempfile::tempdir().unwrap();
    let program = binary().parent().unwrap().display().to_string();
    let path = format!("{program}:{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap());
    let has = |name: &str| std::env::split_paths(&path).any(|folder| folder.join(name).exists());
    require!("nginx and nft", if has("nginx") && has("nft") { Ok(()) } else { Err("not installed") });
    let mut command = windtunnel(home.path());
    command.env("PATH", &path).env("WINDTUNNEL_ROOT", home.path().join("root")).current_dir(home.path());
    command.args(["lab", "run", "transatlantic", "--", "timeout", "120", "sh", "-c", typed]);
    let ran = ran(command.output().unwrap());
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let said = [
        "It would touch new connections to port 8080 from public and private addresses.",
        "Connections with initcwnd=40 are faster beside initcwnd=10: goodput +",
        "windtunnel settings confirm",
        "Change 1 stays.",
        "The gain of ",
        "No experiment on connections is under way.",
    ];
    let mut rest = ran.out.as_str();
    for one in said {
        let at = rest.find(one);
        assert!(at.is_some(), "{one}: {}{}", ran.out, ran.err);
        rest = &rest[at.unwrap_or(0)..];
    }
    assert!(!ran.out.contains("Check units"), "{}", ran.out);
}
