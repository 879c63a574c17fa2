use super::{ALL, Kind, Knob, KnobError, Value};
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn names_and_aliases_are_unique_and_spelt_alike() {
    let mut seen = BTreeSet::new();
    for name in ALL.iter().flat_map(|knob| std::iter::once(&knob.name).chain(knob.aliases)) {
        assert!(seen.insert(*name), "{name} twice");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{name}");
    }
}

#[test]
fn every_setting_can_be_set_somewhere_and_says_what_it_is() {
    for knob in ALL {
        assert!(
            knob.host.is_some() || knob.route.is_some() || knob.link.is_some() || knob.socket.is_some(),
            "{}",
            knob.name
        );
        assert!(knob.help.len() > 10, "{}", knob.name);
    }
}

#[test]
fn the_vocabulary_of_experiments_is_part_of_it() {
    for knob in wt_units::Knob::all() {
        let own = Knob::find(knob.name()).unwrap();
        assert_eq!(own.name, knob.name());
    }
}

#[test]
fn kernel_names_short_names_and_aliases_find_the_same_setting() {
    for name in ["sack", "tcp_sack", "tcp-sack", "net.ipv4.tcp_sack", "net/ipv4/tcp_sack", "SACK"] {
        assert_eq!(Knob::find(name).unwrap().name, "sack", "{name}");
    }
    for (name, wanted) in [
        ("net.core.rmem_max", "rmem-max"),
        ("tcp_rmem", "tcp-rmem"),
        ("congestion_control", "cc"),
        ("tcp_congestion_control", "cc"),
        ("black-hole-detection", "mtu-probing"),
        ("tcp_slow_start_after_idle", "slow-start-after-idle"),
        ("net.ipv4.neigh.default.gc_thresh3", "neigh-gc-thresh3"),
        ("net.ipv6.neigh.default.gc_thresh3", "neigh6-gc-thresh3"),
        ("net.ipv6.route.max_size", "route6-max-size"),
        ("advmss", "mss"),
        ("tso", "offload-tso"),
    ] {
        assert_eq!(Knob::find(name).unwrap().name, wanted, "{name}");
    }
}

#[test]
fn unknown_keys_name_the_nearest() {
    for (text, wanted) in
        [("initcwn", "initcwnd"), ("sak", "sack"), ("rwim", "rwin"), ("congestion", "congestion-control")]
    {
        let KnobError::Unknown { nearest, .. } = Knob::find(text).unwrap_err() else { panic!("{text}") };
        assert!(nearest.iter().any(|near| near == wanted), "{text}: {nearest:?}");
    }
}

#[test]
fn whatever_counts_bytes_takes_a_size_with_its_unit() {
    for knob in ALL.iter().filter(|knob| knob.help.contains("bytes") && !matches!(knob.kind, Kind::Three { .. })) {
        let bytes = if knob.parse("2KiB").is_ok() { ("2KiB", 2_048) } else { ("1MiB", 1 << 20) };
        assert_eq!(knob.parse(bytes.0).ok(), Some(Value::Number(bytes.1)), "{}: {}", knob.name, knob.allowed());
    }
}

#[test]
fn values_of_the_classic_optimisers_are_understood() {
    for (pair, value) in [
        ("mtu=552", Value::Number(552)),
        ("mtu=576", Value::Number(576)),
        ("mtu=1002", Value::Number(1002)),
        ("mtu=1500", Value::Number(1500)),
        ("mss=1460", Value::Number(1460)),
        ("mss=from-mtu", Value::FromMtu),
        ("rwin=4x", Value::TimesMss(4)),
        ("rwin=33xmtu", Value::TimesMtu(33)),
        ("rwin=64KiB", Value::Number(65_536)),
        ("ttl=0", Value::Auto),
        ("ttl=128", Value::Number(128)),
        ("window-scaling=off", Value::word("off")),
        ("pmtud=1", Value::word("on")),
        ("net.ipv4.ip_no_pmtu_disc=1", Value::word("off")),
        ("black-hole-detection=on", Value::word("on")),
        ("ecn=2", Value::word("passive")),
        ("rto-min=300ms", Value::Number(300)),
        ("tcp_rmem=4096 131072 6291456", Value::Three([4096, 131_072, 6_291_456])),
        ("tcp_rmem=4096,131072,6MiB", Value::Three([4096, 131_072, 6_291_456])),
        ("cc=bbr", Value::word("bbr")),
    ] {
        assert_eq!(Knob::parse_pair(pair).unwrap().1, value, "{pair}");
    }
}

#[test]
fn values_out_of_range_name_the_range() {
    for (pair, wanted) in [
        ("mtu=20", "68 to 65535"),
        ("initcwnd=0", "1 to 1000"),
        ("initcwnd=5000", "1 to 1000"),
        ("ttl=256", "1 to 255"),
        ("sack=maybe", "on, off"),
        ("tcp_rmem=5 4 3", "three rising sizes"),
        ("cc=a/../b", "15 letters"),
        ("rwin=0x", "multiple of the MSS"),
        ("syn-retries=-1", "1 to 127"),
        ("rto-min=300000ms", "1ms to 120000ms"),
    ] {
        let message = Knob::parse_pair(pair).unwrap_err().to_string();
        assert!(message.contains(wanted), "{pair}: {message}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,30}", at in 0..ALL.len()) {
        let _ = Knob::parse_pair(&text);
        let _ = ALL[at].parse(&text);
        let _ = ALL[at].decode(&text);
    }

    #[test]
    fn what_is_parsed_is_encoded_and_decoded_to_itself(at in 0..ALL.len(), number in any::<u64>()) {
        let knob = &ALL[at];
        let text = match knob.kind {
            Kind::Choice(words) => words[usize::try_from(number % words.len() as u64).unwrap()].0.to_owned(),
            Kind::Three { min, max, .. } => format!("{min} {} {max}", min + number % (max - min)),
            Kind::Name | Kind::Names => "bbr".to_owned(),
            Kind::Size { min, max } | Kind::Window { min, max } | Kind::Segment { min, max } | Kind::Number { min, max, .. } | Kind::Millis { min, max } => (min + number % (max - min + 1)).to_string(),
        };
        let value = knob.parse(&text).unwrap();
        prop_assert_eq!(knob.parse(&value.to_string()).unwrap(), value.clone());
        if let Some(kernel) = knob.encode(&value) {
            prop_assert_eq!(knob.decode(&kernel), value);
        }
    }
}
