use super::*;
use proptest::prelude::*;
use std::time::Duration;

#[test]
fn sizes_are_binary_unless_they_say_otherwise() {
    for (text, bytes) in [
        ("0", 0),
        ("1500", 1500),
        ("64KiB", 65_536),
        ("64k", 65_536),
        ("12MB", 12_000_000),
        ("1.5KiB", 1536),
        ("1 GiB", 1 << 30),
    ] {
        assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
    }
}

#[test]
fn rates_are_decimal() {
    for (text, bits) in
        [("8mbit", 8_000_000), ("26.4kbit", 26_400), ("8 Mbit/s", 8_000_000), ("1gbps", 1_000_000_000), ("300", 300)]
    {
        assert_eq!(text.parse(), Ok(BitsPerSecond(bits)), "{text}");
    }
}

#[test]
fn durations_have_units() {
    for (text, nanos) in
        [("50ms", 50_000_000), ("1.5s", 1_500_000_000), ("250us", 250_000), ("0", 0), ("2min", 120_000_000_000)]
    {
        assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanos)), "{text}");
    }
    assert!(parse_duration("50").is_err());
}

#[test]
fn ratios_are_shares_or_percent() {
    assert_eq!("0.1%".parse(), Ok(Ratio(0.001)));
    assert_eq!("0.001".parse(), Ok(Ratio(0.001)));
    assert!("1%%".parse::<Ratio>().is_err());
    assert!("NaN".parse::<Ratio>().is_err());
    assert_eq!(("1".parse(), "250%".parse()), (Ok(Ratio(1.0)), Ok(Ratio(2.5))));
    let above = "5".parse::<Ratio>().unwrap_err().to_string();
    assert!(above.contains("did you mean \"5%\"?"), "{above}");
}

#[test]
fn an_error_names_the_units_and_the_nearest() {
    let error = "8mbits".parse::<BitsPerSecond>().unwrap_err().to_string();
    assert!(error.contains("kbit") && error.contains("did you mean \"mbit\""), "{error}");
    let error = "-5ms".parse::<Bytes>().unwrap_err().to_string();
    assert!(error.contains("negative"), "{error}");
    let error = "rwnd".parse::<Knob>().unwrap_err().to_string();
    assert!(error.contains("rwin"), "{error}");
}

#[test]
fn every_knob_has_one_row_and_reads_back_its_name() {
    for knob in Knob::all() {
        assert_eq!(knob.name().parse(), Ok(knob));
        assert_eq!(knob.parse_level("auto"), Ok(Level::Auto));
        assert!(!knob.help().is_empty() && knob.allowed().starts_with("auto"));
    }
}

#[test]
fn levels_are_checked_against_their_range() {
    assert_eq!(Knob::Ttl.parse_level("0"), Ok(Level::Auto), "as old optimisers wrote the system's own");
    assert_eq!(Knob::Ttl.allowed(), "auto (or 0) or 1 to 255", "what is taken is named");
    assert_eq!(Knob::Rwin.parse_level("4x"), Ok(Level::TimesMss(4)));
    assert_eq!(Knob::Rwin.parse_level("16KiB"), Ok(Level::Number(16_384)));
    assert_eq!(Knob::Rwin.parse_level("33xMTU"), Ok(Level::TimesMtu(33)));
    let full = FullPacket { mtu: 1456, mss: 1416 };
    assert_eq!(Level::TimesMss(4).resolve(full), Level::Number(5664));
    assert_eq!(Level::TimesMtu(33).resolve(full), Level::Number(48_048));
    assert_eq!(Knob::Sack.parse_level("off"), Ok(Level::Name("off".to_owned())));
    for (knob, text) in [
        (Knob::Mtu, "67"),
        (Knob::Mtu, "4x"),
        (Knob::Ttl, "256"),
        (Knob::Cc, "no such name!"),
        (Knob::Sack, "maybe"),
        (Knob::Mtu, "1xmtu"),
        (Knob::Rwin, "0x"),
        (Knob::Rwin, "0xmtu"),
        (Knob::Rwin, "33mtu"),
    ] {
        let error = knob.parse_level(text).unwrap_err().to_string();
        assert!(error.contains(knob.name()) && error.contains("allowed"), "{error}");
    }
}

#[test]
fn the_bdp_fills_the_path_exactly() {
    assert_eq!(BitsPerSecond(8_000_000) * Duration::from_millis(30), Bytes(30_000));
    assert_eq!(Bytes(30_000) / BitsPerSecond(8_000_000), Duration::from_millis(30));
    assert_eq!(Bytes(1) / BitsPerSecond(0), Duration::MAX);
}

proptest! {
    #[test]
    fn what_is_written_reads_back(bytes in 0u64..1 << 50, bits in 0u64..1 << 50, nanos in 0u64..1 << 50, share in 0.0f64..1.0) {
        prop_assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        prop_assert_eq!(BitsPerSecond(bits).to_string().parse(), Ok(BitsPerSecond(bits)));
        let duration = Duration::from_nanos(nanos);
        let back = parse_duration(&format_duration(duration)).unwrap();
        prop_assert!(back.abs_diff(duration) <= Duration::from_nanos(1 + nanos / 1_000_000_000_000));
        let back: Ratio = Ratio(share).to_string().parse().unwrap();
        prop_assert!((back.get() - share).abs() < 1e-12);
    }

    #[test]
    fn no_text_makes_the_grammar_panic(text in ".{0,24}") {
        let _ = text.parse::<Bytes>();
        let _ = text.parse::<BitsPerSecond>();
        let _ = text.parse::<Ratio>();
        let _ = parse_duration(&text);
        for knob in Knob::all() {
            let _ = knob.parse_level(&text);
        }
    }
}

#[test]
fn sizes_are_told_as_people_read_them() {
    for (bytes, told) in [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1448, "1448 bytes"),
        (1024, "1 KiB"),
        (65_536, "64 KiB"),
        (3 << 20, "3 MiB"),
        (100_000, "100 kB"),
        (31_666, "31.7 kB"),
        (316_666, "317 kB"),
        (2_217_893, "2.22 MB"),
        (12_000_000, "12 MB"),
        (1_500_000_000, "1.5 GB"),
        (100_000_000_000, "100 GB"),
    ] {
        assert_eq!(Bytes(bytes).human(), told);
    }
}

#[test]
fn ages_have_days_and_weeks() {
    let hours = |hours: u64| Ok(Duration::from_secs(hours * 3600));
    for (text, expected) in [("90d", 90 * 24), ("2w", 14 * 24), ("1.5d", 36), ("12h", 12)] {
        assert_eq!(parse_age(text), hours(expected), "{text}");
    }
    for bad in ["soon", "90x", "-1d", "1e300w", "d", ""] {
        assert!(parse_age(bad).is_err(), "{bad}");
    }
}

#[test]
fn durations_for_people_have_three_digits() {
    for (nanos, text) in [
        (0, "0ms"),
        (7, "7ns"),
        (3_000_000_000, "3s"),
        (46_840_875_000, "46.8s"),
        (999_600_000, "1s"),
        (1_234_567, "1.23ms"),
        (12_345_678_900_000, "12300s"),
    ] {
        assert_eq!(format_about(Duration::from_nanos(nanos)), text);
    }
}
