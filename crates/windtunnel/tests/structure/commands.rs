//! Commands that documents name: a filter that no test's name contains runs none, and passes.

use super::{files_below, read, workspace};
use std::path::Path;

/// What one `cargo test` or `cargo bench` of a document names.
#[derive(Debug, Default, PartialEq)]
struct Named<'a> {
    package: Option<&'a str>,
    /// The folder in which its target lies, `tests` or `benches`, and the target's name.
    target: Option<(&'static str, &'a str)>,
    filter: Option<&'a str>,
}

/// All of them in a text, each within backquotes.
fn commands(text: &str) -> Vec<(&str, Named<'_>)> {
    let code = text.split('`').skip(1).step_by(2).filter(|code| !code.contains('\n'));
    code.filter_map(|command| {
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

#[test]
fn commands_of_documents_name_what_there_is() {
    let mut documents: Vec<_> =
        ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"].iter().map(|name| workspace().join(name)).collect();
    for folder in ["docs/guide", "docs/results"] {
        documents.extend(std::fs::read_dir(workspace().join(folder)).unwrap().flatten().map(|entry| entry.path()));
    }
    documents.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    let (mut seen, mut found) = (0, Vec::new());
    for document in &documents {
        for (command, named) in commands(&read(document)) {
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
