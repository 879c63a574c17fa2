//! `windtunnel predict` and `replay`, run as a person runs them.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common;
use crate::common::host::{directory, script};
use crate::common::{json, run};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::Value;

fn studies() -> String {
    format!("{}/../../studies", env!("CARGO_MANIFEST_DIR"))
}

fn arm<'a>(answer: &'a Value, knob: &str, level: &str) -> &'a Value {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let arms = answer["arms"].as_array().unwrap();
    arms.iter().find(|arm| !arm["settings"][knob].is_null() && text(&arm["settings"][knob]) == level).unwrap()
}

#[test]
fn a_window_of_half_the_product_costs_half_and_the_model_says_how_wrong_it_may_be() {
    let answer = json(&["predict", "adsl", "--json", "--knobs", "rwin", "--levels", "rwin=10x,40x"]);
    assert_eq!((&answer["schema_version"], &answer["tunnel"]), (&1.into(), &"sim".into()));
    let gain = |level| arm(&answer, "rwin", level)["gain"].as_f64().unwrap();
    assert!((-0.55..-0.45).contains(&gain("14400")), "{}", gain("14400"));
    assert!(gain("57600").abs() < 0.02, "{}", gain("57600"));
    let error = &answer["model_error"];
    assert_eq!(error["region"], "dsl");
    assert!(error["p90"].as_f64().unwrap() > 0.0 && error["kernel"].as_str().unwrap().contains('.'));
    assert_eq!(answer["candidates"], Value::Array(Vec::new()), "nothing beats the line");
}

#[test]
fn rates_are_written_in_the_unit_that_is_asked_for_in_the_table_and_on_the_axis() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chart.svg");
    let told = run(&["predict", "adsl", "--levels", "rwin=10x,40x", "--units", "kB", "--svg", file.to_str().unwrap()]);
    // The path's own name is in Mbit/s.
    let rows: Vec<&str> = told.out.lines().skip(3).collect();
    let has = |unit: &str| rows.iter().any(|line| line.contains(unit));
    assert!(told.code == 0 && has(" kB/s") && !has("Mbit/s"), "{}{}", told.out, told.err);
    let chart = std::fs::read_to_string(&file).unwrap();
    assert!(chart.contains("kB/s") && !chart.contains("Mbit/s"), "{chart}");
}

#[test]
fn a_path_from_flags_is_answered_with_a_range_where_there_is_chance() {
    let flags = ["predict", "--json", "--rate", "20mbit", "--rtt", "80ms", "--loss", "1%", "--queue", "200KiB"];
    let question = [&flags[..], &["--knobs", "cc", "--size", "2MB", "--seeds", "10"]].concat();
    let answer = json(&question);
    assert_eq!(answer["seeds"], 10);
    let bbr = arm(&answer, "cc", "bbr");
    assert!(bbr["gain"].as_f64().unwrap() > 0.5, "BBR doesn't mind random loss: {bbr}");
    assert_eq!(bbr["worth_measuring"], true);
    let current = &answer["arms"][0];
    assert!(current["goodput_p5_bps"].as_f64() < current["goodput_p95_bps"].as_f64(), "{current}");
    assert_eq!(json(&question), answer, "the same seeds give the same answer");
}

#[test]
fn a_burst_of_64_segments_into_a_queue_of_20_packets_is_worse_with_every_control() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("short-queue.toml");
    let text = "title = \"a short queue\"\nsource = \"a test\"\n[[link]]\nname = \"l\"\nmtu = 1500\n\
        down = { rate = \"5mbit\", delay = \"25ms\", queue_packets = 20 }\n\
        up = { rate = \"5mbit\", delay = \"25ms\", queue_packets = 100 }\n";
    std::fs::write(&path, text).unwrap();
    for control in ["reno", "cubic", "bbr"] {
        let set = |window: u32| {
            let set = format!("cc={control},initcwnd={window}");
            let answer = json(&["predict", path.to_str().unwrap(), "--json", "--workload", "page", "--set", &set]);
            let number = |name: &str| arm(&answer, "cc", control)[name].as_f64().unwrap();
            (number("figure"), number("retransmitted_share"))
        };
        let (usual, large) = (set(10), set(64));
        assert!(large.0 > 1.2 * usual.0 && large.1 > 1.5 * usual.1, "{control}: {usual:?} {large:?}");
    }
}

