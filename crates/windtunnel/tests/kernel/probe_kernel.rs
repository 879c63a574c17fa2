//! Path probing over real routers: five hosts with kernels of their own, and everything that can be wrong between them.
//!
//! `common/topology.sh` has the hosts and the variants.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common::five_hosts::{V4, V6, among_five, objects};
use serde_json::Value;

/// Checks a variant as root and as an ordinary user, with and without the right to ping, over both versions of IP.
fn variant(name: &str, pmtu: u16, kind: &str, check: impl Fn(&Value)) {
    let script = format!(
        "for to in {V4} {V6}; do at c $WT mtu --json $to || true; unprivileged $WT mtu --json $to || true; done
        at c sysctl -qw net.ipv4.ping_group_range='0 0'
        for to in {V4} {V6}; do unprivileged $WT mtu --json $to || true; done"
    );
    let ran = among_five(name, &script);
    let answers = objects(&ran);
    assert_eq!(answers.len(), 6, "{name}: {}{}", ran.out, ran.err);
    let mut backs = Vec::new();
    for (who, answer) in ["root", "user", "root 6", "user 6", "pinging user", "pinging user 6"].iter().zip(&answers) {
        // Who may not ask for echoes can't know that they are forbidden.
        let blind = name == "noecho" && who.starts_with("user");
        let kind = if blind { "clean" } else { kind };
        // What comes back is asked over raw sockets; where long packets get lost or MSS are lowered, it may stay open.
        if who.starts_with("root") && ["normal", "blackhole", "blackhole-all", "noecho", "ratelimit"].contains(&name) {
            let back = &answer["reverse_pmtu"];
            assert!(*back == 1400 || back.is_null(), "{name}, {who}: {answer:#}");
            // A target that gets no processor within 15 ms queues too little, and then it isn't known.
            let busy = answer["rtt_us"].as_f64().is_none_or(|us| us > 60e3);
            backs.push(*back == 1400 || busy);
        }
        // 32 and 64 where every answer is heard in time (search.rs of crates/probe); a busy machine hears some late, and asks again, or
        // counts losses with 80 more.
        let most = match (*who, name) {
            ("root" | "root 6", "normal") => 3 * 32 + 80,
            ("root" | "root 6", "blackhole") => 3 * 64,
            _ => 2000,
        };
        assert!(answer["packets"].as_u64().unwrap() <= most, "{name}, {who}: {answer:#}");
        assert_eq!((&answer["pmtu"], &answer["kind"]), (&pmtu.into(), &kind.into()), "{name}, {who}: {answer:#}");
        check(answer);
    }
    assert!(backs.is_empty() || backs.contains(&true), "{name}: what comes back isn't known over any version of IP");
}

fn hole_behind_second(answer: &Value) {
    let address = &answer["black_hole_hop"]["address"];
    assert_eq!(answer["black_hole_hop"]["ttl"], 2, "{answer:#}");
    assert!(address == "10.12.0.2" || address == "fd00:12::2", "{answer:#}");
}

#[test]
fn a_clean_path_of_real_routers() {
    variant("normal", 1400, "clean", |answer| assert_eq!(answer["black_hole_hop"], Value::Null, "{answer:#}"));
}

#[test]
fn a_router_that_keeps_silent() {
    variant("blackhole", 1400, "black-hole", hole_behind_second);
}

#[test]
fn a_silent_router_before_one_that_speaks() {
    variant("blackhole-first", 1400, "black-hole", |answer| {
        let hop = &answer["black_hole_hop"];
        assert!(hop["address"] == "10.1.0.1" || hop["address"] == "fd00:1::1", "{answer:#}");
        assert!(answer["hints"].as_array().unwrap().iter().any(|hint| hint["mtu"] == 1400), "{answer:#}");
    });
}

