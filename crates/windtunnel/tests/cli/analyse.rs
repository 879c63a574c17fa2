//! `windtunnel analyse` and `windtunnel self-test`, run as a person runs them.

use crate::common;
use crate::common::{json, run, windtunnel};
use serde_json::Value;
use std::io::Write as _;

/// A table of the old studies.
fn study(name: &str) -> String {
    format!("{}/../../studies/{name}.csv", env!("CARGO_MANIFEST_DIR"))
}

fn analyse(name: &str) -> Value {
    json(&["analyse", "--json", &study(name)])
}

/// Asserts figures to four significant digits.
#[track_caller]
fn near(got: &Value, want: f64) {
    let got = got.as_f64().unwrap_or_else(|| panic!("{got} is no number"));
    let unit = 10f64.powf(want.abs().log10().floor() - 3.0);
    assert!((got - want).abs() <= 0.5001 * unit, "got {got}, want {want}");
}

/// Writes a table and analyses it; gives code and message.
fn of_text(text: &[u8], args: &[&str]) -> (i32, String) {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("t.csv");
    std::fs::File::create(&file).and_then(|mut f| f.write_all(text)).expect("a file");
    let output = windtunnel(home.path()).arg("analyse").args(args).arg(&file).output().expect("a run");
    let ran = common::ran(output);
    (ran.code, format!("{}{}", ran.out, ran.err))
}

#[test]
fn the_contract_holds_for_the_ttl_table() {
    let a = analyse("dialup-ttl");
    assert_eq!(a["design"]["factor"], "ttl");
    assert_eq!(a["design"]["levels"], serde_json::json!(["0", "32", "64", "128"]));
    assert_eq!(a["design"]["blocks"], serde_json::json!(["series1", "series2", "series3", "series4"]));
    let d = &a["describe"][3];
    assert_eq!(d["level"], "128");
    for (key, want) in [("mean", 1349.0), ("geometric_mean", 1286.0), ("sd", 471.6), ("sd_of_mean", 235.8)] {
        near(&d[key], want);
    }
    for (test, f, p) in [
        ("one_way_raw", 0.1571, 0.9231),
        ("one_way_log", 0.2301, 0.8736),
        ("blocked_raw", 0.6070, 0.6270),
        ("blocked_log", 0.8647, 0.4940),
    ] {
        near(&a["anova"][test]["f"], f);
        near(&a["anova"][test]["p"], p);
    }
    near(&a["anova"]["blocked_log"]["mse"], 0.01490);
    near(&a["friedman"]["q"], 2.692);
    near(&a["friedman"]["p_exact"], 0.4714);
    near(&a["permutation"]["log"]["p"], 0.4832);
    near(&a["permutation"]["raw"]["p"], 0.6111);
    let pair = &a["tukey"][2];
    assert_eq!((&pair["a"], &pair["b"]), (&Value::from("0"), &Value::from("128")));
    for (key, want) in [("ratio", 1.148), ("low", 0.8770), ("high", 1.503), ("p", 0.4247)] {
        near(&pair[key], want);
    }
    near(&a["dunnett"][2]["ratio"], 0.8710);
    near(&a["dunnett"][2]["p"], 0.3120);
    for (key, want) in [("low", -13.53), ("high", 30.23), ("p", 0.9224)] {
        near(&a["mcb"][0][key], want);
    }
    near(&a["mde"]["ratio_percent"], 31.23);
    assert_eq!((&a["blocks_needed"]["20"], &a["blocks_needed"]["5"]), (&Value::from(8), &Value::from(99)));
    for (got, want) in a["evidence"][2]["e"].as_array().expect("a series").iter().zip([1.520, 0.9116, 1.201, 1.763]) {
        near(got, want);
    }
    assert!(a["verdict"].as_str().is_some_and(|v| v.starts_with("No difference shown between the 4 levels of ttl")));
}