#[test]
fn workloads_have_the_labs_words_and_are_told_by_their_own_figures() {
    let page = json(&["predict", "lte", "--json", "--workload", "page", "--knobs", "initcwnd"]);
    assert_eq!((&page["workload"]["kind"], &page["bytes"]), (&"page".into(), &265_100.into()));
    assert_eq!((&page["measured"]["name"], &page["measured"]["better"]), (&"load time".into(), &"smaller".into()));
    let load = |answer: &Value| answer["figure"].as_f64().unwrap();
    let (current, small) = (&page["arms"][0], arm(&page, "initcwnd", "4"));
    assert!(load(small) > load(current), "{small} against {current}");
    let gain = small["gain"].as_f64().unwrap();
    assert!((load(current) / load(small) - 1.0 - gain).abs() < 1e-9, "a longer time is a loss: {gain}");
    let talk = json(&["predict", "adsl", "--json", "--workload", "transactions:think=20ms,count=30", "--knobs", "cc"]);
    assert_eq!(talk["measured"]["unit"], "1/s");
    let each = 1.0 / load(&talk["arms"][0]);
    assert!((0.052..0.062).contains(&each), "20 ms and a round trip of about 35: {each}");
    let beside = json(&["predict", "adsl", "--json", "--workload", "competing:rivals=2", "--levels", "rwin=4x"]);
    let current = &beside["arms"][0];
    let limit = beside["path_facts"]["physical_goodput_bps"].as_f64().unwrap();
    assert!((0.1..0.6).contains(&(load(current) / limit)), "one of three: {current}");
}

#[test]
fn latency_under_load_and_streams_are_answered_too() {
    let path = ["predict", "--json", "--rate", "10mbit", "--rtt", "40ms", "--knobs", "cc"];
    let load = json(&[&path[..], &["--queue", "400KiB", "--workload", "load"]].concat());
    assert_eq!((&load["measured"]["unit"], &load["measured"]["better"]), (&"1/min".into(), &"larger".into()));
    let figure = |answer: &Value, at: usize| answer["arms"][at]["figure"].as_f64().unwrap();
    let bbr = arm(&load, "cc", "bbr");
    assert!(bbr["figure"].as_f64().unwrap() > 1.5 * figure(&load, 0), "BBR keeps queues short: {load}");
    let calm = json(&[&path[..], &["--workload", "stream"]].concat());
    let lossy = json(&[&path[..], &["--workload", "stream", "--loss", "2%"]].concat());
    assert_eq!(calm["measured"]["better"], "smaller");
    assert!(figure(&lossy, 0) > 0.03 && figure(&calm, 0) < 0.001, "{calm} {lossy}");
}

#[test]
fn the_model_of_a_cdn_names_the_windows_that_matter_on_hits_and_on_misses() {
    let answer = json(&["cdn", "--model", "--json"]);
    let ratio = |kind: &str, window: &str| {
        let windows = answer["requests"][kind]["windows"].as_array().unwrap();
        windows.iter().find(|one| one["window"] == window).unwrap()["ratio"].as_f64().unwrap()
    };
    for (kind, window) in [("hit", "backend"), ("hit", "edge-receive")] {
        assert!((ratio(kind, window) - 1.0).abs() < 1e-9, "a hit never leaves the edge");
    }
    assert!(ratio("hit", "edge-send") > 1.15 && ratio("hit", "client") > 1.05, "{answer}");
    assert!(ratio("miss", "backend") > 1.15 && ratio("miss", "edge-receive") > 1.05, "{answer}");
    let cells = answer["requests"]["miss"]["combinations"].as_array().unwrap();
    assert_eq!(cells.len(), 8);
    assert!(cells.iter().all(|cell| (0.2..1.0).contains(&cell["seconds"].as_f64().unwrap())), "{cells:?}");
    assert_eq!(json(&["cdn", "--model", "--json"]), answer);
}

#[test]
fn the_number_of_threads_changes_not_a_byte() {
    let question = ["predict", "--json", "--rate", "20mbit", "--rtt", "60ms", "--loss", "2%", "--size", "500kB"];
    let many = json(&[&question[..], &["--knobs", "cc,rwin", "--seeds", "8"]].concat());
    let home = tempfile::tempdir().unwrap();
    // On one processor there is one thread.
    let mut one = std::process::Command::new("taskset");
    one.args(["-c", "0"]).arg(common::binary()).args(question).args(["--knobs", "cc,rwin", "--seeds", "8"]);
    let output = one.env("XDG_DATA_HOME", home.path()).output().unwrap();
    let alone: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(alone, many);
}

