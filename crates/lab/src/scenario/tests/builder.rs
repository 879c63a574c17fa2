use super::super::*;
use wt_link::{Discipline, JitterConfig, LossConfig, RateConfig, StageConfig, TokenBucketConfig};

/// What a builder must be told to make this direction again.
fn again(way: &Direction) -> DirectionBuilder {
    let mut builder = match &way.line {
        None => Direction::builder(way.rate),
        Some(StageConfig::Queue(queue)) => {
            let builder = Direction::sending(queue.rate.clone());
            if queue.discipline == Discipline::DropTail { builder } else { builder.aqm(queue.discipline) }
        }
        Some(StageConfig::Airtime(air)) => Direction::builder(air.rate).airtime(Radio {
            access: air.access,
            backoff: air.backoff,
            slot: air.slot,
            max_packets: air.max_packets,
            max_bytes: air.max_bytes,
            failure: air.failure,
            max_retries: air.max_retries,
            retry_after: air.retry_after,
        }),
        Some(other) => panic!("no line: {other:?}"),
    };
    builder = builder.delay(way.delay).jitter(way.jitter).queue(way.queue).loss(way.loss, way.loss_by);
    way.before.iter().chain(&way.after).cloned().fold(builder, DirectionBuilder::stage)
}

/// The scenario, put together from its own values.
fn rebuilt(scenario: &Scenario) -> Result<Scenario, InvalidScenario> {
    let begun = Scenario::builder(&scenario.name)
        .title(&scenario.title)
        .source(&scenario.source)
        .client_mtu(Bytes(u64::from(scenario.client_mtu)))
        .server_mtu(Bytes(u64::from(scenario.server_mtu)));
    let link = |link: &Link| {
        let builder = Link::builder(&link.name, again(&link.down), again(&link.up))
            .mtu(link.mtu)
            .icmp(link.icmp)
            .framing(&link.framing_name)
            .hop(link.hop.clone());
        if link.half_duplex { builder.half_duplex() } else { builder }
    };
    scenario.links.iter().map(link).fold(begun, ScenarioBuilder::link).build()
}

#[test]
fn a_scenario_that_is_built_equals_the_same_one_read() {
    for name in presets::names() {
        let read = presets::load(name).unwrap();
        assert_eq!(rebuilt(&read).unwrap_or_else(|error| panic!("{name}: {error}")), read, "{name}");
    }
    let hop = "hop = { nat = true, mss_clamp = \"pmtu\", strip = [\"sack\"], host = \"edge\", icmp_per_second = 0 }";
    for extra in [
        "steps = { rates = [[\"0s\", \"2mbit\"], [\"1s\", \"9mbit\"]], period = \"10s\" }",
        "rate = \"8mbit\"\nbucket = { burst = \"64KiB\", peak = \"1gbit\" }",
        "rate = \"56kbit\"\nmodem = { escapes = \"0.8%\" }\naqm = { kind = \"pie\" }",
        "rate = \"8mbit\"\npolicer = { rate = \"5mbit\", burst = \"64KiB\" }\nduplicate = \"1%\"\njitter = \"2ms\"",
        "rate = \"8mbit\"\nthinning = { every = 4, hold = \"5ms\" }\nreorder = { probability = \"1%\", by = \"5ms\" }",
    ] {
        let both = "down = { rate = \"8mbit\" }\nup = { rate = \"1mbit\" }";
        let text = format!(
            "title = \"t\"\nsource = \"s\"\n[[link]]\nname = \"a\"\n{both}\n\
             [[link]]\nname = \"b\"\n{hop}\nup = {{ rate = \"1mbit\" }}\n[link.down]\n{extra}\n"
        );
        let read = Scenario::parse("mine.toml", &text).unwrap_or_else(|error| panic!("{extra}: {error}"));
        assert_eq!(rebuilt(&read).unwrap_or_else(|error| panic!("{extra}: {error}")), read, "{extra}");
    }
}

#[test]
fn what_isnt_said_is_as_in_a_file_that_doesnt_say_it() {
    let text = "title = \"t\"\nsource = \"s\"\n[[link]]\nname = \"l\"\ndown = { rate = \"8mbit\" }\nup = { rate = \"1mbit\" }\n";
    let way = |mbit: u64| Direction::builder(BitsPerSecond(mbit * 1_000_000));
    let built = Scenario::builder("mine").title("t").source("s").link(Link::builder("l", way(8), way(1))).build();
    assert_eq!(built, Ok(Scenario::parse("mine.toml", text).unwrap()));
}

