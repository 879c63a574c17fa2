//! Who imports whom: circles between modules that have the same parent.
//!
//! What this leaves out: names that a parent exports again (`use super::Name` counts as the parent's, wherever it stands),
//! macros, and `#[path]`.

use crate::tokens::{Token, behind, tokens};
use std::collections::{BTreeMap, BTreeSet};

/// One source file of a crate.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// From the crate's `src` on, such as `commands/tune/mod.rs`.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) tokens: Vec<Token>,
}

impl Source {
    pub(crate) fn new(path: String, text: String) -> Self {
        Self { tokens: tokens(&text), path, text }
    }
}

/// One line that imports something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// Modules of one parent that import each other, and the imports between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Circle {
    /// The parent's path, empty for the crate's root.
    pub(crate) parent: String,
    pub(crate) members: BTreeSet<String>,
    /// From whom to whom, and the first line that says so.
    pub(crate) imports: Vec<(String, String, Import)>,
}

impl std::fmt::Display for Circle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let members: Vec<&str> = self.members.iter().map(String::as_str).collect();
        write!(f, "\"{}\": {}", self.parent, members.join(" <-> "))?;
        for (from, to, import) in &self.imports {
            write!(f, "\n    {from} -> {to}: src/{}:{}: {}", import.path, import.line, import.text.trim())?;
        }
        Ok(())
    }
}

type Module = Vec<String>;

/// The module that a file holds; none if it is for tests only.
fn module_of(path: &str) -> Option<Module> {
    let mut parts: Module = path.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    (!parts.iter().any(|part| part == "tests")).then_some(parts)
}

/// The paths of a `use` from the place behind it, and the place behind its end.
fn used(tokens: &[Token], from: usize, prefix: &[String], found: &mut Vec<(Module, usize)>) -> usize {
    let (mut path, mut at) = (prefix.to_vec(), from);
    let line = tokens.get(from).map_or(0, |token| token.line);
    while let Some(token) = tokens.get(at) {
        if token.is_name() && !token.is("as") {
            path.push(token.text.clone());
            at += 1;
        } else if token.is("::") {
            at += 1;
        } else if token.is("{") {
            let end = behind(tokens, at);
            at += 1;
            while at < end - 1 {
                at = used(tokens, at, &path, found);
                at += usize::from(tokens.get(at).is_some_and(|token| token.is(",")));
            }
            return end;
        } else if token.is("as") {
            at += 2;
        } else if token.is("*") {
            at += 1;
        } else {
            break;
        }
    }
    found.push((path, line));
    at
}

/// A path within a module as one from the crate's root; none if it leads out of the crate.
fn absolute(path: &[String], module: &Module, imported: bool, known: &BTreeSet<Module>) -> Option<Module> {
    let (mut base, mut rest) = match path.first()?.as_str() {
        "crate" => (Vec::new(), &path[1..]),
        "self" => (module.clone(), &path[1..]),
        "super" => (module.clone(), path),
        _ if imported => (module.clone(), path),
        _ => return None,
    };
    while rest.first().is_some_and(|part| part == "super") {
        base.pop()?;
        rest = &rest[1..];
    }
    for part in rest {
        base.push(part.clone());
        if !known.contains(&base) {
            base.pop();
            break;
        }
    }
    Some(base)
}

/// The modules that a file's module reaches, each with the line.
fn reached(tokens: &[Token], file: &Module, known: &BTreeSet<Module>) -> Vec<(Module, Module, usize)> {
    let (mut found, mut at) = (Vec::new(), 0);
    // Modules that are written within the file, and where each ends.
    let mut inner: Vec<(String, usize)> = Vec::new();
    while at < tokens.len() {
        while inner.last().is_some_and(|(_, end)| at >= *end) {
            inner.pop();
        }
        let module: Module = file.iter().cloned().chain(inner.iter().map(|(name, _)| name.clone())).collect();
        let token = &tokens[at];
        let mut paths = Vec::new();
        if token.is("mod") && tokens.get(at + 2).is_some_and(|next| next.is("{")) {
            inner.push((tokens[at + 1].text.clone(), behind(tokens, at + 2)));
            at += 3;
            continue;
        }
        let is_use = token.is("use") && tokens.get(at + 1).is_some_and(|next| next.is_name() || next.is("{"));
        let begins = ["crate", "self", "super"].iter().any(|word| token.is(word))
            && tokens.get(at + 1).is_some_and(|next| next.is("::"));
        if is_use {
            at = used(tokens, at + 1, &[], &mut paths);
        } else if begins {
            let mut path = vec![token.text.clone()];
            let line = token.line;
            at += 1;
            while tokens.get(at).is_some_and(|sign| sign.is("::")) && tokens.get(at + 1).is_some_and(Token::is_name) {
                path.push(tokens[at + 1].text.clone());
                at += 2;
            }
            paths.push((path, line));
        } else {
            at += 1;
        }
        for (path, line) in paths {
            if let Some(target) = absolute(&path, &module, is_use, known) {
                found.push((module.clone(), target, line));
            }
        }
    }
    found
}

/// For each parent: from which child to which, by which import.
type Edges = BTreeMap<Module, BTreeMap<(String, String), Import>>;

fn edges(sources: &[Source]) -> Edges {
    let files: Vec<(Module, &Source)> =
        sources.iter().filter_map(|source| Some((module_of(&source.path)?, source))).collect();
    let known: BTreeSet<Module> = files.iter().map(|(module, _)| module.clone()).collect();
    let mut edges = Edges::new();
    for (file, source) in &files {
        for (from, to, line) in reached(&source.tokens, file, &known) {
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            let (Some(child), Some(sibling)) = (from.get(shared), to.get(shared)) else { continue };
            let text = source.text.lines().nth(line - 1).unwrap_or_default().to_owned();
            let import = Import { path: source.path.clone(), line, text };
            let parent = edges.entry(from[..shared].to_vec()).or_default();
            parent.entry((child.clone(), sibling.clone())).or_insert(import);
        }
    }
    edges
}

/// Everything that can be reached from a child, itself only over a circle.
fn reachable<'a>(from: &'a str, pairs: &'a BTreeMap<(String, String), Import>) -> BTreeSet<&'a str> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(at) = open.pop() {
        for (_, to) in pairs.keys().filter(|(source, _)| source == at) {
            if seen.insert(to.as_str()) {
                open.push(to);
            }
        }
    }
    seen
}

/// The circles of a crate.
pub(crate) fn circles(sources: &[Source]) -> Vec<Circle> {
    let mut found = Vec::new();
    for (parent, pairs) in edges(sources) {
        let children: BTreeSet<&str> = pairs.keys().flat_map(|(a, b)| [a.as_str(), b.as_str()]).collect();
        let mut left = children.clone();
        for child in children {
            let forth = reachable(child, &pairs);
            if !left.contains(child) || !forth.contains(child) {
                continue;
            }
            let members: BTreeSet<String> = forth
                .iter()
                .filter(|other| reachable(other, &pairs).contains(child))
                .map(|other| (*other).to_owned())
                .collect();
            left.retain(|other| !members.contains(*other));
            let within = pairs.iter().filter(|((a, b), _)| members.contains(a) && members.contains(b));
            let imports = within.map(|((a, b), import)| (a.clone(), b.clone(), import.clone())).collect();
            found.push(Circle { parent: parent.join("::"), members, imports });
        }
    }
    found
}