#[test]
fn nonsense_ends_with_usage_and_a_reason() {
    for (args, reason) in [
        (&["predict", "--rate", "0"][..], "without a rate"),
        (&["predict", "--link-rate", "16.5"], "did you mean 16.5mbit, 16.5kbit or 16.5bit?"),
        (&["predict", "--link-rate", "8mbit", "--up-rate", "1"], "\"1\" has no unit"),
        (&["predict", "--link-rate", "8mbit", "--loss", "100%"], "everything is lost"),
        (&["predict", "--rate", "8mbit", "--mtu", "68"], "out of range"),
        (&["predict", "--rate", "8mbit", "--rtt", "1h"], "out of range"),
        (&["predict", "adsl", "--levels", "cc=quic"], "quic"),
        (&["predict", "nowhere"], "no preset"),
        (&["predict"], "--link-rate"),
        (&["predict", "adsl", "--rate", "8mbit"], "cannot be used"),
        (&["predict", "adsl", "--workload", "page:http=2"], "HTTP/2"),
        (&["predict", "adsl", "--workload", "competing:rivals=1000000"], "rivals"),
        (&["predict", "adsl", "--workload", "pages"], "no workload"),
        (&["predict", "adsl", "--workload", "page", "--size", "1MB"], "one transfer"),
        (&["replay", "/dev/null"], "no study"),
        (&["calibrate", "--only", "the moon"], "the moon"),
    ] {
        let ran = run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(reason), "{args:?}: {}", ran.err);
    }
}

#[test]
fn the_studies_are_replayed_with_their_own_figures_beside() {
    let answer = json(&["replay", "--json", &studies()]);
    let study = |name: &str| {
        let all = answer["studies"].as_array().unwrap();
        all.iter().find(|study| study["study"] == name).unwrap_or_else(|| panic!("{name} isn't there")).clone()
    };
    let model = |study: &Value, row: usize| study["rows"][row]["model"].as_f64().unwrap();
    let windows = study("dialup-rwin");
    assert_eq!(windows["rows"][0]["study"], serde_json::json!([1964.0, 2254.0]));
    let limit = 26_400.0 / 8.0 * 1460.0 / 1507.0;
    // Linux sends two halves where one segment would fill the window, so even that keeps the line busy.
    let halves = 26_400.0 / 8.0 * 730.0 / 777.0;
    assert!((0.95..=1.01).contains(&(model(&windows, 0) / halves)), "{} of {halves}", model(&windows, 0));
    for row in 1..9 {
        assert!((0.97..=1.0).contains(&(model(&windows, row) / limit)), "row {row}: {}", model(&windows, row));
    }
    let ttl = study("dialup-ttl");
    assert!((1..4).all(|row| model(&ttl, row) == model(&ttl, 0)), "a time to live changes nothing");
    let scp = study("freebsd-scp");
    assert!((50.0..70.0).contains(&model(&scp, 0)), "reported were 55 to 60 kB/s, the model says {}", model(&scp, 0));
    assert!(model(&scp, 1) > 1.2 * model(&scp, 0), "chd bears loss: {} against {}", model(&scp, 1), model(&scp, 0));
    let pages = study("first-window-pages");
    assert!(model(&pages, 0) > 1.1 * model(&pages, 1), "a window of 3 costs round trips: {pages}");
    let adsl = study("adsl-factorial");
    assert!(adsl["notes"][0].as_str().unwrap().contains("20 %") && adsl["notes"][0].as_str().unwrap().contains("85 %"));
}

#[test]
fn the_chart_is_written_as_svg() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chart.svg");
    let ran = run(&["predict", "dialup", "--knobs", "rwin", "--size", "100kB", "--svg", file.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let svg = std::fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("rwin"));
    assert!(ran.out.contains("Known error") && ran.out.contains("nothing is left to chance"), "{}", ran.out);
}

