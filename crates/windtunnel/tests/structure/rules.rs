use crate::circles::Source;
use crate::tokens::Token;
use crate::{crates, files_below, read, workspace};
use std::collections::{BTreeMap, BTreeSet};

/// No file is longer, lines.
const LONGEST: usize = 600;
/// Files that are longer still.
const LONG: &[&str] = &[];
/// Files below the command line that print, still.
const PRINTING: &[&str] = &[];
/// Files that look into an experiment's configuration as untyped JSON, still.
const UNTYPED: &[&str] = &[];
/// The file of the page's server that starts our own program, for `worker` only.
const SUBPROCESS: &[&str] = &["crates/web/src/worker.rs"];

/// Words that say nothing outside their file, as names of types: whose, of what?
const VAGUE: [&str; 62] = [
    "Again", "Asked", "Begun", "Between", "Both", "Brought", "Chosen", "Counted", "Cut", "Done", "Drawn", "Each",
    "Ended", "Far", "Found", "Given", "Gone", "Heard", "Held", "How", "Judged", "Keeping", "Kept", "Known", "Lasting",
    "Left", "Listed", "Made", "Manner", "Measured", "Named", "News", "One", "Other", "Others", "Ours", "Prepared",
    "Raised", "Ran", "RanOrNot", "Read", "Running", "Said", "Same", "Seen", "Sent", "Shown", "Taken", "Talking",
    "Theirs", "Told", "Waiting", "Wanted", "What", "When", "Where", "Which", "Who", "Whom", "Whose", "Why", "Written",
];

/// Nouns that end as participles do; what a trial observed is called so in the journal.
const NOUNS: [&str; 5] = ["Feed", "Observed", "Red", "Seed", "Speed"];

/// The crate that is the command line.
const TOP: &str = "windtunnel";
/// Those from which on a failure has the words that people read.
const WITH_FAILURES: [&str; 3] = ["api", "web", TOP];

/// The files of all crates but some in which something is found, as `crates/NAME/src/FILE`.
fn files_with(but: &[&str], found: impl Fn(&[Token]) -> bool) -> BTreeSet<String> {
    let of = |(name, files): (&String, &Vec<Source>)| {
        let with = |source: &Source| !is_for_tests(&source.path) && found(&source.tokens);
        let path = |source: &Source| format!("crates/{name}/src/{}", source.path);
        files.iter().filter(|source| with(source)).map(path).collect::<Vec<_>>()
    };
    crates().iter().filter(|(name, _)| !but.contains(&name.as_str())).flat_map(of).collect()
}

fn is_for_tests(path: &str) -> bool {
    path.trim_end_matches(".rs").split('/').any(|part| part == "tests")
}

/// Whether these words and signs follow each other; `"` stands for any string.
fn has(tokens: &[Token], wanted: &[&str]) -> bool {
    let same = |(token, wanted): (&Token, &&str)| if *wanted == "\"" { token.string } else { token.is(wanted) };
    tokens.windows(wanted.len()).any(|window| window.iter().zip(wanted).all(same))
}

/// Fails unless just the exceptions were found.
fn only(rule: &str, found: &BTreeSet<String>, exceptions: &[&str]) {
    let exceptions: BTreeSet<String> = exceptions.iter().map(|path| (*path).to_owned()).collect();
    let new: Vec<&String> = found.difference(&exceptions).collect();
    let done: Vec<&String> = exceptions.difference(found).collect();
    assert!(new.is_empty(), "{rule}: {new:#?}");
    assert!(done.is_empty(), "{rule}: these hold it now, so take them off the list: {done:#?}");
}

#[test]
fn only_the_command_line_knows_its_flags() {
    only("no clap below the command line", &files_with(&[TOP], |tokens| has(tokens, &["clap"])), &[]);
    for (name, manifest) in manifests() {
        assert!(name == TOP || !depends(&manifest, false).contains("clap"), "crates/{name} depends on clap");
    }
}

#[test]
fn only_the_command_line_prints() {
    let prints =
        |tokens: &[Token]| ["print", "println", "eprint", "eprintln"].iter().any(|name| has(tokens, &[name, "!"]));
    only("nothing below the command line prints", &files_with(&[TOP], prints), PRINTING);
}

#[test]
fn arguments_that_are_no_utf_8_are_read_as_they_are() {
    // std::env::args() panics at them, and names of files are such; tests' own programs are given none.
    let panics = |tokens: &[Token]| has(tokens, &["env", "::", "args", "("]);
    only("arguments are taken by std::env::args_os()", &files_with(&["testing"], panics), &[]);
}

#[test]
fn failures_in_words_for_people_are_made_above_the_libraries() {
    let fails = |tokens: &[Token]| {
        let defined = ["struct", "enum", "type"].iter().any(|word| has(tokens, &[word, "Failure"]));
        defined || has(tokens, &["Result", "<", "Failure"]) || has(tokens, &[",", "Failure", ">"])
    };
    only("no Failure below crates/api", &files_with(&WITH_FAILURES, fails), &[]);
}

#[test]
fn only_the_journal_reads_configurations_by_their_keys() {
    let untyped = |tokens: &[Token]| has(tokens, &["config", "[", "\""]);
    only("no config[\"…\"] outside crates/journal", &files_with(&["journal"], untyped), UNTYPED);
}

