//! `windtunnel overhead`, run as a person runs it.

use crate::common::{json, run};
use serde_json::Value;

/// The object of one call.
fn overhead(args: &[&str]) -> Value {
    json(&[&["overhead", "--json"], args].concat())
}

fn int(object: &Value, key: &str) -> u64 {
    object[key].as_u64().unwrap_or_else(|| panic!("{key} of {object}"))
}

fn real(object: &Value, key: &str) -> f64 {
    object[key].as_f64().unwrap_or_else(|| panic!("{key} of {object}"))
}

#[test]
fn adsl_with_pppoe_is_as_the_formula_says() {
    let answer = overhead(&["--mtu", "1444", "--encap", "pppoe-llc-bridged-fcs-atm"]);
    for (key, expected) in [
        ("schema_version", 1),
        ("mtu", 1444),
        ("payload_len", 1404),
        ("wire_len", 1643),
        ("cells", 31),
        ("best_mtu", 1444),
    ] {
        assert_eq!(int(&answer, key), expected, "{key}");
    }
    assert_eq!(real(&answer, "efficiency"), 1404.0 / 1643.0);
    assert_eq!(real(&answer, "overhead_ratio"), 239.0 / 1404.0);
}

#[test]
fn known_frames_come_out_to_the_byte() {
    for (args, wire_len) in [
        (&["--proto", "udp", "--payload", "64"][..], 130),
        (&["--proto", "udp", "--payload", "64", "--encap", "ethernet-vlan"], 134),
        (&["--proto", "udp", "--payload", "64", "--encap", "ethernet ether-vlan"], 134),
        (&["--proto", "udp", "--payload", "64", "--encap", "qinq"], 138),
        (&["--proto", "udp", "--payload", "64", "--encap", "ethernet+vlan+vlan"], 138),
        (&["--proto", "udp", "--payload", "64", "--ip", "6"], 150),
        (&["--proto", "udp", "--payload", "1"], 84),
        (&["--payload", "1460"], 1538),
        (&["--payload", "1461"], 1538 + 84),
        (&["--payload", "1460", "--tcp-options", "timestamps"], 1538 + 20 + 20 + 12 + 12 + 38),
        (&["--payload", "0", "--encap", "pppoe-llcsnap"], 2 * 53),
        (&["--mtu", "1420", "--encap", "wireguard+ip6+ethernet"], 1538),
        (&["--mtu", "9000", "--encap", "ethernet"], 9038),
    ] {
        assert_eq!(int(&overhead(args), "wire_len"), wire_len, "{args:?}");
    }
}

#[test]
fn a_full_ethernet_frame_has_the_overheads_that_are_known() {
    let udp = overhead(&["--proto", "udp", "--mtu", "1500"]);
    let tcp = overhead(&["--proto", "tcp", "--mtu", "1500"]);
    assert_eq!((int(&udp, "payload_len"), int(&tcp, "payload_len")), (1472, 1460));
    assert_eq!(format!("{:.4}", real(&udp, "overhead_ratio")), "0.0448");
    assert_eq!(format!("{:.4}", real(&tcp, "overhead_ratio")), "0.0534");
    assert_eq!(udp["cells"], Value::Null);
    let fast = overhead(&["--goodput", "8MiB/s"]);
    assert_eq!(int(&fast, "wanted_goodput_bps"), 8 * 8 * 1024 * 1024);
    assert_eq!(int(&fast, "needed_link_rate_bps"), (8 * 8 * 1024 * 1024 * 1538u64).div_ceil(1460));
    let limit = overhead(&["--link-rate", "8mbit", "--encap", "pppoe-llc-bridged-fcs-atm", "--mtu", "1492"]);
    assert_eq!(int(&limit, "goodput_bps"), 8_000_000 * 1452 / 1696);
}

#[test]
fn layers_add_up_and_packets_are_counted() {
    let answer = overhead(&["--payload", "100000", "--encap", "esp+pppoe-ptm", "--mtu", "1400", "--tcp-options", "12"]);
    let layers = answer["layers"].as_array().unwrap();
    let frame: i64 = layers.iter().map(|layer| layer["len"].as_i64().unwrap()).sum();
    let per = 1400 - 52;
    assert_eq!(int(&answer, "packets"), 100_000u64.div_ceil(per));
    assert_eq!(int(&answer, "ip_len"), 100_000 + 52 * 100_000u64.div_ceil(per));
    // ESP: 1402 in fours, 34 − 2, IPv4; then 30 and one for each 64.
    let framed = 1404 + 32 + 20 + 30;
    assert_eq!(frame, framed + (framed + 63) / 64);
}

#[test]
fn a_sweep_shows_the_sawtooth() {
    let answer = overhead(&["--sweep", "1400..1500", "--encap", "pppoe-llc-bridged-fcs-atm"]);
    let sweep = answer["sweep"].as_array().unwrap();
    assert_eq!(sweep.len(), 101);
    for (step, mtu) in sweep.iter().zip(1400u64..) {
        let cells = (mtu + 44).div_ceil(48);
        assert_eq!((int(step, "mtu"), int(step, "cells"), int(step, "wire_len")), (mtu, cells, cells * 53));
        assert_eq!(real(step, "efficiency"), (mtu - 40) as f64 / (cells * 53) as f64);
    }
    assert_eq!((int(&answer, "best_mtu"), int(&answer, "mtu")), (1492, 1492));
    let all: Vec<f64> = sweep.iter().map(|step| real(step, "efficiency")).collect();
    let (low, high) = all.iter().fold((1.0, 0.0), |(low, high), x| (f64::min(low, *x), f64::max(high, *x)));
    assert!((0.025..0.035).contains(&(high - low)), "about three points: {}", high - low);
    let below = overhead(&["--sweep", "1400..1500", "--max-mtu", "1454", "--encap", "pppoe-llc-bridged-fcs-atm"]);
    assert_eq!(int(&below, "best_mtu"), 1444);
    let alone = overhead(&["--max-mtu", "1454", "--encap", "pppoe-llc-bridged-fcs-atm"]);
    assert_eq!((int(&alone, "best_mtu"), int(&alone, "mtu")), (1444, 1444));
}