#[test]
fn a_table_of_paths_is_answered_as_each_path_alone_and_shards_give_the_same_lines() {
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(
        file("paths.csv"),
        "office,link_rate,rtt,loss\nBerlin,8mbit,40ms,\n\"Oslo, north\",2mbit,90ms,1%\nRome,1mbit,30ms,\n",
    )
    .unwrap();
    let question =
        ["predict", "--table", &file("paths.csv"), "--set", "initcwnd=20", "--size", "100kB", "--seeds", "5"];
    let whole = run(&[&question[..], &["--out", &file("whole.csv")]].concat());
    assert_eq!(whole.code, 0, "{}", whole.err);
    assert!(whole.err.contains("Columns kept as they are: office.") && whole.err.contains("3 rows"), "{}", whole.err);
    let lines = |name: &str| -> Vec<String> {
        std::fs::read_to_string(file(name)).unwrap().lines().map(str::to_owned).collect()
    };
    let whole = lines("whole.csv");
    assert!(whole[0].starts_with("row,office,link_rate,rtt,loss,arm,setting,goodput_bps,"), "{}", whole[0]);
    assert_eq!(whole.len(), 7);
    let alone = json(&["predict", "--json", "--rate", "8mbit", "--set", "initcwnd=20", "--size", "100kB"]);
    let goodput = arm(&alone, "initcwnd", "20")["goodput_bps"].as_f64().unwrap();
    assert!(
        whole[2].starts_with("1,Berlin,8mbit,40ms,,1,") && whole[2].contains(&format!(",{goodput},")),
        "{}",
        whole[2]
    );
    let mut parts = vec![whole[0].clone()];
    for shard in ["1/2", "2/2"] {
        let ran = run(&[&question[..], &["--shard", shard, "--out", &file("part.csv")]].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        parts.extend(lines("part.csv").into_iter().skip(1));
    }
    parts[1..].sort();
    assert_eq!(parts, whole);
    assert_eq!(run(&question).out.lines().collect::<Vec<_>>(), whole, "on standard output");
    let ran = run(&[&question[..], &["--out", &file("whole.parquet")]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let reader = SerializedFileReader::new(std::fs::File::open(file("whole.parquet")).unwrap()).unwrap();
    let rows: Vec<Row> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    let mut csv = csv::Reader::from_reader(std::fs::File::open(file("whole.csv")).unwrap());
    let head = csv.headers().unwrap().clone();
    let records: Vec<csv::StringRecord> = csv.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), records.len());
    for (row, record) in rows.iter().zip(&records) {
        let columns: Vec<(&String, &Field)> = row.get_column_iter().collect();
        assert_eq!(columns.len(), head.len());
        for (((name, field), column), cell) in columns.into_iter().zip(&head).zip(record) {
            assert_eq!(name, column);
            let is_same = match field {
                Field::Null => cell.is_empty(),
                Field::Str(text) => text == cell,
                Field::Long(number) => number.to_string() == cell,
                Field::Double(number) => cell.parse() == Ok(*number),
                Field::Bool(is_on) => is_on.to_string() == cell,
                other => panic!("{name}: {other:?}"),
            };
            assert!(is_same, "{name}: {field:?} isn't {cell:?}");
        }
    }
}

#[test]
fn a_wrong_table_is_told_by_its_rows_and_leaves_what_was_there() {
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(file("paths.csv"), "link_rate,rtt\n8mbit,40ms\nfast,1s\n").unwrap();
    std::fs::write(file("out.csv"), "earlier").unwrap();
    let ran = run(&["predict", "--table", &file("paths.csv"), "--out", &file("out.csv")]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("1 of 2 rows") && ran.err.contains("row 2: link_rate \"fast\""), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(file("out.csv")).unwrap(), "earlier");
    for (args, part) in [
        (&["--table", "/nonexistent"][..], "can't read /nonexistent"),
        (&["--table", "/"], "is a folder"),
        (&["--table", "/dev/zero"], "it isn't a table: it has a zero byte"),
        (&["--table", &file("paths.csv"), "--shard", "3/2"], "doesn't exist"),
        (&["--table", &file("paths.csv"), "--shard", "/2"], "which of 2 shards"),
        (&["--table", &file("paths.csv"), "--json"], "--json"),
    ] {
        let ran = run(&[&["predict"], args].concat());
        assert!(ran.code == 2 && ran.err.contains(part), "{args:?}: {}", ran.err);
    }
}

#[test]
fn a_path_of_its_own_takes_no_links_options_and_a_table_does() {
    for (args, wanted) in [
        (&["predict", "adsl", "--loss", "3%"][..], "a path, adsl, and --loss exclude each other"),
        (&["predict", "adsl", "--rtt", "40ms"], "a path, adsl, and --rtt exclude each other"),
        (&["predict"], "no path is named"),
        (&["predict", "--link-rate", "8mbit", "--loss", "200%"], "a loss of 200%"),
    ] {
        let ran = run(args);
        assert!(ran.code == 2 && ran.err.contains(wanted), "{args:?}: {}{}", ran.out, ran.err);
    }
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("paths.csv");
    std::fs::write(&table, "link_rate,rtt\n8mbit,\n8mbit,50ms\n8mbit,80ms\n").unwrap();
    let args = ["predict", "--table", table.to_str().unwrap(), "--rtt", "50ms", "--size", "100kB", "--set", "cc=bbr"];
    let ran = run(&args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let column = |row: usize, name: &str| {
        let lines: Vec<Vec<&str>> = ran.out.lines().map(|line| line.split(',').collect()).collect();
        let at = lines[0].iter().position(|cell| *cell == name).unwrap();
        lines[1 + row * 2][at].to_owned()
    };
    assert_eq!(column(0, "goodput_bps"), column(1, "goodput_bps"), "{}", ran.out);
    assert_ne!(column(0, "goodput_bps"), column(2, "goodput_bps"), "{}", ran.out);
}

#[test]
fn settings_that_were_asked_for_together_are_measured_together() {
    let ran = run(&["predict", "transatlantic", "--set", "cc=bbr,initcwnd=40", "--size", "1MB", "--seeds", "2"]);
    let wanted = "tune --lab transatlantic --arm current --arm 'cc=bbr,initcwnd=40' --workload bulk:size=";
    assert!(ran.out.contains(wanted), "{}{}", ran.out, ran.err);
    let ran = run(&["predict", "transatlantic", "--set", "initcwnd=40", "--workload", "page", "--seeds", "2"]);
    assert!(ran.out.contains("--levels initcwnd=40 --workload page"), "{}{}", ran.out, ran.err);
}

#[test]
fn what_a_gain_must_exceed_is_said_where_the_known_error_is_smaller() {
    let least = "more than 1 %, the least that is worth a measurement";
    let dsl = ["predict", "adsl", "--size", "100kB", "--set"];
    for (set, words) in
        [("rwin=40x", format!("No setting gains {least}:")), ("initcwnd=40", format!("* gains {least}."))]
    {
        let ran = run(&[&dsl[..], &[set]].concat());
        assert!(ran.out.contains("nine in ten within 0.8 %") && ran.out.contains(&words), "{}{}", ran.out, ran.err);
    }
    let ran = run(&["predict", "lan", "--size", "100kB", "--set", "initcwnd=11"]);
    assert!(ran.out.contains("nine in ten within 4.6 %") && ran.out.contains("gains more than that"), "{}", ran.out);
}

#[test]
fn what_takes_longer_than_an_hour_is_compared_until_then_and_said_so() {
    let link = ["predict", "--link-rate", "16kbit", "--rtt", "100ms", "--size", "9MB"];
    let ran = run(&[&link[..], &["--set", "timestamps=off"]].concat());
    let words = ["The model stopped early, after an hour of its own time", "+0.9 %"];
    assert!(words.iter().all(|words| ran.out.contains(words)), "{}{}", ran.out, ran.err);
}

#[test]
fn what_works_instead_is_worth_measuring_and_one_random_seed_proves_no_gain() {
    let ran = run(&["predict", "black-hole", "--knobs", "mtu", "--size", "300kB"]);
    let wanted = ["works *", "gets done what the current settings don't", "tune --lab black-hole --levels mtu=1400"];
    assert!(wanted.iter().all(|words| ran.out.contains(words)), "{}{}", ran.out, ran.err);
    let lossy = ["predict", "--rate", "20mbit", "--rtt", "40ms", "--loss", "1%", "--size", "300kB", "--set", "cc=bbr"];
    let ran = run(&[&lossy[..], &["--seeds", "1"]].concat());
    assert!(ran.out.contains("one random seed") && ran.out.contains("One seed doesn't tell"), "{}{}", ran.out, ran.err);
}

#[test]
fn an_answer_never_takes_the_place_of_the_table_that_it_is_about() {
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let table = "site,link_rate,rtt\nBerlin,100mbit,12ms\n";
    std::fs::write(file("mine.csv"), table).unwrap();
    std::os::unix::fs::symlink(file("mine.csv"), file("link.csv")).unwrap();
    for out in ["mine.csv", "link.csv"] {
        let ran = run(&["predict", "--table", &file("mine.csv"), "--set", "cc=bbr", "--out", &file(out)]);
        assert!(ran.code == 2 && ran.err.contains("the answer would replace it"), "{out}: {}", ran.err);
        assert_eq!(std::fs::read_to_string(file("mine.csv")).unwrap(), table, "{out}");
    }
}

#[test]
fn a_chart_that_cannot_be_written_takes_no_answer_from_the_screen() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("none").join("x.svg");
    let nowhere = nowhere.to_str().unwrap();
    let ask = ["predict", "adsl", "--size", "100kB", "--set", "initcwnd=20", "--svg", nowhere];
    for (more, part) in [(&[][..], "Known error"), (&["--json"], "\"candidates\"")] {
        let ran = run(&[&ask[..], more].concat());
        assert!(ran.code == 3 && ran.out.contains(part), "{}{}", ran.out, ran.err);
        assert!(ran.err.contains(&format!("can't write {nowhere}")), "{}", ran.err);
    }
}

#[test]
fn what_the_send_buffer_holds_is_told_where_no_other_buffer_was_asked_about() {
    let path = ["predict", "--link-rate", "200mbit", "--rtt", "400ms", "--size", "24MB", "--knobs"];
    let told = run(&[&path[..], &["mtu"]].concat());
    let words = ["none of them is what holds the transfer", "room in its send buffer", "--knobs sndbuf"];
    assert!(words.iter().all(|words| told.out.contains(words)), "{}{}", told.out, told.err);
    assert!(!told.out.contains("nothing here is worth measuring"), "{}", told.out);
    let short = run(&["predict", "adsl", "--knobs", "mtu", "--size", "100kB"]);
    assert!(!short.out.contains("send buffer"), "{}", short.out);
}

#[test]
fn who_has_seen_enough_of_a_tables_answer_ends_it_quietly() {
    use std::process::Stdio;
    let home = tempfile::tempdir().unwrap();
    let table = home.path().join("paths.csv");
    std::fs::write(&table, "link_rate,rtt\n8mbit,40ms\n").unwrap();
    let mut asked = std::process::Command::new(common::binary());
    asked.arg("predict").arg("--table").arg(&table).args(["--set", "cc=bbr", "--size", "20kB"]);
    asked.env("XDG_DATA_HOME", home.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = asked.spawn().unwrap();
    drop(child.stdout.take());
    let ran = child.wait_with_output().unwrap();
    assert_eq!((ran.status.code(), String::from_utf8_lossy(&ran.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn current_are_the_settings_of_linux_on_every_host_and_those_of_this_one_where_that_is_asked() {
    let home = directory();
    let on_a_host = |words: &str| {
        let other = "echo reno > /proc/sys/net/ipv4/tcp_congestion_control; \
            echo 4096 131072 6291456 > /proc/sys/net/ipv4/tcp_rmem; echo 4096 16384 4194304 > /proc/sys/net/ipv4/tcp_wmem; \
            COLUMNS=1000 \"$WT\" predict transatlantic --size 100kB --seeds 2 --knobs cc";
        let ran = script(home.path(), &format!("{other} {words}"));
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        ran.out
    };
    let answer = |words: &str| serde_json::from_str::<Value>(&on_a_host(words)).unwrap();
    let everywhere = answer("--json");
    let question = ["predict", "transatlantic", "--size", "100kB", "--seeds", "2", "--knobs", "cc", "--json"];
    assert_eq!(everywhere, json(&question), "the same on a host with other settings");
    let why = everywhere["arms"][0]["why"].as_str().unwrap();
    assert!(why.contains("Linux 6.18") && why.contains("cc=cubic") && why.contains("32 MiB"), "{why}");
    let said = on_a_host("");
    let wanted = "This host has cc=reno, tcp_rmem from 128 KiB to 6 MiB";
    assert!(said.contains("current (rwin=auto mtu=1500 cc=cubic)") && said.contains(wanted), "{said}");
    let here = answer("--json --this-host");
    assert_eq!((&here["this_host"]["cc"], &here["this_host"]["rmem_max"]), (&"reno".into(), &6_291_456.into()));
    assert!(here["arms"][0]["why"].as_str().unwrap().starts_with("this host's: cc=reno, "), "{here}");
    let goodput = |arm: &Value| arm["goodput_bps"].as_f64().unwrap();
    assert_eq!(
        goodput(&here["arms"][0]),
        goodput(arm(&everywhere, "cc", "reno")),
        "what it has is what is compared with"
    );
    assert!(goodput(arm(&here, "cc", "cubic")) > 0.0 && everywhere.get("this_host").is_none());
    let said = on_a_host("--this-host");
    assert!(said.contains("cc=reno)") && said.contains("The current settings are this host's: cc=reno, "), "{said}");
}
