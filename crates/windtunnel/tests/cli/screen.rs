//! What a person sees: reports through a terminal of 80×24 and of 120 columns, and the excerpts of the README.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common::{binary, ran, windtunnel};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/readme").join(name)
}

/// A home whose journal holds the experiments of the README; and their names.
fn home() -> (tempfile::TempDir, Vec<String>) {
    let home = tempfile::tempdir().unwrap();
    let files = ["pages.json", "adsl.json"].map(golden);
    let taken = ran(windtunnel(home.path()).args(["journal", "import"]).args(&files).output().unwrap());
    assert_eq!(taken.code, 0, "{}{}", taken.out, taken.err);
    let id = |file: &PathBuf| {
        let export: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        export["experiment"]["id"].as_str().unwrap().to_owned()
    };
    let ids = files.iter().map(id).collect();
    (home, ids)
}

/// What the program writes on a terminal of `columns`, with these variables set.
fn on_terminal(home: &Path, columns: u32, variables: &[(&str, &str)], args: &str) -> Result<String, String> {
    let program = binary();
    // A shell may set COLUMNS itself, so what is to be set is set last.
    let set: String = variables.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    let line = format!("stty cols {columns} rows 24 && exec env -u COLUMNS{set} {} {args}", program.display());
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("HOME", home);
    command.env("XDG_DATA_HOME", home.join("data")).env("TERM", "xterm-256color").env_remove("NO_COLOR");
    for name in ["LC_ALL", "LC_CTYPE", "LANG"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("script of util-linux: {error}"))?;
    Ok(String::from_utf8(output.stdout).unwrap().replace('\r', ""))
}

/// The text without what colours it.
fn plain(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.filter_map(|part| part.split_once('m').map(|(_, rest)| rest)).collect::<String>()
}

fn widest(text: &str) -> usize {
    plain(text).lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn a_report_fits_the_terminal_and_its_answer_is_first_and_last() {
    let (home, ids) = home();
    for id in &ids {
        for columns in [80, 120] {
            let short = wt_testing::require!("script", on_terminal(home.path(), columns, &[], &format!("report {id}")));
            assert!(widest(&short) <= columns as usize && short.lines().count() <= 24, "{short}");
            assert!(short.contains("\u{1b}[1"), "the answer stands out: {short:?}");
            let first = plain(&short).lines().next().unwrap().to_owned();
            let full = on_terminal(home.path(), columns, &[], &format!("report {id} --full")).unwrap();
            assert!(widest(&full) <= columns as usize, "{full}");
            assert!(plain(&full).starts_with(&first), "{full}");
            let end: Vec<String> = plain(&full).trim_end().lines().rev().take(24).map(str::to_owned).collect();
            assert!(end.contains(&first) && end[0].contains("--full"), "a screen of 24 lines ends with it: {end:#?}");
        }
    }
}

/// What people read of commands that need no path; `DATA` and `ID` are put in.
const COMMANDS: [&str; 25] = [
    "--help",
    "tune --help",
    "tune --workload help",
    "tune --lab adsl --dry-run",
    "settings show --all",
    "settings defaults",
    "settings history",
    "settings plan initcwnd=20 mtu=1400",
    "lab list",
    "lab show leo-satellite",
    "stacks list",
    "stacks run --help",
    "cc list",
    "cc show chd",
    "predict adsl",
    "predict adsl --set rwin=64KiB --workload page",
    "overhead --encap pppoe-llc-bridged-fcs-atm --sweep 1400..1500",
    "overhead --list",
    "doctor",
    "replay STUDIES/adsl-factorial.csv",
    "analyse STUDIES/dialup-hosts.csv",
    "journal list",
    "journal show ID",
    "compare ID OTHER",
    "tune --lab nowhere-at-all",
];

#[test]
fn every_command_fits_the_terminal_plain_where_it_is_dumb_and_in_ascii_where_it_knows_no_more() {
    let (home, ids) = home();
    let studies = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
    let looks: [(u32, &[(&str, &str)]); 3] =
        [(80, &[]), (120, &[("TERM", "dumb")]), (80, &[("LC_ALL", "C"), ("TERM", "dumb")])];
    for (columns, variables) in looks {
        for command in COMMANDS {
            let args = command.replace("STUDIES", studies).replace("ID", &ids[0]).replace("OTHER", &ids[1]);
            let told = on_terminal(home.path(), columns, variables, &args);
            let told = wt_testing::require!("script", told);
            let wide = plain(&told).lines().find(|line| line.chars().count() > columns as usize).map(str::to_owned);
            assert_eq!(wide, None, "{command} at {columns} columns with {variables:?}");
            assert!(!told.trim().is_empty(), "{command}");
            let colour = told.contains('\u{1b}') && variables.contains(&("TERM", "dumb"));
            let strange = !told.is_ascii() && variables.contains(&("LC_ALL", "C"));
            assert!(!colour && !strange, "{command} with {variables:?}: {told}");
        }
    }
}

#[test]
fn what_a_program_reads_is_the_same_on_a_narrow_terminal() {
    let (home, ids) = home();
    for args in ["journal list --json", "doctor --json", "overhead --json", "settings export --to sysctl.d sack=off"] {
        let (home, args) = (home.path(), args.to_owned());
        let terminal = wt_testing::require!("script", on_terminal(home, 60, &[("LC_ALL", "C")], &args));
        let piped = ran(windtunnel(home).args(args.split(' ')).output().unwrap());
        assert_eq!(terminal.trim_end(), piped.out.trim_end(), "{args}");
    }
    let report = on_terminal(home.path(), 60, &[], &format!("report {} --json", ids[0])).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(&report).is_ok_and(|report| report["id"] == ids[0]), "{report}");
}