#[test]
fn every_study_is_recognised_and_says_no_more_than_it_can() {
    for (name, kind, says) in [
        ("dialup-ttl", "blocked", "No difference shown"),
        ("dialup-mtu", "blocked", "No difference shown"),
        ("dialup-options", "blocked", "Nothing is claimed from 4 series: 5 at least are needed."),
        ("dialup-rwin", "blocked", "No difference shown"),
        ("adsl-factorial", "two-by-two", "Nothing can be claimed"),
        ("dialup-hosts", "listing", "mean 1548 ± 88.77"),
        ("first-window-pages", "one-way", "With so few measurements"),
    ] {
        let a = analyse(name);
        assert_eq!((a["schema_version"].as_u64(), &a["design"]["kind"]), (Some(1), &Value::from(kind)), "{name}");
        assert!(a["verdict"].as_str().is_some_and(|v| v.contains(says)), "{name}: {}", a["verdict"]);
        let ran = run(&["analyse", &study(name)]);
        assert_eq!(ran.code, 1, "{name}: the answer is no");
        assert!(ran.out.contains(says), "{name}: {}", ran.out);
    }
    let ran = run(&["analyse", &study("os-defaults")]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("cannot tell which column is the outcome"), "{}", ran.err);
}

#[test]
fn the_adsl_factorial_gives_both_main_effects_and_the_interaction() {
    let a = analyse("adsl-factorial");
    let effects: Vec<f64> = (0..3).map(|i| a["effects"][i]["difference"].as_f64().expect("a number")).collect();
    for (got, want) in effects.iter().zip([0.105, 0.055, -0.015]) {
        assert!((got - want).abs() < 1e-12, "{effects:?}");
    }
}

#[test]
fn a_two_by_two_in_rounds_tests_both_main_effects_and_the_interaction() {
    let mut text = String::from("mtu,rwin,round,rate\n");
    // What is left beside the effects adds up to nothing over the rounds: the ratios are exact.
    for (round, noise) in [0.01, -0.01, 0.02, -0.02, 0.015, -0.015].into_iter().enumerate() {
        for (mtu, rwin, factor, sign) in
            [(1400, 16, 1.0, 1.0), (1400, 21, 1.0, -1.0), (1500, 16, 1.2, -1.0), (1500, 21, 1.2, 1.0)]
        {
            let rate = 1000.0 * factor * f64::exp(noise * sign) * (1.0 + round as f64 / 10.0);
            text += &format!("{mtu},{rwin},{round},{rate}\n");
        }
    }
    let (code, out) = of_text(text.as_bytes(), &["--json"]);
    let found: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &found["design"]["kind"]), (0, &Value::from("two-by-two")));
    let effect = |i: usize, field: &str| found["effects"][i][field].as_f64().expect("a number");
    assert!((effect(0, "ratio") - 1.2).abs() < 1e-9 && effect(0, "p_holm") < 0.001, "{out}");
    for i in [1, 2] {
        assert!((effect(i, "ratio") - 1.0).abs() < 1e-9 && effect(i, "p_holm") > 0.9, "{out}");
    }
    assert_eq!(found["df"], 15.0);
    let (_, text) = of_text(text.as_bytes(), &[]);
    assert!(text.starts_with("mtu 1500 is shown to be better than 1400 by 20.0%"), "{text}");
    assert!(text.contains("No effect of rwin is shown") && text.contains("No interaction is shown"), "{text}");
}

#[test]
fn two_published_means_are_compared() {
    let a = json(&["analyse", "--json", "--means", "1602±100", "1548+-89"]);
    let c = &a["comparison"];
    for (key, want) in [("standard_error", 133.9), ("z", 0.4034), ("p", 0.6867), ("low", 0.8763), ("high", 1.222)] {
        near(&c[key], want);
    }
    let ran = run(&["analyse", "--means", "1602±100", "nonsense"]);
    assert!(ran.code == 2 && ran.err.contains("1602±100"), "{}", ran.err);
    assert_eq!(run(&["analyse", "--means", "1602±0", "1548±0"]).code, 2);
}

