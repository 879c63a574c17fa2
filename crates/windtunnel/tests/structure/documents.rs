//! Commands and files that documents name: a filter that no test's name contains runs none, and passes; a file that was moved isn't found.

use super::{files_below, read, workspace};
use std::path::{Path, PathBuf};

/// What one `cargo test` or `cargo bench` of a document names.
#[derive(Debug, Default, PartialEq)]
struct Named<'a> {
    package: Option<&'a str>,
    /// The folder in which its target lies, `tests` or `benches`, and the target's name.
    target: Option<(&'static str, &'a str)>,
    filter: Option<&'a str>,
}

/// What stands within backquotes on one line.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2).filter(|code| !code.contains('\n'))
}

/// All of them in a text.
fn commands(text: &str) -> Vec<(&str, Named<'_>)> {
    code(text)
        .filter_map(|command| {
            let ours = ["cargo test ", "cargo bench "].iter().find_map(|start| command.strip_prefix(start))?;
            Some((command, named(ours)))
        })
        .collect()
}

fn named(arguments: &str) -> Named<'_> {
    let (mut named, mut words) = (Named::default(), arguments.split_whitespace());
    while let Some(word) = words.next() {
        match word {
            "--" => {}
            "-p" => named.package = words.next(),
            "--test" => named.target = words.next().map(|name| ("tests", name)),
            "--bench" => named.target = words.next().map(|name| ("benches", name)),
            "--bin" | "--test-threads" => _ = words.next(),
            _ if word.starts_with(['-', '[']) => {}
            _ => named.filter = named.filter.or(Some(word)),
        }
    }
    named
}

/// What is wrong with a command, if anything is.
fn wrong(named: &Named<'_>) -> Option<String> {
    let folder = named.package.map(|name| workspace().join("crates").join(name.strip_prefix("wt-").unwrap_or(name)));
    if folder.as_ref().is_some_and(|folder| !folder.join("Cargo.toml").is_file()) {
        return Some("there is no such package".to_owned());
    }
    let folder = folder?;
    let there = |path: &Path| path.exists() || path.with_extension("rs").exists();
    if let Some((kind, target)) = named.target
        && !there(&folder.join(kind).join(target))
    {
        return Some(format!("the package has no {target} in {kind}"));
    }
    // What a bench takes are words of its own.
    let filter = named.filter.filter(|_| named.target.is_none_or(|(kind, _)| kind == "tests"))?;
    let last = filter.trim_end_matches("::").rsplit("::").next()?;
    let place = named.target.map_or_else(|| folder.join("src"), |(kind, target)| folder.join(kind).join(target));
    let contains = |(path, text): &(String, String)| {
        let tests = text.lines().filter_map(|line| line.trim_start().strip_prefix("fn "));
        path.contains(last)
            || tests.into_iter().any(|name| name.split('(').next().is_some_and(|name| name.contains(last)))
    };
    (!files_below(&place).iter().any(contains)).then(|| format!("no test there is called …{last}…"))
}

/// Folders of the workspace of which documents name files.
const FOLDERS: [&str; 8] = ["crates/", "scripts/", "docs/", "packaging/", "python/", "stacks/", "studies/", "ui/"];

/// Files and folders in a text; one with a part to be filled in, in capitals, is none.
fn files(text: &str) -> Vec<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./@-".contains(c);
    let is_file = |code: &&str| {
        FOLDERS.iter().any(|folder| code.starts_with(folder)) && code.chars().all(plain) && !code.contains("NNN")
    };
    code(text).filter(is_file).collect()
}

fn documents() -> Vec<PathBuf> {
    let mut documents: Vec<_> =
        ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"].iter().map(|name| workspace().join(name)).collect();
    for folder in ["docs/guide", "docs/results"] {
        let entries = std::fs::read_dir(workspace().join(folder)).into_iter().flatten().flatten();
        documents.extend(entries.map(|entry| entry.path()));
    }
    documents.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    documents
}

#[test]
fn files_of_documents_are_there() {
    let (mut seen, mut missing) = (0, Vec::new());
    for document in documents() {
        for file in files(&read(&document)) {
            seen += 1;
            missing.extend((!workspace().join(file).exists()).then(|| format!("{}: {file}", document.display())));
        }
    }
    assert!(seen > 100, "only {seen} files are seen");
    assert!(missing.is_empty(), "{missing:#?}");
    assert_eq!(files("`crates/x.rs` and `docs/decisions/NNN-title.md`, `ls crates/`"), ["crates/x.rs"]);
}

#[test]
fn commands_of_documents_name_what_there_is() {
    let (mut seen, mut found) = (0, Vec::new());
    for document in documents() {
        for (command, named) in commands(&read(&document)) {
            seen += 1;
            found.extend(wrong(&named).map(|why| format!("{}: {command}: {why}", document.display())));
        }
    }
    assert!(seen > 30, "only {seen} commands are seen");
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_command_that_runs_no_test_is_seen() {
    let text = "See `cargo test -p wt-sim --test model golden -- --nocapture`, `cargo bench -p wt-lab --bench paths`.";
    let golden = Named { package: Some("wt-sim"), target: Some(("tests", "model")), filter: Some("golden") };
    let found = commands(text);
    assert_eq!(found[0].1, golden);
    assert!(found.len() == 2 && found.iter().all(|(_, named)| wrong(named).is_none()));
    for bad in ["-p wt-sum", "-p wt-sim --test modell", "-p wt-sim --test model guilded", "-p wt-lab --bench path"] {
        assert!(wrong(&named(bad)).is_some(), "{bad}");
    }
}