#[test]
fn a_presets_file_and_an_export_are_the_same_at_every_width() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("traces").display().to_string();
    let at = |columns: &str, args: &[&str]| {
        let told = ran(windtunnel(home.path()).args(args).env("COLUMNS", columns).output().unwrap());
        assert_eq!(told.code, 0, "{args:?}: {}", told.err);
        told.out
    };
    for name in wt_lab::presets::names() {
        let file = wt_lab::presets::text(name).unwrap().trim_end();
        for columns in ["40", "80"] {
            let shown = at(columns, &["lab", "show", name]);
            assert!(shown.starts_with(&format!("{file}\n\nWhat packets pass")), "{name} at {columns}: {shown}");
        }
        for emulator in ["netem", "mahimahi"] {
            let export = ["lab", "export", name, "--to", emulator, "--dir", &folder];
            let script = at("40", &export);
            assert_eq!(script, at("1000", &export), "{name} for {emulator}");
            let read = Command::new("sh").args(["-n", "-c", &script]).output().unwrap();
            assert!(read.status.success(), "{script}{}", String::from_utf8_lossy(&read.stderr));
        }
    }
}

#[test]
fn a_dumb_terminal_gets_no_colour_the_locale_c_no_more_than_ascii_and_color_decides() {
    let (home, ids) = home();
    let report = format!("report {} --full", ids[0]);
    let told =
        |variables: &[(&str, &str)], more: &str| on_terminal(home.path(), 90, variables, &format!("{report}{more}"));
    let dumb = wt_testing::require!("script", told(&[("TERM", "dumb")], ""));
    assert!(!dumb.contains('\u{1b}') && dumb.contains('→'), "{dumb}");
    let plain = told(&[("LC_ALL", "C"), ("TERM", "dumb")], "").unwrap();
    assert!(plain.is_ascii() && plain.contains(" > "), "{plain}");
    assert!(!told(&[], " --color never").unwrap().contains('\u{1b}'));
    assert!(!told(&[("NO_COLOR", "1")], "").unwrap().contains('\u{1b}'));
    assert!(told(&[("NO_COLOR", "1")], " --color always").unwrap().contains('\u{1b}'));
    let narrow = told(&[("COLUMNS", "64")], "").unwrap();
    assert!(widest(&narrow) <= 64, "{narrow}");
    let piped = ran(windtunnel(home.path()).args(["report", &ids[0], "--color", "always"]).output().unwrap());
    assert!(piped.out.contains("\u{1b}[1;32m"), "{}", piped.out);
}