/// What the reader says of a file of one link with this in its table, without the line.
fn refused(link: &str) -> String {
    let text = format!("title = \"t\"\nsource = \"s\"\n[[link]]\nname = \"l\"\n{link}\n");
    Scenario::parse("mine.toml", &text).expect_err(link).message
}

#[test]
fn a_builder_refuses_what_the_reader_refuses_in_the_same_words() {
    let way = || Direction::builder(BitsPerSecond(8_000_000));
    let link = |down: DirectionBuilder| Link::builder("l", down, way());
    let file = |down: &str| format!("down = {{ rate = \"8mbit\"{down} }}\nup = {{ rate = \"8mbit\" }}");
    let both = file("");
    let long = Duration::from_secs(61);
    let by_size = |share| LossConfig::BySize { above: Bytes(512), long: Ratio(share), short: Ratio(0.0) };
    let bucket = TokenBucketConfig { rate: BitsPerSecond(8_000_000), burst: Bytes(0), peak: None };
    let red = wt_link::RedConfig::between(9, 3);
    let uniform = wt_link::Distribution::Uniform { min: Duration::ZERO, max: Duration::from_millis(5) };
    let jitter = StageConfig::Jitter(JitterConfig { distribution: uniform, correlation: Ratio(0.0), reorder: false });
    let host = |name: &str, mtu| Hop { host: Some(MiddleHost { name: name.to_owned(), mtu }), ..Hop::default() };
    for (builder, text) in [
        (link(Direction::builder(BitsPerSecond(1))), both.replacen("8mbit", "1bit", 1)),
        (link(way().delay(long)), file(", delay = \"61s\"")),
        (link(way().jitter(long)), file(", jitter = \"61s\"")),
        (link(way().queue(QueueBound::Packets(0))), file(", queue_packets = 0")),
        (link(way().queue(QueueBound::Bytes(Bytes(9)))), file(", queue = \"9B\"")),
        (link(way().queue(QueueBound::Bytes(Bytes(1_500)))), file(", queue = \"1500B\"")),
        (link(way().loss(Ratio(1.5), LossBy::Random)), file(", loss = \"150%\"")),
        (
            link(way().stage(StageConfig::Loss(by_size(1.5)))),
            file(", loss_model = { kind = \"by-size\", above = \"512B\", long = \"150%\", short = \"0%\" }"),
        ),
        (link(way().stage(StageConfig::Duplicate { probability: Ratio(1.5) })), file(", duplicate = \"150%\"")),
        (link(Direction::sending(RateConfig::TokenBucket(bucket))), file(", bucket = { burst = \"0B\" }")),
        (link(way().aqm(Discipline::Red(red))), file(", aqm = { kind = \"red\", min = 9, max = 3 }")),
        (
            link(way().jitter(Duration::from_millis(1)).stage(jitter)),
            file(", jitter = \"1ms\", jitter_model = { kind = \"uniform\", max = \"5ms\" }"),
        ),
        (link(way()).mtu(Bytes(20)), format!("mtu = 20\n{both}")),
        (link(way()).framing("pppoe-atn"), format!("framing = \"pppoe-atn\"\n{both}")),
        (link(way().delay(Duration::from_millis(1))).half_duplex(), {
            format!("half_duplex = true\n{}", file(", delay = \"1ms\""))
        }),
        (link(way()).hop(host("edge", 1_500)), format!("hop = {{ host = \"edge\" }}\n{both}")),
        (link(way()).hop(Hop { window_scale: Some(15), ..Hop::default() }), {
            format!("hop = {{ window_scale = 15 }}\n{both}")
        }),
    ] {
        let said = Scenario::builder("mine").link(builder).build().expect_err(&text).to_string();
        assert_eq!(said, refused(&text), "{text}");
    }
    let second = |hop| Scenario::builder("mine").link(link(way())).link(link(way()).hop(hop)).build();
    for (hop, wanted) in [
        (host("server", 1_500), "that no other host has"),
        (host("edge", 20), "hop.host_mtu: 20 is out of range: allowed is 576 to 65535"),
        (
            Hop { mss: Some(1_300), mss_clamp: Some(MssClamp::Pmtu), ..Hop::default() },
            "write either mss or mss_clamp, not both",
        ),
    ] {
        let said = second(hop).expect_err(wanted).to_string();
        assert!(said.contains(wanted), "{said}");
    }
    assert!(second(host("edge", 1_500)).is_ok());
    assert_eq!(
        Scenario::builder("none").build().unwrap_err().to_string(),
        "link: there must be 1 to 64 links, and there are 0"
    );
    let small = Scenario::builder("mine").mtu(Bytes(20)).link(link(way())).build().unwrap_err();
    assert_eq!(small.to_string(), "client.mtu: 20 is out of range: allowed is 576 to 65535");
}