#[test]
fn a_long_table_and_a_wide_one_of_the_same_measurements_give_the_same() {
    let long = b"mtu,day,goodput\n1400,mo,10\n1500,mo,15\n1400,tu,11\n1500,tu,16\n1400,we,9\n1500,we,14\n1400,th,10\n1500,th,15.5\n\
        1400,fr,10\n1500,fr,15\n1400,sa,11\n1500,sa,16\n";
    let wide = b"mtu,s1,s2,s3,s4,s5,s6\n1400,10,11,9,10,10,11\n1500,15,16,14,15.5,15,16\n";
    let object = |text: &[u8]| -> Value {
        let (code, out) = of_text(text, &["--json"]);
        assert_eq!(code, 0, "{out}");
        serde_json::from_str(&out).expect("one object")
    };
    let (a, b) = (object(long), object(wide));
    for key in ["tukey", "dunnett", "mcb", "friedman", "permutation", "sign_flip"] {
        assert_eq!(a[key], b[key], "{key}");
    }
    assert!(
        a["verdict"].as_str().is_some_and(|v| v.starts_with("Use mtu 1500: it is shown to be better than 1400 by 50%"))
    );
}

#[test]
fn times_are_better_when_small() {
    let text = b"cwnd,round,load_ms\n3,1,1900\n10,1,600\n3,2,1950\n10,2,620\n3,3,1870\n10,3,590\n\
        3,4,1910\n10,4,610\n3,5,1890\n10,5,605\n3,6,1905\n10,6,598\n";
    let (code, out) = of_text(text, &[]);
    assert_eq!(code, 0, "{out}");
    assert!(out.starts_with("Use cwnd 10: it is shown to be better than 3"), "{out}");
    let (_, out) = of_text(text, &["--higher-is-better"]);
    assert!(out.starts_with("Use cwnd 3:"), "{out}");
}

#[test]
fn what_is_wrong_with_a_table_is_named_with_line_and_column() {
    for (text, says) in [
        (&b""[..], "the file is empty"),
        (b"mtu,s1,s2\n", "there is no row under the header"),
        (b"# c\nmtu,s1,s2\n1,2,3\n2,5\n", "line 4, column 3: the row has 2 cells, the header 3"),
        (b"mtu,s1,s2\n1,2,3,4\n", "line 2, column 4: the row has 4 cells, the header 3"),
        (b"mtu,s1,s2\n1,2,3\n2,fast,3\n", "line 3, column 2 (s1): 'fast' is not a number"),
        (b"mtu,s1,s2\n1,2,NaN\n2,1,3\n", "line 2, column 3 (s2): 'NaN' is not a number"),
        (b"mtu,s1,s2\n1,2,inf\n2,1,3\n", "line 2, column 3 (s2): 'inf' is not a number"),
        (b"mtu,s1,s2\n1,2,\n2,1,3\n", "line 2, column 3 (s2): the cell is empty"),
        (b"mtu,s1,s2\n1,2,0\n2,1,3\n", "line 2, column 3 (s2): '0' is not above zero"),
        (b"mtu;s1;s2\n1;2;3,5\n2;1;3\n", "line 2, column 3 (s2): '3,5' is not a number"),
        (
            b"mtu;s1;s2\n1;928;963\n2;1.026;1.041\n",
            "line 3, column 2 (s1): the point in '1.026' may separate decimals or thousands",
        ),
        (b"mtu;s1;s2\n1;928;963\n2;1.026.000;3\n", "no separators of thousands"),
        (b"mtu,s1,s2\n1,2,3\n", "line 2, column 1 (mtu): there is only one level, '1'"),
        (b"mtu,s1,s2\n1,2,3\n1,4,5\n", "line 3, column 1 (mtu): level '1' stands in line 2 already"),
        (b"mtu,mtu,s2\n1,2,3\n", "line 1, column 2: a second column is called 'mtu'"),
        (
            b"mtu,day,rate\n1,a,3\n2,a,4\n1,a,5\n",
            "line 4, column 1 (mtu): level '1' in block 'a' stands in line 2 already",
        ),
        (b"mtu,day,rate\n1,a,3\n2,b,4\n", "no block of day holds every level"),
        (b"mtu,s1,s2\n1,2,3\n2,\xe9,3\n", "line 3, column 2: the text is not UTF-8"),
        (b"\xff\xfem\0t\0u\0\n\0", "it looks like UTF-16"),
        (b"m\0t\0u\0,\0s\0\n\0", "it looks like UTF-16"),
        (b"mtu,s1,s2\n1,2,3\n2,\0,3\n", "line 3, column 2: there is a zero byte in the text"),
        (b"mtu,s1,s2\n1,2,3\n2,99999999999999999999999999999999999999999x,3\n", "9…' (42 characters) is not a number"),
        (
            b"mtu,rwin,day,rate\n1,5,a,3\n1,6,a,3\n2,5,a,4\n2,6,a,4\n2,6,a,5\n",
            "line 6, column 1 (mtu): this combination stands in line 5 already, in the same block",
        ),
        (b"a,b\n1,2\n2,3\n", "cannot tell which column is the outcome"),
        (b"rate,time_s\n1,2\n2,3\n", "several could be"),
    ] {
        let (code, message) = of_text(text, &[]);
        assert_eq!(code, 2, "{message}");
        assert!(message.contains(says), "'{says}' is missing in: {message}");
    }
    let (code, message) = of_text(b"mtu,day,rate\n1,a,3\n2,a,4\n", &["--value", "rat"]);
    assert!(code == 2 && message.contains("did you mean \"rate\"?") && message.contains("mtu, day, rate"), "{message}");
    assert_eq!(run(&["analyse", "/nonexistent.csv"]).code, 2);
    assert_eq!(run(&["analyse"]).code, 2);
}

