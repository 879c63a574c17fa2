/// Scenarios put together from values.
mod builder;
/// What a path carries at most.
mod ceiling;
/// Paths that let nothing through.
mod dead_ends;
/// What radios carry.
mod radio;
/// What is said of values of another type.
mod words;

use super::*;

#[test]
fn every_preset_reads_has_a_source_and_makes_a_valid_path() {
    for name in presets::names() {
        let scenario = presets::load(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.name, name);
        assert!(scenario.source.len() > 40, "{name} says where its figures come from");
        scenario.path().validate().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn the_facts_of_the_adsl_line_follow_from_its_cells() {
    let scenario = presets::load("adsl").unwrap();
    let full = scenario.full_size(1492);
    // 1492 + 44 bytes are exactly 32 cells; an ACK of 52 + 44 bytes is exactly 2.
    let there = 32.0 * 53.0 * 8.0 / 8e6;
    let back = 2.0 * 53.0 * 8.0 / 1e6;
    assert!((full.rtt.as_secs_f64() - 0.030 - there - back).abs() < 1e-8, "{:?}", full.rtt);
    assert_eq!(full.goodput_down.get(), 8_000_000 * 1440 / (32 * 53));
    assert_eq!(scenario.pmtu(), 1492);
}

#[test]
fn the_figures_that_the_presets_are_named_for_are_theirs() {
    let link = |name: &str| presets::load(name).unwrap().links[0].clone();
    assert_eq!(link("dialup").down.rate.get(), 26_400);
    assert_eq!((link("dialup").down.delay + link("dialup").up.delay).as_millis(), 150);
    assert_eq!((link("adsl").down.rate.get(), link("adsl").up.rate.get()), (8_000_000, 1_000_000));
    assert!(link("ethernet-hub").half_duplex && link("ethernet-hub").up.rate.get() == 10_000_000);
    assert_eq!((link("transatlantic").down.delay + link("transatlantic").up.delay).as_millis(), 128);
    let hole = presets::load("black-hole").unwrap();
    assert!(hole.links.iter().any(|link| link.mtu == Bytes(1400) && !link.icmp));
    assert_eq!(hole.pmtu(), 1400);
}

#[test]
fn a_mistake_is_named_with_its_line_and_what_is_allowed() {
    let text = |link: &str| format!("title = \"t\"\nsource = \"s\"\n\n[[link]]\nname = \"l\"\n{link}\n");
    let both = "down = { rate = \"8mbit\" }\nup = { rate = \"1mbit\" }";
    for (link, line, wanted) in [
        ("mtu = 20\ndown = { rate = \"8mbit\" }\nup = { rate = \"1mbit\" }".to_owned(), 6, "68 to 65535"),
        ("framing = \"pppoe-llc-bridged-fcs-atn\"\n".to_owned() + both, 6, "pppoe-llc-bridged-fcs-atm"),
        ("down = { rate = \"8mbit\" }\nup = { rate = \"1bit\" }".to_owned(), 7, "300bit to 400gbit"),
        ("down = { rate = \"8mbit\", delay = \"2h\" }\nup = { rate = \"1mbit\" }".to_owned(), 6, "0 to 60s"),
        (
            "down = { rate = \"8mbit\", queue = \"9KiB\", queue_packets = 3 }\nup = { rate = \"1mbit\" }".to_owned(),
            6,
            "either",
        ),
        ("down = { rate = \"8mbit\", queue_packets = 0 }\nup = { rate = \"1mbit\" }".to_owned(), 6, "1 to 1000000"),
        ("down = { rate = \"8mbit\", loss_by = \"luck\" }\nup = { rate = \"1mbit\" }".to_owned(), 6, "random"),
        ("half_duplex = true\n".to_owned() + both, 4, "same rate"),
        ("down = { rate = \"8mbit\" }".to_owned(), 4, "up"),
        ("down = { rate = \"8mbit\", rat = 3 }\nup = { rate = \"1mbit\" }".to_owned(), 6, "rat"),
        (both.replace("\"8mbit\"", "8"), 6, "string"),
        (
            "mtu = 9000\ndown = { rate = \"8mbit\", queue = \"9kB\" }\nup = { rate = \"1mbit\", queue = \"8kB\" }"
                .to_owned(),
            8,
            "up.queue: 8000 is out of range: allowed is 9000",
        ),
    ] {
        let error = Scenario::parse("mine.toml", &text(&link)).unwrap_err();
        assert_eq!(error.line, line, "{link}: {error}");
        assert!(error.to_string().contains(wanted) && error.file == "mine.toml", "{link}: {error}");
    }
    assert!(Scenario::parse("mine.toml", &text(both)).is_ok());
}

#[test]
fn a_file_of_nonsense_is_an_error_and_never_a_panic() {
    for text in ["", "\0\0", "title = ", "[[link]]", "link = 3", "title=\"t\"\nsource=\"s\"\nlink=[]"] {
        assert!(Scenario::parse("x.toml", text).is_err(), "{text:?}");
    }
    assert!(Scenario::parse("x.toml", &"#".repeat(2 << 20)).is_err());
}

#[test]
fn a_mistake_in_a_hop_is_named_with_its_line_its_field_and_what_is_allowed() {
    let text = |hop: &str| {
        let both = "down = { rate = \"8mbit\" }\nup = { rate = \"1mbit\" }";
        format!(
            "title = \"t\"\nsource = \"s\"\n[[link]]\nname = \"a\"\n{both}\n[[link]]\nname = \"b\"\n{both}\n[link.hop]\n{hop}\n"
        )
    };
    for (hop, line, wanted) in [
        ("mss_clamp = 20", 12, "hop.mss_clamp: 20 is out of range: allowed is 28 to 65495, or \"pmtu\""),
        ("mss_clamp = \"mtu\"", 12, "or \"pmtu\""),
        ("mss_clamp = 1300\nmss = 1300", 12, "either mss or mss_clamp"),
        ("window_scale = 15", 12, "allowed is 0 to 14"),
        ("strip = [\"sack\", \"sak\"]", 12, "did you mean \"sack\"?"),
        ("ecn = \"drop\"", 12, "allowed is keep, bleach, strip-syn, drop-syn"),
        ("block = [\"tcp\"]", 12, "allowed is icmp, icmp-errors, udp, fragments"),
        ("direction = \"sideways\"", 12, "allowed is both, up, down"),
        ("nat_idle = \"10s\"", 12, "there is no nat = true"),
        ("nat = true\nnat_idle = \"48h\"", 13, "allowed is 0 to"),
        ("too_big = \"never\"", 12, "allowed is both, ipv4, ipv6, none"),
        ("too_big_mtu = 70000", 12, "allowed is 0 to 65535"),
        ("icmp_burst = 3", 12, "there is no icmp_per_second"),
        ("icmp_per_second = 5\nicmp_burst = 0", 13, "allowed is 1 to 1000000"),
        ("host = \"server\"", 12, "that no other host has"),
        ("host = \"a b\"", 12, "that no other host has"),
        ("host_mtu = 1500", 12, "there is no host"),
        ("host = \"edge\"\nhost_mtu = 20", 13, "allowed is 576 to 65535"),
        ("nattt = true", 12, "did you mean \"nat\""),
    ] {
        let error = Scenario::parse("mine.toml", &text(hop)).unwrap_err();
        assert!(error.to_string().contains(wanted), "{hop}: {error}");
        assert_eq!(error.line, line, "{hop}: {error}");
    }
    let both = "hop = { host = \"edge\" }";
    let link = |name: &str, hop: &str| {
        format!("[[link]]\nname = \"{name}\"\n{hop}\ndown = {{ rate = \"8mbit\" }}\nup = {{ rate = \"1mbit\" }}\n")
    };
    let head = "title = \"t\"\nsource = \"s\"\n";
    let twice = head.to_owned() + &link("a", "") + &link("b", both) + &link("c", both);
    assert!(Scenario::parse("x.toml", &twice).unwrap_err().to_string().contains("another host \"edge\""));
    let first = head.to_owned() + &link("a", both);
    assert!(Scenario::parse("x.toml", &first).unwrap_err().to_string().contains("but the client"));
}

#[test]
fn links_that_name_what_they_join_are_put_in_order_and_loops_are_told() {
    let file = |joints: &[(&str, &str)]| {
        let mut text = "title = \"t\"\nsource = \"s\"\n".to_owned();
        for (from, to) in joints {
            text += &format!("[[link]]\nname = \"{from}-{to}\"\nfrom = \"{from}\"\nto = \"{to}\"\n");
            text += "down = { rate = \"8mbit\" }\nup = { rate = \"1mbit\" }\n";
        }
        Scenario::parse("x.toml", &text)
    };
    let scenario = file(&[("edge", "server"), ("client", "router"), ("router", "edge")]).unwrap();
    let names: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["client-router", "router-edge", "edge-server"]);
    for (joints, line, wanted) in [
        (&[("client", "a"), ("a", "b"), ("b", "a")][..], 18, "\"b-a\", to: \"a\" is a loop"),
        (&[("client", "a"), ("a", "client")], 12, "to: \"client\" is a loop"),
        (&[("client", "server"), ("client", "b")], 11, "a second link"),
        (&[("client", "server"), ("a", "b")], 11, "not on the way"),
        (&[("client", "a")], 3, "no link begins at \"a\""),
        (&[("a", "server")], 3, "no link begins at \"client\""),
    ] {
        let error = file(joints).unwrap_err();
        assert!(error.to_string().contains(wanted), "{joints:?}: {error}");
        assert_eq!(error.line, line, "{joints:?}: {error}");
    }
}

#[test]
fn what_is_shown_of_a_path_names_every_stage_and_every_hop() {
    let scenario = presets::load("market-data").unwrap();
    let [up, _] = scenario.described(&scenario.links[9]);
    let lines: Vec<String> = up.iter().map(ToString::to_string).collect();
    assert!(lines[1].starts_with("loss: kind by-size, above 512B, long 35%, short 4%"), "{lines:?}");
    for name in presets::names() {
        let scenario = presets::load(name).unwrap();
        for (link, stages) in scenario.links.iter().zip(scenario.path().links) {
            let [up, down] = scenario.described(link);
            let medium = usize::from(stages.medium.is_some());
            assert_eq!((up.len(), down.len()), (stages.forward.len() + medium, stages.backward.len() + medium));
        }
    }
    let cdn = presets::load("cdn-chain").unwrap();
    assert_eq!(cdn.links[1].hop.describe(), ["host \"edge\", device of MTU 1500"]);
}

/// A link of which one direction has this besides its rate.
fn with(extra: &str) -> String {
    format!(
        "title = \"t\"\nsource = \"s\"\n\n[[link]]\nname = \"l\"\nup = {{ rate = \"1mbit\" }}\n[link.down]\nrate = \"8mbit\"\n{extra}\n"
    )
}

#[test]
fn every_stage_of_the_link_can_be_written() {
    for (extra, stage) in [
        ("loss_model = { kind = \"gilbert-elliott\", to_bad = \"1%\", to_good = \"30%\" }", "GilbertElliott"),
        ("loss_model = { kind = \"every-nth\", n = 30 }", "EveryNth"),
        ("loss_model = { kind = \"numbered\", packets = [15, 17, 19] }", "Numbered { packets: [15, 17, 19] }"),
        ("loss_model = { kind = \"by-size\", above = \"512B\", long = \"35%\", short = \"4%\" }", "BySize"),
        ("outages = { windows = [[\"1s\", \"2s\"]], period = \"10s\" }", "Outages"),
        ("jitter_model = { kind = \"uniform\", max = \"5ms\", correlation = \"25%\" }", "Uniform"),
        ("jitter_model = { kind = \"normal\", mean = \"9ms\", deviation = \"3ms\", reorder = true }", "reorder: true"),
        ("jitter_model = { kind = \"pareto\", scale = \"1ms\", shape = 2.5, max = \"1s\" }", "Pareto"),
        ("reorder = { probability = \"1%\", by = \"5ms\" }", "Reorder"),
        ("duplicate = \"1%\"", "Duplicate"),
        ("corrupt = { probability = \"0.1%\", detected = true }", "Corrupt"),
        ("policer = { rate = \"5mbit\", burst = \"64KiB\" }", "Policer"),
        ("bucket = { burst = \"64KiB\", peak = \"1gbit\" }", "TokenBucket"),
        ("modem = { bits_per_byte = 10, escapes = \"0.8%\", compression = 2.0 }", "Modem"),
        ("aqm = { kind = \"red\", min = 5, max = 15, ecn = true }", "Red"),
        ("aqm = { kind = \"codel\", target = \"10ms\" }", "CoDel"),
        ("aqm = { kind = \"fq-codel\" }", "FqCoDel"),
        ("[link.down.aqm]\nkind = \"pie\"\necn = true", "Pie"),
        ("airtime = { access = \"200us\", max_packets = 64, max_bytes = \"65535B\" }", "Airtime"),
        ("thinning = { every = 4, hold = \"5ms\" }", "Thinning"),
    ] {
        let scenario = Scenario::parse("mine.toml", &with(extra)).unwrap_or_else(|error| panic!("{extra}: {error}"));
        let path = scenario.path();
        path.validate().unwrap_or_else(|error| panic!("{extra}: {error}"));
        assert!(format!("{:?}", path.links[0].backward).contains(stage), "{extra}");
        assert!(!format!("{:?}", path.links[0].forward).contains(stage), "{extra}: the other direction is as it was");
    }
}

#[test]
fn a_path_carries_no_more_than_a_policer_lets_through_but_for_a_long_burst() {
    let facts = |extra: &str| Scenario::parse("mine.toml", &with(extra)).unwrap().facts(wt_trial::Direction::Down);
    let policed = |rate: &str, burst: &str| facts(&format!("policer = {{ rate = \"{rate}\", burst = \"{burst}\" }}"));
    let (free, slow) = (facts(""), policed("2mbit", "15kB"));
    assert_eq!(policed("20mbit", "100MB"), free, "one that is wider than the link changes nothing");
    let goodput = slow.physical_goodput_bps.unwrap();
    assert!((1_800_000..2_000_000).contains(&goodput), "{goodput} bit/s");
    assert_eq!(slow.bdp_bytes, goodput * slow.rtt_us / 8_000_000);
    let patient = policed("2mbit", "10MB");
    assert_eq!((patient.physical_goodput_bps, patient.bdp_bytes), (None, slow.bdp_bytes), "40 s at the link's rate");
}

#[test]
fn a_mistake_in_a_stage_is_named_with_its_line_its_field_and_what_is_allowed() {
    for (extra, line, wanted) in [
        (
            "loss_model = { kind = \"every-nth\", n = 0 }",
            9,
            "down.loss_model.n: 0 is out of range: allowed is 1 or more",
        ),
        (
            "[link.down.aqm]\nkind = \"red\"\nmin = 9\nmax = 3",
            12,
            "down.aqm.max: 3 is out of range: allowed is more than min",
        ),
        ("duplicate = \"150%\"", 9, "down.duplicate: 150% is out of range: allowed is 0% to 100%"),
        ("aqm = { kind = \"red\", max = 3 }", 9, "down.aqm.min: is missing"),
        ("aqm = { kind = \"red\", min = 15000, max = 60000 }", 9, "15000 packets are more than the queue ever holds"),
        ("aqm = { kind = \"pie\", quantum = \"1514B\" }", 9, "no such field"),
        ("aqm = { kind = \"kodel\" }", 9, "codel"),
        ("aqn = { kind = \"codel\" }", 9, "did you mean \"aqm\""),
        ("airtime = { access = \"200us\", max_packets = 0, max_bytes = \"9kB\" }", 9, "max_packets: 0 is out of range"),
        ("policer = { rate = \"5mbit\", burst = \"-1B\" }", 9, "burst: "),
        ("steps = { rates = [[\"0s\", \"1mbit\"]] }", 8, "only one of"),
        ("trace = { file = \"nowhere.trace\" }", 8, "only one of"),
        ("jitter = \"1ms\"\njitter_model = { kind = \"uniform\", max = \"5ms\" }", 10, "not both"),
        ("bucket = { burst = \"9kB\" }\nmodem = {}", 10, "only one of"),
        ("outages = { windows = [[\"2s\", \"1s\"]] }", 9, "windows in order"),
    ] {
        let error = Scenario::parse("mine.toml", &with(extra)).unwrap_err();
        assert!(error.to_string().contains(wanted), "{extra}: {error}");
        assert_eq!(error.line, line, "{extra}: {error}");
    }
}

/// Every field of a direction with what can't be: how it is written with that in it, and what is allowed.
const FIELDS: [(&str, &str, &str); 44] = [
    ("delay", "delay = X", "0 to 60s"),
    ("jitter", "jitter = X", "0 to 10s"),
    ("queue", "queue = X", "1500B to 1GiB"),
    ("loss", "loss = X", "0% to 100%"),
    ("duplicate", "duplicate = X", "0% to 100%"),
    ("to_bad", "loss_model = { kind = \"gilbert-elliott\", to_bad = X, to_good = \"1%\" }", "0% to 100%"),
    ("to_good", "loss_model = { kind = \"gilbert-elliott\", to_bad = \"1%\", to_good = X }", "0% to 100%"),
    (
        "loss_bad",
        "loss_model = { kind = \"gilbert-elliott\", to_bad = \"1%\", to_good = \"1%\", loss_bad = X }",
        "0% to 100%",
    ),
    ("above", "loss_model = { kind = \"by-size\", above = X, long = \"1%\", short = \"1%\" }", "0B to 65535B"),
    ("long", "loss_model = { kind = \"by-size\", above = \"1B\", long = X, short = \"1%\" }", "0% to 100%"),
    ("windows", "outages = { windows = [[\"1s\", X]] }", "0 to 24h"),
    ("period", "outages = { windows = [[\"1s\", \"2s\"]], period = X }", "0 to 24h"),
    ("max", "jitter_model = { kind = \"uniform\", max = X }", "0 to 24h"),
    ("min", "jitter_model = { kind = \"uniform\", max = \"1s\", min = X }", "0 to max"),
    ("mean", "jitter_model = { kind = \"normal\", mean = X, deviation = \"1s\" }", "0 to 24h"),
    ("deviation", "jitter_model = { kind = \"normal\", mean = \"1s\", deviation = X }", "0 to 24h"),
    ("correlation", "jitter_model = { kind = \"uniform\", max = \"1s\", correlation = X }", "0% to 100%"),
    ("scale", "jitter_model = { kind = \"pareto\", scale = X, shape = 2.0, max = \"1s\" }", "1ns to max"),
    ("probability", "reorder = { probability = X, by = \"1ms\" }", "0% to 100%"),
    ("by", "reorder = { probability = \"1%\", by = X }", "0 to 24h"),
    ("probability", "corrupt = { probability = X }", "0% to 100%"),
    ("rate", "policer = { rate = X, burst = \"9kB\" }", "1bit to 1000000gbit"),
    ("burst", "policer = { rate = \"1mbit\", burst = X }", "1B to 1TiB"),
    ("hold", "thinning = { every = 2, hold = X }", "0 to 24h"),
    ("burst", "bucket = { burst = X }", "1B to 1TiB"),
    ("peak", "bucket = { burst = \"9kB\", peak = X }", "1bit to 1000000gbit"),
    ("escapes", "modem = { escapes = X }", "0% to 100%"),
    ("every", "modem = { retrain = { every = X, lasts = \"1s\" } }", "1s to 24h"),
    ("lasts", "modem = { retrain = { every = \"9s\", lasts = X } }", "1ns to 24h"),
    ("target", "aqm = { kind = \"codel\", target = X }", "1ns to 24h"),
    ("interval", "aqm = { kind = \"codel\", interval = X }", "1ns to 24h"),
    ("quantum", "aqm = { kind = \"fq-codel\", quantum = X }", "256B to 1MiB"),
    ("update", "aqm = { kind = \"pie\", update = X }", "100us to 24h"),
    ("max_burst", "aqm = { kind = \"pie\", max_burst = X }", "0 to 24h"),
    ("max_probability", "aqm = { kind = \"red\", min = 5, max = 9, max_probability = X }", "0% to 100%"),
    ("access", "airtime = { access = X, max_packets = 9, max_bytes = \"9kB\" }", "0 to 24h"),
    ("backoff", "airtime = { access = \"1ms\", max_packets = 9, max_bytes = \"9kB\", backoff = X }", "0 to 24h"),
    ("slot", "airtime = { access = \"1ms\", max_packets = 9, max_bytes = \"9kB\", slot = X }", "1ns to 24h"),
    ("max_bytes", "airtime = { access = \"1ms\", max_packets = 9, max_bytes = X }", "1B to 1TiB"),
    ("failure", "airtime = { access = \"1ms\", max_packets = 9, max_bytes = \"9kB\", failure = X }", "0% to 100%"),
    (
        "retry_after",
        "airtime = { access = \"1ms\", max_packets = 9, max_bytes = \"9kB\", retry_after = X }",
        "0 to 24h",
    ),
    ("rates", "steps = { rates = [[\"0s\", X]] }", "1bit to 1000000gbit"),
    ("rates", "steps = { rates = [[\"0s\", \"1mbit\"], [\"2s\", X]] }", "1bit to 1000000gbit"),
    ("period", "steps = { rates = [[\"0s\", \"1mbit\"]], period = X }", "0 to 24h"),
];

#[test]
fn whatever_stands_in_a_field_that_has_no_meaning_there_the_field_and_what_is_allowed_are_named() {
    for (field, extra, allowed) in FIELDS {
        for value in ["-5", "-5ms", "-1%", "-1mbit", "-1B", "nan", "NaN%", "inf", "1e999", "", "5 parsecs"] {
            let text = with(&extra.replace('X', &format!("\"{value}\"")));
            let text = if extra.starts_with("steps") { text.replace("rate = \"8mbit\"\n", "") } else { text };
            let error = Scenario::parse("mine.toml", &text).expect_err(&text);
            let (said, line) = (error.to_string(), if extra.starts_with("steps") { 8 } else { 9 });
            assert!(
                said.contains(&format!("{field}: ")) && said.contains(&format!("allowed is {allowed}")),
                "{text}{said}"
            );
            assert_eq!(error.line, line, "{text}{said}");
        }
    }
    // Numbers of TOML, of which some are none.
    for (extra, wanted) in [
        (
            "jitter_model = { kind = \"pareto\", scale = \"1ms\", shape = nan, max = \"1s\" }",
            "jitter_model.shape: NaN is out of range: allowed is 0.1 to 1000",
        ),
        ("jitter_model = { kind = \"pareto\", scale = \"1ms\", shape = -inf, max = \"1s\" }", "0.1 to 1000"),
        ("modem = { compression = nan }", "modem.compression: NaN is out of range: allowed is 0.5 to 16"),
        (
            "modem = { bits_per_byte = 300 }",
            "bits_per_byte: invalid value: integer `300`, expected u8; allowed is 8 to 12",
        ),
        ("aqm = { kind = \"pie\", alpha = inf }", "aqm.alpha: inf is out of range: allowed is 0 to 1000000"),
        (
            "aqm = { kind = \"red\", min = 5, max = 9, weight = nan }",
            "aqm.weight: NaN is out of range: allowed is above 0, to 1",
        ),
        (
            "aqm = { kind = \"red\", min = -5, max = 9 }",
            "min: invalid value: integer `-5`, expected u32; allowed is 1 or more packets",
        ),
        ("aqm = { kind = \"fq-codel\", flows = -1 }", "allowed is 1 to 65536"),
        ("airtime = { access = \"1ms\", max_packets = -1, max_bytes = \"9kB\" }", "allowed is 1 to 4096"),
        (
            "airtime = { access = \"1ms\", max_packets = 9, max_bytes = \"9kB\", max_retries = 256 }",
            "allowed is 0 to 255",
        ),
        ("loss_model = { kind = \"every-nth\", n = -1 }", "n: "),
        (
            "thinning = { every = -1, hold = \"1ms\" }",
            "every: invalid value: integer `-1`, expected u32; allowed is 1 or more",
        ),
        ("queue_packets = -1", "down.queue_packets: -1 is out of range: allowed is 1 to 1000000"),
        ("queue_packets = 9223372036854775807", "allowed is 1 to 1000000"),
        ("queue_packets = 9223372036854775808", "line 9"),
        ("delay = 5", "delay: invalid type: integer `5`, expected a string"),
    ] {
        let error = Scenario::parse("mine.toml", &with(extra)).expect_err(extra).to_string();
        assert!(error.contains(wanted), "{extra}: {error}");
    }
}

#[test]
fn what_may_stand_in_a_field_is_told_by_its_table_not_by_the_wording_of_what_is_wrong() {
    for (extra, wanted, allowed) in [
        ("modem = { retrain = { every = \"x\", lasts = \"1s\" } }", "every: \"x\" is not a duration", "1s to 24h"),
        (
            "aqm = { kind = \"red\", max = -1 }",
            "max: invalid value: integer `-1`, expected u32",
            "more than min, in packets",
        ),
        ("jitter_model = { kind = \"uniform\", max = \"x\" }", "max: ", "0 to 24h"),
        ("aqm = { kind = \"red\", min = \"5\" }", "min: invalid type: string \"5\", expected u32", ""),
        ("policer = { rate = \"5mbit\" }", "policer: missing field `burst`", ""),
        ("policer = 5", "policer: invalid type: integer `5`, expected struct Policer", ""),
        ("aqm = { kind = 5 }", "kind: invalid type: integer `5`, expected", ""),
        ("delay = 1979-05-27", "delay: invalid type: date or time, expected a string", ""),
    ] {
        let error = Scenario::parse("mine.toml", &with(extra)).expect_err(extra);
        let allowed = if allowed.is_empty() { String::new() } else { format!("; allowed is {allowed}") };
        assert!(error.message.contains(wanted) && error.message.ends_with(&allowed), "{extra}: {error}");
        assert_eq!(allowed.is_empty(), !error.message.contains("allowed is"), "{extra}: {error}");
        assert_eq!(error.line, 9, "{extra}: {error}");
    }
}

#[test]
fn all_stages_together_in_each_direction_of_each_of_several_links_make_a_valid_path() {
    let stages = "delay = \"5ms\"\nloss = \"0.1%\"\nloss_by = \"index\"\nduplicate = \"1%\"\nqueue = \"64KiB\"\n\
        loss_model = { kind = \"gilbert-elliott\", to_bad = \"1%\", to_good = \"30%\" }\n\
        outages = { windows = [[\"1s\", \"2s\"]], period = \"10s\" }\ncorrupt = { probability = \"0.1%\" }\n\
        policer = { rate = \"5mbit\", burst = \"64KiB\" }\nthinning = { every = 4, hold = \"5ms\" }\n\
        jitter_model = { kind = \"normal\", mean = \"9ms\", deviation = \"3ms\", correlation = \"9%\" }\n\
        reorder = { probability = \"1%\", by = \"5ms\" }\naqm = { kind = \"pie\", ecn = true }\n";
    let lines = [
        "rate = \"8mbit\"\n",
        "steps = { rates = [[\"0s\", \"2mbit\"], [\"1s\", \"9mbit\"]], period = \"2s\" }\n",
        "rate = \"8mbit\"\nbucket = { burst = \"64KiB\" }\n",
        "rate = \"56kbit\"\nmodem = { bits_per_byte = 10, retrain = { every = \"60s\", lasts = \"5s\" } }\n",
    ];
    let mut text = "title = \"t\"\nsource = \"s\"\n".to_owned();
    for (number, line) in lines.iter().enumerate() {
        text += &format!(
            "[[link]]\nname = \"l{number}\"\nmtu = 1500\nframing = \"pppoe-llc-bridged-fcs-atm\"\n[link.down]\n{line}{stages}[link.up]\n{line}{stages}"
        );
    }
    let scenario = Scenario::parse("all.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let path = scenario.path();
    path.validate().unwrap_or_else(|error| panic!("{error}"));
    for link in &path.links {
        assert_eq!((link.forward.len(), &link.forward), (12, &link.backward));
    }
}

#[test]
fn a_shared_medium_takes_no_stage_that_would_stand_where_it_does() {
    let way = |extra: &str| format!("{{ rate = \"10mbit\", queue_packets = 9{extra} }}");
    let text = |extra: &str| {
        let (down, up) = (way(extra), way(""));
        format!("title = \"t\"\nsource = \"s\"\n[[link]]\nname = \"l\"\nhalf_duplex = true\ndown = {down}\nup = {up}\n")
    };
    assert!(Scenario::parse("x.toml", &text(", loss = \"1%\"")).is_ok());
    for extra in [
        ", jitter = \"1ms\"",
        ", jitter_model = { kind = \"uniform\", max = \"5ms\" }",
        ", reorder = { probability = \"1%\", by = \"5ms\" }",
        ", aqm = { kind = \"codel\" }",
        ", bucket = { burst = \"9kB\" }",
    ] {
        let error = Scenario::parse("x.toml", &text(extra)).expect_err(extra).to_string();
        assert!(error.contains("line 3: link \"l\", half_duplex: a shared medium"), "{error}");
    }
}

#[test]
fn names_that_would_stand_for_two_things_are_refused() {
    let link = |name: &str, host: &str| {
        let hop = if host.is_empty() { String::new() } else { format!("hop = {{ host = \"{host}\" }}\n") };
        format!("[[link]]\nname = \"{name}\"\n{hop}down = {{ rate = \"8mbit\" }}\nup = {{ rate = \"1mbit\" }}\n")
    };
    let file = |hosts: &[&str]| {
        let mut text = "title = \"t\"\nsource = \"s\"\n".to_owned() + &link("first", "");
        hosts.iter().for_each(|host| text += &link("next", host));
        Scenario::parse("x.toml", &text).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(file(&["edge", "edge7", "edge66"]), Ok(()));
    for hosts in [["edge", "edge"], ["edge", "edge6"], ["edge6", "edge"]] {
        let error = file(&hosts).expect_err("two hosts of one name");
        assert!(
            error.contains(&format!("hop.host: \"{}\": there is another host \"{}\"", hosts[1], hosts[0])),
            "{error}"
        );
    }
    for host in ["client", "server6", "device", "Edge", "a_b", "-a", "sixteen-letters-"] {
        assert!(file(&[host]).expect_err(host).contains("allowed is a name of 1 to 15 of a-z"), "{host}");
    }
    let named = |name: &str| {
        let text = "title = \"t\"\nsource = \"s\"\n".to_owned() + &link(name, "");
        Scenario::parse("x.toml", &text).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(named("Leitung № 5"), Ok(()));
    for name in ["", "two\\nlines", "\\u001b[31m", &"x".repeat(65)] {
        assert!(named(name).expect_err(name).contains("line 3: link, name:"), "{name}");
    }
}

#[test]
fn no_trace_costs_more_than_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::File::create(at("sparse")).unwrap().set_len(1 << 30).unwrap();
    for (name, text) in
        [("empty", ""), ("line", "\n"), ("zero", "0\n0\n"), ("back", "5\n3\n"), ("garbage", "\u{1}\u{2}\u{3}")]
    {
        std::fs::write(at(name), text).unwrap();
    }
    std::fs::write(at("day"), "0\n86400001\n").unwrap();
    let file = at("mine.toml");
    let file = file.to_str().unwrap();
    let text = |name: &str| with(&format!("trace = {{ file = \"{name}\" }}")).replace("rate = \"8mbit\"\n", "");
    for (name, wanted) in [
        ("sparse", "down.trace.file: "),
        ("sparse", "has 1073741824 bytes: allowed are 2 to 67108864"),
        ("empty", "line 1: \"\" is not a whole number of milliseconds from 0 to 86400000"),
        ("line", "line 1: \"\" is not"),
        ("zero", "must last for some time"),
        ("back", "line 2: 3 ms comes after 5 ms"),
        ("garbage", "line 1: "),
        ("day", "line 2: \"86400001\" is not a whole number of milliseconds from 0 to 86400000"),
        ("/dev/zero", "is not a file"),
    ] {
        let error = Scenario::parse(file, &text(name)).expect_err(name);
        assert!(error.to_string().contains(wanted), "{error}");
        assert_eq!(error.line, 8, "{error}");
    }
    // One that is named twice is kept once.
    for name in ["a", "b", "c"] {
        std::fs::write(at(name), "1\n".repeat(450)).unwrap();
    }
    let both = |down: &str, up: &str| {
        text(down).replace("up = { rate = \"1mbit\" }", &format!("up = {{ trace = {{ file = \"{up}\" }} }}"))
    };
    assert!(Scenario::parse(file, &both("a", "b")).is_ok());
    assert!(Scenario::parse(file, &both("a", "a")).is_ok());
    let second = both("c", "a").split_once("[[link]]").map(|(_, link)| format!("[[link]]{link}")).unwrap_or_default();
    let error = Scenario::parse(file, &(both("a", "b") + &second)).unwrap_err().to_string();
    assert!(error.contains("with it the traces of this file have"), "{error}");
}

#[test]
fn steps_and_traces_give_the_rate_and_a_trace_lies_beside_its_scenario() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("up.trace"), "0\n1\n2\n3\n4\n").unwrap();
    let file = folder.path().join("mine.toml");
    let file = file.to_str().unwrap();
    let text = |down: &str| with(down).replace("rate = \"8mbit\"\n", "");
    let traced = Scenario::parse(file, &text("trace = { file = \"up.trace\" }")).unwrap();
    // Five opportunities of 1504 bytes in 4 ms.
    assert_eq!(traced.links[0].down.rate.get(), 5 * 1504 * 8 * 250);
    assert_eq!(traced.facts(wt_trial::Direction::Down).physical_goodput_bps, None, "a trace has no steady rate");
    let steps = "steps = { rates = [[\"0s\", \"2mbit\"], [\"1s\", \"9mbit\"]], period = \"2s\" }";
    assert_eq!(Scenario::parse(file, &text(steps)).unwrap().links[0].down.rate.get(), 9_000_000);
    std::fs::write(folder.path().join("bad.trace"), "5\nfive\n").unwrap();
    for (name, wanted) in [("bad.trace", "line 2"), ("none.trace", "No such file"), (".", "is not a file")] {
        let error = Scenario::parse(file, &text(&format!("trace = {{ file = \"{name}\" }}"))).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
    }
}

#[test]
fn a_disturbance_is_a_stage_of_the_slowest_link_in_one_direction() {
    use super::Disturbance;
    use std::time::Duration;
    let at = Duration::from_secs(5);
    let lasts = Duration::from_secs(3);
    let all = [
        Disturbance::Loss,
        Disturbance::Burst,
        Disturbance::Outage,
        Disturbance::HalfRate { lasts },
        Disturbance::RttStep,
    ];
    let plain = presets::load("freebsd-scp").unwrap();
    let beside = plain.clone().disturbed(Disturbance::Flow { lasts }, at, wt_trial::Direction::Down);
    assert_eq!(plain.path(), beside.path(), "another flow leaves the path as it is");
    for what in all {
        let plain = presets::load("freebsd-scp").unwrap();
        let disturbed = plain.clone().disturbed(what, at, wt_trial::Direction::Down);
        assert!(disturbed.path().validate().is_ok(), "{what:?}");
        let differ: Vec<usize> =
            (0..11).filter(|i| plain.path().links[*i].backward != disturbed.path().links[*i].backward).collect();
        assert_eq!(differ, [5], "{what:?}: the slow link is the sixth");
        assert!((0..11).all(|i| plain.path().links[i].forward == disturbed.path().links[i].forward), "{what:?}");
        assert_eq!(plain.facts(wt_trial::Direction::Down).rtt_us, disturbed.facts(wt_trial::Direction::Down).rtt_us);
    }
}