#[test]
fn the_page_starts_no_command_of_ours_but_the_worker() {
    let others: Vec<&str> = crates().keys().map(String::as_str).filter(|name| *name != "web").collect();
    // Who starts a program names a type of std's or tokio's; who has arguments for one of ours writes a list of words.
    let starts = |tokens: &[Token]| has(tokens, &["process", "::", "Command"]);
    only("crates/web starts processes in one place", &files_with(&others, starts), SUBPROCESS);
    let words = |tokens: &[Token]| has(tokens, &["words", "(", "&", "[", "\""]);
    only("crates/web writes no command of ours", &files_with(&others, words), &[]);
}

/// Whether a name is one word that ends as regular participles do.
fn is_participle(name: &str) -> bool {
    let is_one_word = name.starts_with(char::is_uppercase) && name[1..].chars().all(char::is_lowercase);
    is_one_word && name.ends_with("ed") && !NOUNS.contains(&name)
}

/// Whether a type has one of the names that say nothing outside their file.
fn names_vaguely(tokens: &[Token]) -> bool {
    let is_type = |word: &Token| ["struct", "enum", "trait", "type"].iter().any(|kind| word.is(kind));
    let is_vague = |name: &Token| VAGUE.iter().any(|vague| name.is(vague)) || is_participle(name.word());
    tokens.windows(2).any(|pair| is_type(&pair[0]) && is_vague(&pair[1]))
}

#[test]
fn types_are_named_by_nouns_that_say_of_what() {
    only("no type is named by a participle or a pronoun alone", &files_with(&[], names_vaguely), &[]);
}

#[test]
fn no_file_is_longer_than_can_be_read_in_one_go() {
    let folder = workspace().join("crates");
    let long = files_below(&folder).into_iter().filter(|(_, text)| text.lines().count() > LONGEST);
    only("no file over 600 lines", &long.map(|(path, _)| format!("crates/{path}")).collect(), LONG);
}

/// The manifest of each crate.
fn manifests() -> BTreeMap<String, String> {
    let manifest = |name: &String| read(&workspace().join("crates").join(name).join("Cargo.toml"));
    crates().keys().map(|name| (name.clone(), manifest(name))).collect()
}

/// What a manifest names under its dependencies, those for tests left out; only our own without their `wt-`, or all others.
fn depends(manifest: &str, ours: bool) -> BTreeSet<String> {
    let (mut found, mut within) = (BTreeSet::new(), false);
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            let heading = line.trim_matches(['[', ']']);
            within = heading.ends_with("dependencies") && !heading.contains("dev-dependencies");
            continue;
        }
        let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
        if within && !name.is_empty() && !name.starts_with('#') && name.starts_with("wt-") == ours {
            found.insert(name.trim_start_matches("wt-").to_owned());
        }
    }
    found
}

/// The crates in the order of the table of ARCHITECTURE.md.
fn order(document: &str) -> Vec<String> {
    let rows = document.lines().skip_while(|line| !line.starts_with("| crate |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| row.split('`').nth(1)).map(str::to_owned).collect()
}

/// What a crate depends on that doesn't stand above it.
fn not_above(name: &str, order: &[String], depends: &BTreeSet<String>) -> Vec<String> {
    let above: BTreeSet<&String> = order.iter().take_while(|other| *other != name).collect();
    depends.iter().filter(|other| !above.contains(other)).cloned().collect()
}

#[test]
fn crates_depend_only_on_those_above_them_in_the_architecture() {
    let order = order(&read(&workspace().join("ARCHITECTURE.md")));
    let manifests = manifests();
    let named: BTreeSet<&String> = order.iter().collect();
    assert_eq!(named, manifests.keys().collect(), "the table of ARCHITECTURE.md names every crate");
    for (name, manifest) in &manifests {
        let wrong = not_above(name, &order, &depends(manifest, true));
        assert!(
            wrong.is_empty(),
            "crates/{name} depends on {}, which the table doesn't have above it",
            wrong.join(", ")
        );
    }
}

#[test]
fn the_checks_see_what_they_are_for() {
    let document = "# A\n\n| crate | what |\n|---|---|\n| `a` | x `y` |\n| `b` | z |\n\n| `c` | other |\n";
    let order = order(document);
    assert_eq!(order, ["a", "b"]);
    let manifest = "[package]\nname = \"wt-b\"\n[dependencies]\n# wt-x\nwt-a.workspace = true\nclap = \"4\"\n\
                    wt-c = { path = \"x\" }\n[dev-dependencies]\nwt-d.workspace = true\n[build-dependencies]\nwt-e = \"1\"\n";
    assert_eq!(depends(manifest, true).into_iter().collect::<Vec<_>>(), ["a", "c", "e"]);
    assert_eq!(depends(manifest, false).into_iter().collect::<Vec<_>>(), ["clap"]);
    assert_eq!(not_above("b", &order, &depends(manifest, true)), ["c", "e"]);
    assert!(has(&crate::tokens::tokens("x.config[\"a\"]"), &["config", "[", "\""]));
    assert!(!has(&crate::tokens::tokens("// config[\"a\"]\nconfig[0]; \"config[\""), &["config", "[", "\""]));
    assert!(!has(&crate::tokens::tokens("#[cfg(test)]\nfn f() { println!() }"), &["println", "!"]));
    for vague in ["pub(crate) enum Seen<'a> {}", "type Resolved = u8;"] {
        assert!(names_vaguely(&crate::tokens::tokens(vague)), "{vague}");
    }
    assert!(!names_vaguely(&crate::tokens::tokens("// struct Seen\nstruct SeenConnection; Kind::Seen")));
    let found = BTreeSet::from(["a".to_owned()]);
    only("fine", &found, &["a"]);
    for exceptions in [&[][..], &["a", "b"]] {
        assert!(std::panic::catch_unwind(|| only("wrong", &found, exceptions)).is_err(), "{exceptions:?}");
    }
}