#[test]
fn what_cannot_be_concluded_is_said() {
    for (text, says) in [
        (&b"mtu,day,rate\n1,a,3\n2,a,4\n"[..], "each of the 2 levels was measured once"),
        (b"mtu,rate\n1,3\n2,4\n", "there is no repetition"),
        (b"mtu,s1,s2\n1,5,5\n2,5,5\n", "No difference shown"),
        (b"mtu,s1,s2\n1,5,6\n2,3,4\n", "6 at least are needed. +20% takes 6 "),
        (
            b"mtu,s1,s2,s3,s4,s5,s6\n1,5e99,1,5e99,1,5e99,1\n2,1,5e99,1,5e99,1,5e99\n",
            "Even ten times as much need not have shown",
        ),
        (b"mtu,day,rate\n1,a,3\n2,a,4\n1,b,5\n2,b,5\n1,c,5\n", "1 of 3 blocks lack a level and are left out"),
        (
            b"mtu,day,rate\n1,a,3\n2,a,4\n1,b,5\n2,b,5\n2,b,7\n1,b,6\n1,c,5\n1,c,5\n",
            "in 1 of 3 blocks each level stands more than once, as often as the others: its mean counts",
        ),
    ] {
        for args in [&[][..], &["--json"]] {
            let (code, out) = of_text(text, args);
            assert_eq!(code, 1, "{out}");
            assert!(out.contains(says), "'{says}' is missing in: {out}");
        }
    }
}