#[test]
fn the_list_of_workloads_is_an_answer_and_what_is_mistyped_is_told_with_the_remedy() {
    let home = tempfile::tempdir().unwrap();
    let wt = |args: &[&str]| ran(windtunnel(home.path()).args(args).output().unwrap());
    let list = wt(&["tune", "--workload", "help"]);
    assert_eq!((list.code, list.err.as_str()), (0, ""), "{}", list.err);
    assert!(list.out.contains("transactions [") && !list.out.contains("error"), "{}", list.out);
    for (args, part) in [
        (&["tune"][..], "--lab adsl"),
        (&["lab", "run", "adsl", "curl", "http://server/"], "put -- before the program"),
        (&["tune", "--lab", "adsl", "--knobs", "cc", "--hold", "cc=cubic"], "choose one"),
    ] {
        let refused = wt(args);
        assert!(refused.code == 2 && refused.err.contains(part), "{args:?}: {}", refused.err);
    }
}

#[test]
fn what_is_mistyped_is_told_in_lines_that_fit() {
    let home = tempfile::tempdir().unwrap();
    for args in
        [&["predict", "adsl", "--set", "cc"][..], &["lab", "run", "adsl", "curl"], &["tune", "--lab", "adsl", "--knob"]]
    {
        let refused = ran(windtunnel(home.path()).args(args).env("COLUMNS", "60").output().unwrap());
        assert_eq!(refused.code, 2, "{args:?}: {}", refused.err);
        assert!(widest(&refused.err) <= 60, "{args:?}: {}", refused.err);
        let wide = ran(windtunnel(home.path()).args(args).env("COLUMNS", "400").output().unwrap()).err;
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&refused.err), words(&wide), "{args:?}");
    }
}

/// The blocks of the README between these fences.
fn blocks(readme: &str) -> Vec<&str> {
    readme.split("```").skip(1).step_by(2).collect()
}

#[test]
fn the_excerpts_of_the_readme_are_what_the_program_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let (home, ids) = home();
    let report = |id: &String| ran(windtunnel(home.path()).args(["report", id, "--full"]).output().unwrap()).out;
    let reports: Vec<String> = ids.iter().map(report).collect();
    let blocks = blocks(&readme);
    assert!(blocks.len() >= 2, "one excerpt for each of the demo's experiments");
    for block in blocks {
        let inside = |report: &String| {
            let mut rest = report.as_str();
            block.lines().filter(|line| !line.trim().is_empty()).all(|line| {
                let found = rest.split_once(line);
                rest = found.map_or(rest, |(_, rest)| rest);
                found.is_some()
            })
        };
        assert!(
            reports.iter().any(inside),
            "no report has these lines in this order:\n{block}\n{}",
            reports.join("\n====\n")
        );
    }
    let make = std::fs::read_to_string(root.join("Makefile")).unwrap();
    for line in ["tune --lab transatlantic --workload page --knobs initcwnd", "tune --lab adsl"] {
        assert!(readme.contains(line) && make.contains(line), "{line}");
    }
}

