//! What packages carry beside the program: manual pages, and what the Tab key offers.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common::{binary, ran, windtunnel};
use std::process::Command;

#[test]
fn each_command_of_the_help_has_a_manual_page_with_its_flags_and_examples() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("man");
    std::fs::create_dir(&folder).unwrap();
    let written = ran(windtunnel(home.path()).args(["self", "manual"]).arg(&folder).output().unwrap());
    assert_eq!((written.code, written.out.as_str()), (0, ""), "{}", written.err);
    let help = ran(windtunnel(home.path()).arg("--help").output().unwrap()).out;
    let indented = help.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with([' ', '-']));
    let commands: Vec<&str> = indented.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 20, "{help}");
    let page = |name: &str| std::fs::read_to_string(folder.join(format!("{name}.1"))).unwrap_or_default();
    let whole = page("windtunnel");
    for command in commands {
        let name = format!("windtunnel-{command}");
        assert!(page(&name).contains(&format!(".TH {} 1", name.to_uppercase())), "{name}");
        assert!(whole.contains(&name.replace('-', "\\-")), "{name} in windtunnel.1");
    }
    let tune = page("windtunnel-tune");
    assert!(tune.contains("\\-\\-knobs") && tune.contains(".SH EXAMPLES"), "{tune}");
    assert!(page("windtunnel-settings-apply").contains("\\-\\-confirm\\-within"));
    // Programs read exit codes: each page has them, as the guide has.
    let guide = include_str!("../../../../docs/guide/reports.md");
    for code in ["0", "1", "2", "3", "4", "5", "130"] {
        let listed =
            tune.split_once(".SH EXIT STATUS").is_some_and(|(_, end)| end.contains(&format!("\n.TP\n{code}\n")));
        assert!(listed && guide.contains(&format!("\n| {code} | ")), "{code}: {tune}");
    }
    // What is hidden has none.
    assert_eq!((page("windtunnel-worker"), page("windtunnel-self")), (String::new(), String::new()));
}

#[test]
fn examples_of_manual_pages_are_shown_as_they_are_written_and_fit_80_columns() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(ran(windtunnel(home.path()).args(["self", "manual"]).arg(home.path()).output().unwrap()).code, 0);
    let pages = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path());
    let mut examples = 0;
    for page in pages.filter(|path| path.extension().is_some_and(|ext| ext == "1")) {
        let text = std::fs::read_to_string(&page).unwrap();
        let Some((_, section)) = text.split_once("\n.SH EXAMPLES\n") else { continue };
        let section = section.split_once("\n.SH ").map_or(section, |(section, _)| section);
        let mut is_filled = true;
        for line in section.lines() {
            match line {
                ".nf" => is_filled = false,
                ".fi" => is_filled = true,
                line if line.starts_with(' ') => {
                    let shown = line.replace("\\-", "-").replace("\\e", "\\").replace("\\*(Aq", "'");
                    // A word that is longer than a line stands alone in it.
                    let fits = shown.chars().count() <= 72 || shown.split_whitespace().count() <= 2;
                    assert!(!is_filled && fits, "{}: {shown}", page.display());
                    examples += 1;
                }
                _ => {}
            }
        }
        assert!(is_filled, "{}: {section}", page.display());
    }
    assert!(examples > 150, "{examples}");
    let start = std::fs::read_to_string(home.path().join("windtunnel-traffic-start.1")).unwrap();
    let whole: String = start.replace("\\e\n", " ").replace("\\-", "-");
    let whole = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    let command = "sudo windtunnel traffic start --port 443 --levels cc=cubic,bbr --unit slot --epoch 10m --for 4h";
    assert!(whole.contains(command), "{start}");
}

#[test]
fn a_folder_that_isnt_there_is_named_and_nothing_is_written() {
    let home = tempfile::tempdir().unwrap();
    for what in ["manual", "completions"] {
        let ran = ran(windtunnel(home.path()).args(["self", what, "/nonexistent/folder"]).output().unwrap());
        assert_eq!(ran.code, 3, "{}", ran.err);
        assert!(ran.err.contains("/nonexistent/folder") && ran.err.contains("name a folder"), "{}", ran.err);
    }
}

/// What bash is offered for the last of these words.
fn offered(script: &std::path::Path, words: &str) -> String {
    let line = format!(
        "source {}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9; \
         _clap_complete_windtunnel windtunnel \"${{COMP_WORDS[COMP_CWORD]}}\" before; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let program = binary();
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let home = script.parent().unwrap();
    let asked = Command::new("bash").args(["--norc", "-c", &line]).env("PATH", path).env("HOME", home).output();
    let asked = ran(asked.unwrap());
    assert_eq!((asked.code, asked.err.as_str()), (0, ""), "{words}");
    asked.out
}

#[test]
fn the_tab_key_offers_commands_flags_paths_settings_and_workloads() {
    let home = tempfile::tempdir().unwrap();
    let written = ran(windtunnel(home.path()).args(["self", "completions"]).arg(home.path()).output().unwrap());
    assert_eq!(written.code, 0, "{}", written.err);
    for file in ["windtunnel.bash", "_windtunnel", "windtunnel.fish"] {
        assert!(std::fs::read_to_string(home.path().join(file)).unwrap().contains("windtunnel"), "{file}");
    }
    let script = home.path().join("windtunnel.bash");
    for (words, wanted) in [
        ("windtunnel tu", "tune"),
        ("windtunnel tune --lab ads", "adsl"),
        ("windtunnel lab run transa", "transatlantic"),
        ("windtunnel tune --knobs rwin,initc", "rwin,initcwnd"),
        ("windtunnel settings apply initc", "initcwnd="),
        ("windtunnel tune --workload bur", "bursts"),
        ("windtunnel report la", "last"),
        ("windtunnel tune --budg", "--budget"),
    ] {
        let offered = offered(&script, words);
        assert!(offered.lines().any(|line| line.trim_end() == wanted), "{words}: {offered}");
    }
    // What is hidden isn't offered beside what isn't.
    assert_eq!(offered(&script, "windtunnel w").split_whitespace().collect::<Vec<_>>(), ["watch", "web"]);
}

/// With a dynamic user systemd moves what is there and gives it to that user: root could undo nothing any more.
#[test]
fn no_unit_takes_the_folder_that_undoes_settings() {
    let packaging = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");
    let files = std::fs::read_dir(packaging).unwrap().map(|entry| entry.unwrap().path());
    let units: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "service")).collect();
    assert!(units.len() >= 4, "{units:?}");
    let purged = std::fs::read_to_string(format!("{packaging}/deb/postrm")).unwrap();
    for unit in units {
        let text = std::fs::read_to_string(&unit).unwrap();
        let folder = text.lines().find_map(|line| line.strip_prefix("StateDirectory=")).unwrap();
        assert!(folder.starts_with("windtunnel-"), "{}: {folder}", unit.display());
        assert!(purged.contains(&format!("/var/lib/{folder}")), "{folder} isn't purged");
    }
}

#[test]
fn no_unit_ends_the_guards_of_a_change_along_with_its_program() {
    let changes = ["windtunnel-agent.service", "windtunnel-traffic@.service", "windtunnel-web.service"];
    for name in changes {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");
        let unit = std::fs::read_to_string(std::path::Path::new(path).join(name)).unwrap();
        assert!(unit.lines().any(|line| line == "KillMode=process"), "{name}: systemd.kill(5)");
    }
}