#[test]
fn a_file_beyond_all_measure_is_refused_before_it_fills_the_memory() {
    use std::process::Stdio;
    let home = tempfile::tempdir().expect("a directory");
    let mut child = windtunnel(home.path())
        .args(["analyse", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut input = child.stdin.take().expect("its input");
    let chunk = "1,2\n".repeat(100_000);
    // Ten million rows; the program stops reading before.
    let header = input.write_all(b"mtu,rate\n");
    let written = (0..100).take_while(|_| input.write_all(chunk.as_bytes()).is_ok()).count();
    drop(input);
    let ran = common::ran(child.wait_with_output().expect("its end"));
    assert!(header.is_ok() && written < 100, "{written}");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("line 2500002: more than 5000000 cells"), "{}", ran.err);
}

#[test]
fn many_paths_are_summed_up_with_what_to_expect_on_the_next() {
    let text = b"path,log_ratio,se\na,0.18,0.06\nb,0.05,0.05\nc,0.22,0.10\nd,-0.03,0.04\ne,0.11,0.08\nf,0.30,0.12\n";
    let (code, out) = of_text(text, &["--json"]);
    assert_eq!(code, 1, "{out}");
    let a: Value = serde_json::from_str(&out).expect("one object");
    for (key, want) in
        [("mean", 0.1112), ("between", 0.008235), ("prediction_low", -0.1730), ("prediction_high", 0.3953)]
    {
        near(&a["summary"][key], want);
    }
    let (_, out) = of_text(text, &[]);
    assert!(out.starts_with("No effect on average is shown: ×1.12 over 6 paths (95% ×0.99 to ×1.26)."), "{out}");
    let (code, out) = of_text(b"path,log_ratio,se\na,0.18,0.06\nb,0.05,0.05\n", &[]);
    assert!(code == 1 && out.contains("too few for a mean"), "{out}");
    let (code, out) = of_text(b"path,log_ratio,se\na,0.18,0\nb,0.05,0.05\n", &[]);
    assert!(code == 2 && out.contains("line 2, column 3 (se): '0' is no standard error"), "{out}");
}

#[test]
fn plots_are_written_where_asked() {
    let home = tempfile::tempdir().expect("a directory");
    let plots = home.path().join("a/b");
    let ran = run(&["analyse", &study("dialup-rwin"), "--svg", plots.to_str().expect("a path")]);
    assert_eq!(ran.code, 1);
    for name in ["ratios", "levels", "evidence"] {
        let svg = std::fs::read_to_string(plots.join(format!("{name}.svg"))).expect(name);
        assert!(svg.starts_with("<svg ") && svg.contains("multiplier") || name == "evidence", "{name}");
    }
    assert_eq!(run(&["analyse", &study("dialup-rwin"), "--svg", "/proc/nowhere"]).code, 3);
}

#[test]
fn the_method_tested_on_itself_stays_within_its_error() {
    let a = json(&["self-test", "statistics", "--runs", "100", "--seed", "3", "--json"]);
    assert_eq!((a["passed"].as_bool(), a["noise"].as_array().map(Vec::len)), (Some(true), Some(4)));
    for noise in a["noise"].as_array().expect("four kinds") {
        let figure = |key: &str| noise[key].as_f64().expect("a number");
        assert!(figure("rate") <= 0.10 && figure("low") <= figure("rate") && figure("rate") <= figure("high"));
    }
    let again = json(&["self-test", "statistics", "--runs", "100", "--seed", "3", "--json"]);
    assert_eq!(a, again);
    let ran = run(&["self-test", "statistics", "--runs", "10", "--trials", "3"]);
    assert!(ran.code == 2 && ran.err.contains("no room for one round of 4"), "{}", ran.err);
}

#[test]
fn a_series_counts_once_and_a_standard_error_is_above_zero() {
    let (code, text) = of_text(b"mtu,d1\n1400,10\n1500,20\n", &["--value", "d1,d1,d1,d1,d1,d1"]);
    assert!(code == 2 && text.contains("the column 'd1' is named twice"), "{text}");
    let (code, text) = of_text(b"path,log_ratio,se\na,0.1,-0.05\nb,0.2,0.1\n", &[]);
    assert!(
        code == 2 && text.contains("'-0.05' is no standard error") && text.contains("by its columns' names"),
        "{text}"
    );
}

#[test]
fn what_a_table_holds_hides_nothing_of_the_answer() {
    let table = b"mtu,s1,s2,s3,s4,s5,s6\n1400\x1b[8m,10,11,12,10,11,12\n1500,20,21,22,23,24,25\n";
    for args in [&[][..], &["--color", "always"], &["--color", "never"]] {
        let (_, text) = of_text(table, args);
        assert!(text.contains("1400\\u001b[8m") && !text.contains("\u{1b}[8m"), "{args:?}: {text:?}");
    }
}
