use super::super::Scenario;
use super::with;

#[test]
fn what_a_path_carries_at_most_leaves_room_for_duplicates_and_outages() {
    let scenario = |extra: &str| Scenario::parse("mine.toml", &with(extra)).unwrap();
    let most = |extra: &str| scenario(extra).facts(wt_trial::Direction::Down).physical_goodput_bps.unwrap();
    let free = most("");
    let is_share = |bps: u64, share: f64| (bps as f64 / free as f64 - share).abs() < 0.001;
    assert!(is_share(most("duplicate = \"50%\""), 1.0 / 1.5), "the copies take a third of the line");
    assert_eq!(most("duplicate = \"50%\"\nqueue_packets = 1"), free, "there is no room for a copy");
    let policed = |rest: &str| most(&format!("policer = {{ rate = \"2mbit\", burst = \"15kB\" }}{rest}"));
    assert!(policed("\nduplicate = \"50%\"") * 3 <= policed("") * 2, "they stand before the policer");
    // 44 packets wait: they go on for 66 ms of the outage's 200 ms.
    let away = |period: &str| format!("queue = \"65535B\"\noutages = {{ windows = [[\"0.3s\", \"0.5s\"]]{period} }}");
    let (once, again) = (away(""), away(", period = \"0.5s\""));
    assert_eq!(most(&once), free, "an outage that doesn't come again");
    assert!(is_share(most(&again), 366.0 / 500.0), "{} of {free}", most(&again));
    assert_eq!(most(&again.replace("65535B", "1MB")), free, "a long queue carries it over all of it");
    let all = |extra: &str| scenario(extra).facts(wt_trial::Direction::Down).bdp_bytes;
    assert_eq!(all(&again), all(&once), "what fills the path while it is open stays");
}

#[test]
fn only_what_saves_up_for_a_burst_is_faster_for_a_while() {
    let bursts =
        |extra: &str| Scenario::parse("mine.toml", &with(extra)).unwrap().has_bursts(wt_trial::Direction::Down);
    assert!(bursts("bucket = { burst = \"300kB\" }") && bursts("policer = { rate = \"2mbit\", burst = \"10MB\" }"));
    assert!(!bursts("") && !bursts("policer = { rate = \"2mbit\", burst = \"15kB\" }"));
}