#[test]
fn a_path_of_552_bytes() {
    let script = format!(
        "at c $WT mtu --json {V4}; unprivileged $WT mtu --json {V4}
        at c sysctl -qw net.ipv4.ping_group_range='0 0'; unprivileged $WT mtu --json {V4}"
    );
    let answers = objects(&among_five("narrow", &script));
    assert_eq!(answers.len(), 3);
    for answer in answers {
        assert_eq!((&answer["pmtu"], &answer["kind"]), (&552.into(), &"clean".into()), "{answer:#}");
    }
}

#[test]
fn routers_that_all_keep_silent() {
    variant("blackhole-all", 1400, "black-hole", hole_behind_second);
}

#[test]
fn a_router_that_lets_less_pass_than_it_says() {
    variant("drop", 1300, "lying-router", hole_behind_second);
}

#[test]
fn long_packets_lost_both_ways() {
    variant("loss", 1400, "size-dependent-loss", |_| {});
}

#[test]
fn long_packets_lost_on_the_way_there() {
    variant("lossfwd", 1400, "size-dependent-loss", |_| {});
}

#[test]
fn a_target_that_forbids_echoes() {
    variant("noecho", 1400, "icmp-blocked", |_| {});
}

#[test]
fn a_router_that_clamps_the_mss() {
    variant("clamp", 1400, "clamped", |answer| {
        let clamp = &answer["mss_clamp"];
        let from = if answer["address"] == V4 { 1460 } else { 1440 };
        assert_eq!((&clamp["from"], &clamp["to"]), (&from.into(), &1200.into()), "{answer:#}");
        // Only raw sockets see what routers quote.
        assert!(clamp["hop"].is_null() || clamp["hop"]["ttl"] == 3, "{answer:#}");
    });
}

#[test]
fn routers_that_ration_what_they_say() {
    variant("ratelimit", 1400, "rate-limited", |_| {});
}

#[test]
fn a_router_that_has_spent_its_only_word_is_no_black_hole() {
    // Again and again within a second, whether the kernel has learnt the path MTU or not.
    let script = format!(
        "for to in {V4} {V6}; do for run in 1 2 3; do
            at c $WT mtu --json $to
            at c ip route flush cache; at c ip -6 route flush cache
            unprivileged $WT mtu --json $to
        done; done"
    );
    let ran = among_five("one-word", &script);
    let answers = objects(&ran);
    assert_eq!(answers.len(), 12, "{}{}", ran.out, ran.err);
    for answer in answers {
        assert_eq!((&answer["pmtu"], &answer["kind"]), (&1400.into(), &"rate-limited".into()), "{answer:#}");
        assert_eq!(answer["black_hole_hop"], Value::Null, "{answer:#}");
    }
}

#[test]
fn a_narrow_branch_behind_a_load_balancer_is_told_whichever_way_echoes_take() {
    // With 24 connections, all take one of two branches once in eight million runs.
    let script = format!(
        "for to in {V4} {V6}; do at c $WT mtu --flows 24 --json $to; unprivileged $WT mtu --flows 24 --json $to; done"
    );
    let ran = among_five("balanced", &script);
    let answers = objects(&ran);
    assert_eq!(answers.len(), 4, "{}{}", ran.out, ran.err);
    for answer in answers {
        assert_eq!(answer["kind"], "narrow-branch", "{answer:#}");
        let [sent, carried] = ["sent", "carried"].map(|name| answer["flows"][name].as_u64().unwrap());
        assert!(0 < carried && carried < sent && sent <= 24, "{answer:#}");
        let told = answer["findings"].as_array().unwrap().iter().any(|text| text.as_str().unwrap().contains("branch"));
        assert!(told, "{answer:#}");
    }
}

