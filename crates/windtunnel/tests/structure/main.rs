//! The shape of the workspace: who may import, print and depend on what. Plain text is read; nothing is compiled or run.
//!
//! Where a rule doesn't hold yet, a list names the exceptions, and the test fails as soon as one of them isn't needed any more:
//! the lists can only shrink.

/// Circles of modules.
mod circles;
/// Commands and files that documents name.
mod documents;
/// What may stand where.
mod rules;
/// The checker itself, on small trees.
mod selftest;
/// Sources as tokens.
mod tokens;

use circles::{Circle, Source, circles};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Circles that are still there: crate, parent, members.
const CIRCLES: &[(&str, &str, &[&str])] = &[];

/// The folder of the whole workspace.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of a file that must be there.
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All Rust files below a folder, with their paths from there and their texts.
fn files_below(folder: &Path) -> Vec<(String, String)> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(&at).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let relative = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
                found.push((relative, read(&path)));
            }
        }
    }
    found.sort();
    found
}

/// The crates by their folders' names, each with the files of its `src`; read once.
fn crates() -> &'static BTreeMap<String, Vec<Source>> {
    static CRATES: OnceLock<BTreeMap<String, Vec<Source>>> = OnceLock::new();
    CRATES.get_or_init(read_crates)
}

fn read_crates() -> BTreeMap<String, Vec<Source>> {
    let folder = workspace().join("crates");
    let entries = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().join("Cargo.toml").is_file());
    let sources = |folder: PathBuf| -> Vec<Source> {
        files_below(&folder.join("src")).into_iter().map(|(path, text)| Source::new(path, text)).collect()
    };
    let crates: BTreeMap<String, Vec<Source>> =
        entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), sources(entry.path()))).collect();
    assert!(crates.len() > 10 && crates.values().all(|files| !files.is_empty()), "the sources are where they were");
    crates
}

/// What is wrong with the circles of a crate, given the exceptions: new ones, and members of exceptions that are in none.
fn judge(name: &str, found: &[Circle], exceptions: &[(&str, &str, &[&str])]) -> Vec<String> {
    let own: Vec<_> = exceptions.iter().filter(|(of, ..)| *of == name).collect();
    let mut wrong = Vec::new();
    for circle in found {
        let allowed = own.iter().any(|(_, parent, members)| {
            *parent == circle.parent && circle.members.iter().all(|member| members.contains(&member.as_str()))
        });
        if !allowed {
            wrong.push(format!("crates/{name}: a circle below {circle}"));
        }
    }
    for (_, parent, members) in own {
        let circling: BTreeSet<&str> = found
            .iter()
            .filter(|circle| circle.parent == *parent)
            .flat_map(|circle| circle.members.iter().map(String::as_str))
            .collect();
        let done: Vec<&str> = members.iter().filter(|member| !circling.contains(*member)).copied().collect();
        if !done.is_empty() {
            wrong
                .push(format!("crates/{name}, \"{parent}\": no circle any more: take {} off CIRCLES", done.join(", ")));
        }
    }
    wrong
}

#[test]
fn modules_of_one_parent_dont_import_each_other_in_circles() {
    let wrong: Vec<String> = crates().iter().flat_map(|(name, files)| judge(name, &circles(files), CIRCLES)).collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}