#[test]
fn a_person_sees_figures_frame_and_plot() {
    let ran =
        run(&["overhead", "--sweep", "1400..1500", "--encap", "pppoe-llc-bridged-fcs-atm", "--link-rate", "8mbit"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for part in ["85.61 %", "best: 1492", "32 cells", "1444", "6.85 Mbit/s", "LLC/SNAP", "AAL5", "cell headers"] {
        assert!(ran.out.contains(part), "{part} in\n{}", ran.out);
    }
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    let vpn = run(&["overhead", "--encap", "wireguard", "--mtu", "1500"]);
    assert!(vpn.out.contains("at most 1440"), "{}", vpn.out);
}

#[test]
fn the_plot_is_written_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sawtooth.svg");
    let path = file.to_str().unwrap();
    let args = ["overhead", "--sweep", "1400..1500", "--encap", "pppoe-llcsnap", "--svg", path];
    assert_eq!(run(&args).code, 0);
    let svg = std::fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>") && svg.contains("best: 1496"), "{svg}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    let nowhere = dir.path().join("none").join("sawtooth.svg");
    let ran = run(&["overhead", "--sweep", "1400..1500", "--svg", nowhere.to_str().unwrap()]);
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("can't write"), "{}", ran.err);
}

#[test]
fn every_word_of_the_list_can_be_used_alone() {
    let list = json(&["overhead", "--list", "--json"]);
    let words = list["words"].as_array().unwrap();
    assert!(words.len() > 40);
    for word in words.iter().filter(|word| word["group"] != "carrier") {
        let name = word["name"].as_str().unwrap().replace("=N", "=40");
        let answer = overhead(&["--encap", &name, "--mtu", "1400"]);
        assert!(int(&answer, "wire_len") >= 1400, "{name}");
    }
    let text = run(&["overhead", "--list"]).out;
    assert!(text.contains("pppoe-llcsnap") && text.contains("wireguard"), "{text}");
}

#[test]
fn mistakes_exit_with_2_and_say_what_to_write() {
    for (args, part) in [
        (&["--encap", "ethrnet"][..], "did you mean ethernet"),
        (&["--encap", ""], "at least one word"),
        (&["--encap", "ethernet+wireguard"], "the tunnel first"),
        (&["--encap", "overhead=257"], "-64 to 256"),
        (&["--mtu", "40"], "41 to 65535"),
        (&["--mtu", "65536"], "1 to 65535"),
        (&["--mtu", "-1"], "negative"),
        (&["--mtu", "1499.5"], "no whole number"),
        (&["--mtu", "52", "--tcp-options", "timestamps"], "53 to 65535"),
        (&["--payload", "-1"], "negative"),
        (&["--payload", "many"], "is not a size"),
        (&["--sweep", "1500..1400"], "1400..1500"),
        (&["--sweep", "1400"], "two dots"),
        (&["--sweep", "1400..1500", "--mtu", "1450"], "cannot be used with"),
        (&["--svg", "x.svg"], "--sweep"),
        (&["--tcp-options", "10"], "write 12"),
        (&["--tcp-options", "timestmps"], "timestamps"),
        (&["--proto", "udp", "--tcp-options", "timestamps"], "UDP has no TCP options"),
        (&["--proto", "sctp"], "tcp, udp"),
        (&["--ip", "5"], "4, 6"),
        (&["--link-rate", "8mbits"], "mbit"),
        (&["--link-rate", "0"], "more than zero"),
        (&["--link-rate", "8"], "did you mean 8mbit"),
    ] {
        let ran = run(&[&["overhead"], args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(part), "{args:?}: {}", ran.err);
        assert_eq!(ran.out, "", "{args:?}");
    }
}

#[test]
fn a_plot_that_cannot_be_written_takes_no_answer_from_the_screen() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("none").join("x.svg");
    let ran = run(&["overhead", "--sweep", "1400..1500", "--svg", nowhere.to_str().unwrap()]);
    assert!(ran.code == 3 && ran.out.contains("best MTU     1500"), "{}{}", ran.out, ran.err);
}

#[test]
fn without_an_mtu_packets_are_counted_that_the_link_carries() {
    for (args, mtu) in [
        (&["--encap", "pppoe", "--payload", "100kB"][..], 1492),
        (&["--encap", "mpls"], 1496),
        (&["--link-mtu", "1400"], 1400),
        (&["--encap", "vlan", "--link-mtu", "9000"], 9000),
    ] {
        let answer = overhead(args);
        assert_eq!((int(&answer, "mtu"), int(&answer, "best_mtu")), (mtu, mtu), "{args:?}");
        assert_eq!(answer["notes"], Value::Array(Vec::new()), "{args:?}");
    }
}