#[test]
fn a_router_that_clears_dont_fragment_is_told_by_mtu_and_trace_where_quotations_can_be_read() {
    let script = format!("at c $WT mtu --json {V4}; at c $WT trace -n --json {V4}; unprivileged $WT mtu --json {V4}");
    let ran = among_five("clear-df", &script);
    let answers = objects(&ran);
    let [mtu, trace, user] = &answers[..] else { panic!("{}{}", ran.out, ran.err) };
    assert_eq!((&mtu["pmtu"], &mtu["kind"]), (&1492.into(), &"df-cleared".into()), "{mtu:#}");
    assert_eq!((&mtu["df_cleared_hop"]["ttl"], &mtu["df_cleared_hop"]["address"]), (&2.into(), &"10.12.0.2".into()));
    let changed = |hop: usize| trace["hops"][hop]["changed"].to_string();
    assert!(!changed(0).contains("df cleared") && changed(1).contains("df cleared"), "{trace:#}");
    assert_eq!((&user["pmtu"], &user["df_cleared_hop"]), (&1492.into(), &Value::Null), "{user:#}");
}

#[test]
fn a_closed_port_tells_sizes_by_its_resets() {
    let script = format!(
        "for to in {V4}:81 [{V6}]:81; do at c $WT mtu --json $to; unprivileged $WT mtu --json $to || echo $? >&2; done"
    );
    let ran = among_five("closed", &script);
    let answers = objects(&ran);
    let told: Vec<&Value> = answers.iter().filter(|answer| !answer["pmtu"].is_null()).collect();
    assert_eq!(told.len(), 2, "{}{}", ran.out, ran.err);
    for answer in told {
        assert_eq!((&answer["pmtu"], &answer["kind"]), (&1400.into(), &"icmp-blocked".into()), "{answer:#}");
        assert_eq!(answer["method"], "tcp-refused", "{answer:#}");
    }
    // Who may not send such packets is told what answers, and who may.
    assert!(ran.err.contains("refuses TCP connections at port 81") && ran.err.contains("CAP_NET_RAW"), "{}", ran.err);
}

#[test]
fn a_target_that_answers_udp_alone() {
    let script = format!("at c $WT mtu --json {V4}; at c $WT mtu --json {V6}");
    let ran = among_five("udp-only", &script);
    for answer in objects(&ran) {
        assert_eq!((&answer["pmtu"], &answer["kind"]), (&1400.into(), &"icmp-blocked".into()), "{answer:#}");
        assert_eq!(answer["method"], "udp", "{answer:#}");
    }
}

#[test]
fn each_of_six_changes_is_told_with_the_hop_that_saw_it_first() {
    let script = format!("at c $WT trace -n --json {V4}; at c $WT trace -n --json {V6}");
    let ran = among_five("tamper", &script);
    let answers = objects(&ran);
    assert_eq!(answers.len(), 2, "{}{}", ran.out, ran.err);
    for answer in answers {
        let changed = |hop: usize| answer["hops"][hop]["changed"].as_array().unwrap().clone();
        assert!(changed(0).is_empty() && changed(1).is_empty(), "{answer:#}");
        let text = changed(2).iter().map(|change| change.as_str().unwrap().to_owned()).collect::<Vec<_>>().join("; ");
        for word in
            ["mss 14", "-> 1200", "sack", "timestamps", "window-scale 7 -> none", "fast-open", "ecn ECT(0) -> not-ECT"]
        {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(answer["packets"].as_u64().unwrap() <= 120, "{answer:#}");
    }
}

#[test]
fn traces_of_every_kind_find_all_hops() {
    for variant in ["normal", "noecho", "blackhole", "udp-only"] {
        let script =
            format!("for to in {V4} {V6}; do at c $WT trace -n --json $to; unprivileged $WT trace -n --json $to; done");
        let ran = among_five(variant, &script);
        let answers = objects(&ran);
        assert_eq!(answers.len(), 4, "{}{}", ran.out, ran.err);
        for answer in answers {
            let hops = answer["hops"].as_array().unwrap();
            assert_eq!((hops.len(), &answer["reached"]), (4, &true.into()), "{variant}: {answer:#}");
            let one = if answer["address"] == V4 { "10.1.0.1" } else { "fd00:1::1" };
            assert_eq!((&hops[0]["address"], &hops[0]["mtu"]), (&one.into(), &1492.into()), "{variant}: {answer:#}");
            let lost = hops.iter().any(|hop| hop["loss"] != 0.0);
            assert!(!lost, "{variant}: {answer:#}");
        }
    }
}
