use super::super::*;
use super::with;

#[test]
fn what_lets_nothing_through_is_refused_or_carries_nothing() {
    let of = |extra: &str| Scenario::parse("mine.toml", &with(extra));
    let refused = |extra: &str| of(extra).unwrap_err().to_string();
    let policer = |burst: u64| format!("policer = {{ rate = \"1mbit\", burst = \"{burst}B\" }}");
    assert!(of(&policer(1500)).is_ok(), "hosts send no more than 1500 bytes, whatever the link takes");
    let short = refused(&policer(1499));
    assert!(short.contains("down.policer.burst: 1499 is out of range: allowed is 1500 bytes or more"), "{short}");
    let always = "outages = { windows = [[\"0s\", \"1s\"], [\"1s\", \"2s\"]], period = \"2s\" }";
    assert!(refused(always).contains("or nothing ever passes"), "{}", refused(always));
    assert!(of(&always.replace("\"1s\"],", "\"999ms\"],")).is_ok(), "a thousandth of the time is left");
    let small = refused("queue = \"3000B\"");
    assert!(small.contains("such as mtu = 1500"), "{small}");
    for dead in [
        "loss = \"100%\"",
        "loss_model = { kind = \"every-nth\", n = 1 }",
        "loss_model = { kind = \"by-size\", above = \"512B\", long = \"100%\", short = \"100%\" }",
        "corrupt = { probability = \"100%\" }",
    ] {
        let scenario = of(dead).unwrap();
        let full = scenario.full_size(1500);
        assert_eq!((full.goodput_down.get(), full.goodput_up.get() > 0), (0, true), "{dead}");
        assert_eq!(scenario.dead_end().map(|(_, way)| way), Some(wt_trial::Direction::Down), "{dead}");
    }
    assert!(of("loss = \"99%\"").unwrap().dead_end().is_none());
}
