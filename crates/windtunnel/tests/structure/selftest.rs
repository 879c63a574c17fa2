use crate::circles::{Source, circles};
use crate::judge;
use crate::tokens::tokens;

/// A small crate.
fn tree(files: &[(&str, &str)]) -> Vec<Source> {
    files.iter().map(|(path, text)| Source::new((*path).to_owned(), (*text).to_owned())).collect()
}

/// The circles of a small crate, as their parents and members.
fn found(files: &[(&str, &str)]) -> Vec<(String, Vec<String>)> {
    circles(&tree(files)).into_iter().map(|circle| (circle.parent, circle.members.into_iter().collect())).collect()
}

fn circle(parent: &str, members: &[&str]) -> Vec<(String, Vec<String>)> {
    vec![(parent.to_owned(), members.iter().map(|member| (*member).to_owned()).collect())]
}

#[test]
fn a_circle_is_found_however_it_is_written() {
    let (a, b) = (("a.rs", "use crate::b::B;\npub struct A;"), "pub struct B;");
    assert_eq!(found(&[("lib.rs", "mod a; mod b;"), a, ("b.rs", b)]), []);
    for back in [
        "use crate::a::A;",
        "use super::a::A;",
        "use crate::{c::C, a::{A as Other, self}};",
        "fn f() -> crate::a::A { todo() }",
        "fn f() { super::a::g() }",
        "mod inner { use super::super::a::A; }",
        "use super::a;",
        "pub use crate::a::*;",
        "fn f() { let s = \"// no comment\"; let c = '\"'; crate::a::g(s, c) }",
        "fn f<'a>(x: &'a str) -> crate::a::A<'a> {}",
        "fn f() { let raw = r#\"a \" b\"#; crate::a::g(raw) }",
        "#[cfg(not(test))]\nuse crate::a::A;",
        "#[cfg(test)]\nuse crate::c::C;\nuse crate::a::A;",
        "#[cfg(test)]\nmod tests;\nuse crate::a::A;",
        "#[cfg(test)]\nuse crate::{c, d};\nuse crate::a::A;",
    ] {
        assert_eq!(found(&[("lib.rs", ""), a, ("b.rs", back)]), circle("", &["a", "b"]), "{back}");
    }
}

#[test]
fn what_is_no_circle_isnt_found() {
    for (files, why) in [
        (&[("a/mod.rs", "mod b; use b::B;"), ("a/b.rs", "use super::Common; use crate::a::Other;")][..], "a parent"),
        (&[("a.rs", "use crate::b::B;"), ("b.rs", "#[cfg(test)] mod tests { use crate::a::A; }")], "tests in a file"),
        (&[("a.rs", "use crate::b::B;"), ("b.rs", "#[cfg(test)]\nuse crate::a::A;")], "an import for tests"),
        (&[("a.rs", "use crate::b::B;"), ("b/tests.rs", "use crate::a::A;"), ("b.rs", "")], "a file of tests"),
        (&[("a.rs", "use crate::b::B;"), ("b/tests/x.rs", "use crate::a::A;"), ("b.rs", "")], "a folder of tests"),
        (&[("a.rs", "use crate::b::B;"), ("b.rs", "// use crate::a::A;\n/* crate::a::A /* b */ */")], "a comment"),
        (&[("a.rs", "use crate::b::B;"), ("b.rs", "fn f() { say(\"use crate::a::A;\") }")], "a string"),
        (&[("a.rs", "use crate::b::B;"), ("b.rs", "pub(crate) use wt_units::a::A;")], "another crate"),
        (&[("a.rs", "use crate::b::B;"), ("b.rs", "use crate::A;")], "what the root exports again"),
        (&[("a.rs", "use crate::a::A;")], "itself"),
    ] {
        assert_eq!(found(files), [], "{why}");
    }
}

#[test]
fn what_lies_deeper_counts_for_the_siblings_above() {
    let files = [
        ("top/a/mod.rs", ""),
        ("top/a/deep.rs", "use crate::top::b::low::X;"),
        ("top/mod.rs", ""),
        ("top/b.rs", ""),
        ("top/b/low.rs", "fn f() { crate::top::c::g() }"),
        ("top/c.rs", "use super::a::deep::D;"),
    ];
    assert_eq!(found(&files), circle("top", &["a", "b", "c"]));
    let told = circles(&tree(&files))[0].to_string();
    for line in
        ["a -> b: src/top/a/deep.rs:1: use crate::top::b::low::X;", "c -> a: src/top/c.rs:1: use super::a::deep::D;"]
    {
        assert!(told.contains(line), "{told}");
    }
}

#[test]
fn exceptions_cover_what_they_name_and_fail_when_they_are_done() {
    let round = circles(&tree(&[("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")]));
    assert_eq!(judge("x", &round, &[("x", "", &["a", "b"])]), Vec::<String>::new());
    assert_eq!(judge("x", &round, &[("y", "", &["a", "b"])]).len(), 1, "another crate's");
    assert_eq!(judge("x", &round, &[("x", "p", &["a", "b"])]).len(), 2, "another parent's, and not needed");
    let more = judge("x", &round, &[("x", "", &["a", "b", "c"])]);
    assert!(more.len() == 1 && more[0].contains("take c off"), "{more:?}");
    assert!(judge("x", &[], &[("x", "", &["a", "b"])])[0].contains("take a, b off"));
    assert!(judge("x", &round, &[])[0].contains("b.rs:1: use crate::a::A;"));
}

#[test]
fn tokens_keep_strings_and_lines() {
    let tokens = tokens("a\n\"b\nc\" 'x' /* d\n */ e::f // g\n'\\'' #[derive(X)] h");
    let read: Vec<(&str, usize, bool)> =
        tokens.iter().map(|token| (token.text.as_str(), token.line, token.string)).collect();
    assert_eq!(
        read,
        [("a", 1, false), ("\"b\nc\"", 2, true), ("e", 4, false), ("::", 4, false), ("f", 4, false), ("h", 5, false)]
    );
}
