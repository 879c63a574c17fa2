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