#[test]
fn rates_are_written_in_the_unit_that_was_asked_for_and_numbers_stay_what_they_are() {
    let (home, ids) = home();
    let report = |more: &[&str]| {
        let args = ["report", &ids[1], "--full"];
        ran(windtunnel(home.path()).args(args).args(more).output().unwrap())
    };
    for (unit, own, others) in [
        ("kB", "849 kB/s", ["Mbit/s", "kbit/s"]),
        ("B", "835200 B/s", ["Mbit/s", "kbit/s"]),
        ("kbit", "6792 kbit/s", ["Mbit/s", "kB/s"]),
        ("MB", "0.849 MB/s", ["Mbit/s", "kbit/s"]),
    ] {
        let told = report(&["--units", unit]).out;
        assert!(told.contains(own), "{unit}: {told}");
        assert!(others.iter().all(|other| !told.contains(other)), "{unit}: {told}");
    }
    assert_eq!(report(&[]).out, report(&["--units", "auto"]).out);
    let figures = |more: &[&str]| {
        let told: serde_json::Value = serde_json::from_str(&report(&[&["--json"], more].concat()).out).unwrap();
        (told["arms"][0]["goodput_bps"].clone(), told["physical_goodput_bps"].clone(), told["measured"].clone())
    };
    assert_eq!(figures(&[]), figures(&["--units", "kB"]));
    let refused = report(&["--units", "furlongs"]);
    assert!(refused.code == 2 && refused.err.contains("kB"), "{}", refused.err);
}

/// Sends Ctrl-C through the terminal once it shows this, and gives all that it showed, and the exit code.
fn interrupted(home: &Path, args: &str, seen: &str) -> std::io::Result<(String, Option<i32>)> {
    let line = format!("stty cols 80 rows 24 && exec env -u COLUMNS {} {args}", binary().display());
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("HOME", home);
    command.env("XDG_DATA_HOME", home.join("data")).env("TERM", "xterm-256color");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut shown, mut sent, mut part) = (Vec::new(), false, [0; 4096]);
    loop {
        let read = screen.read(&mut part)?;
        if read == 0 {
            break;
        }
        shown.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&shown);
        if !sent && text.contains(seen) {
            keys.write_all(b"\x03")?;
            sent = true;
        }
    }
    assert!(sent, "never seen: {seen} in {}", String::from_utf8_lossy(&shown));
    let code = child.wait()?.code();
    Ok((String::from_utf8_lossy(&shown).replace('\r', ""), code))
}

#[test]
fn an_experiment_that_ctrl_c_stops_says_its_name_and_the_command_that_goes_on_with_it() {
    let home = tempfile::tempdir().unwrap();
    let args = "tune --lab adsl --levels rwin=60480 --trial 500ms --budget '1000 trials' --no-model";
    let ended = interrupted(home.path(), args, " 1/1000 trials");
    let (shown, code) = wt_testing::require!("script", ended.map_err(|error| format!("script of util-linux: {error}")));
    let list = ran(windtunnel(home.path()).args(["journal", "list", "--json"]).output().unwrap());
    let list: serde_json::Value = serde_json::from_str(&list.out).unwrap();
    let (id, state) = (&list["experiments"][0]["id"], &list["experiments"][0]["state"]);
    let id = id.as_str().unwrap_or_else(|| panic!("{list:#}\n{shown}"));
    assert_eq!((state.as_str(), code), (Some("stopped"), Some(1)), "{shown}");
    let shown = plain(&shown);
    for part in [format!("windtunnel tune --resume {id} "), format!("Kept: windtunnel report {id} --full")] {
        assert!(shown.contains(&part), "{part}: {shown}");
    }
    assert!(shown.contains("Stopped after "), "{shown}");
}

#[test]
fn an_answer_that_a_full_disk_takes_is_no_success_and_one_that_nobody_wants_is() {
    let home = tempfile::tempdir().unwrap();
    for args in [&["overhead", "--json"][..], &["lab", "list"], &["settings", "export", "--to", "sysctl.d", "ttl=70"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let told = ran(windtunnel(home.path()).args(args).stdout(full).output().unwrap());
        assert!(told.code == 3 && told.err.contains("can't be written to standard output"), "{args:?}: {}", told.err);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let told = ran(windtunnel(home.path()).args(args).stdout(writer).output().unwrap());
        assert_eq!((told.code, told.err.as_str()), (0, ""), "{args:?}");
    }
}
