use super::super::Scenario;
use super::with;

#[test]
fn a_value_of_another_type_is_told_with_its_link_its_direction_and_how_it_is_written() {
    let both = |down: &str, up: &str| {
        format!("title = \"t\"\n[[link]]\nname = \"a b\"\ndown = {{ {down} }}\nup = {{ {up} }}\n")
    };
    let rate = "rate = \"8mbit\"";
    for (extra, wanted) in [
        (
            "loss = 0.01",
            "link \"a b\", down.loss: invalid type: floating point `0.01`, expected a string; write a share in quotes, with its sign: \"0.1%\"",
        ),
        ("duplicate = 0.1", "link \"a b\", down.duplicate: "),
        ("delay = 8", "write a time in quotes, with its unit: \"8ms\""),
        ("queue = 65536", "write a size in quotes, with its unit: \"64KiB\""),
        ("queue_packets = 1.5", "write a whole number, without quotes: 100"),
        ("policer = { rate = \"1mbit\" }", "link \"a b\", down.policer: missing field `burst`"),
        ("policer = { rate = 5, burst = \"9kB\" }", "link \"a b\", down.policer.rate: "),
        ("polcer = 5", "link \"a b\", down: unknown field `polcer`"),
    ] {
        let error = Scenario::parse("mine.toml", &both(&format!("{rate}, {extra}"), rate)).expect_err(extra);
        assert!(error.message.contains(wanted) && error.line == 4, "{extra}: {error}");
        let up = Scenario::parse("mine.toml", &both(rate, &format!("{rate}, {extra}"))).expect_err(extra).message;
        assert!(up.contains(&wanted.replace("down", "up")), "{extra}: {up}");
    }
    for (text, wanted) in [
        (with("").replace("name = \"l\"", "mtu = \"1500B\""), "link 1, mtu: invalid type"),
        (
            with("").replace("name", "mtu = \"1500B\"\nname"),
            "link \"l\", mtu: invalid type: string \"1500B\", expected i64; write a whole number of bytes, without quotes: 1500",
        ),
        (with("").replace("up = { rate = \"1mbit\" }", ""), "link \"l\": missing field `up`"),
        ("title = \"t\"\nclient = { mtu = \"9\" }\nlink = []".to_owned(), "client.mtu: "),
        ("title = \"t\"".to_owned(), "missing field `link`: a path has a table [[link]] for each of its links"),
        ("title = \"t\"\nlink = [5]".to_owned(), "link 1: invalid type"),
    ] {
        let error = Scenario::parse("mine.toml", &text).expect_err(wanted);
        assert!(error.message.starts_with(wanted), "{error}");
    }
}
