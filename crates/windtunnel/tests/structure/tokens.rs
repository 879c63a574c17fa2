//! Rust sources as words and signs: comments and code of tests are left out, of strings the text is kept.

/// One word, sign or string, and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
    pub(crate) string: bool,
}

impl Token {
    /// Whether it is this word or sign.
    pub(crate) fn is(&self, text: &str) -> bool {
        !self.string && self.text == text
    }

    /// Its text, and nothing of a string.
    pub(crate) fn word(&self) -> &str {
        if self.string { "" } else { &self.text }
    }

    /// Whether it is a name.
    pub(crate) fn is_name(&self) -> bool {
        !self.string && self.text.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }
}

/// Where something ends that begins here: behind the last of `chars` for which `done` isn't true yet.
fn end_of(chars: &[char], from: usize, mut done: impl FnMut(&[char], usize) -> Option<usize>) -> usize {
    (from..chars.len()).find_map(|at| done(chars, at)).unwrap_or(chars.len())
}

fn comment_end(chars: &[char], from: usize) -> usize {
    if chars[from + 1] == '/' {
        return end_of(chars, from, |chars, at| (chars[at] == '\n').then_some(at));
    }
    let mut depth = 0;
    let mut skip = 0;
    end_of(chars, from, |chars, at| {
        if at < skip {
            return None;
        }
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, skip) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, skip) = (depth - 1, at + 2),
            _ => {}
        }
        (depth == 0).then_some(at + 2)
    })
}

/// The end of a string whose opening quote is at `from`; escapes count unless it is raw with so many signs around it.
fn string_end(chars: &[char], from: usize, raw: Option<usize>) -> usize {
    let mut escaped = false;
    end_of(chars, from + 1, |chars, at| match raw {
        Some(signs) => {
            let closes = chars[at] == '"' && (1..=signs).all(|next| chars.get(at + next) == Some(&'#'));
            closes.then_some(at + 1 + signs)
        }
        None if escaped => {
            escaped = false;
            None
        }
        None => {
            escaped = chars[at] == '\\';
            (chars[at] == '"').then_some(at + 1)
        }
    })
}

/// The length of a character in quotes; none if it is a lifetime.
fn character(chars: &[char], from: usize) -> Option<usize> {
    match (chars.get(from + 1)?, chars.get(from + 2)) {
        ('\\', _) => Some(end_of(chars, from + 3, |chars, at| (chars[at] == '\'').then_some(at + 1)) - from),
        (_, Some('\'')) => Some(3),
        _ => None,
    }
}

/// How many signs stand between the `r` of a raw string and its quote; none if it isn't one.
fn raw_signs(chars: &[char], from: usize) -> Option<usize> {
    let signs = chars[from..].iter().take_while(|c| **c == '#').count();
    (chars.get(from + signs) == Some(&'"')).then_some(signs)
}

/// All tokens of a text.
fn all(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let (mut tokens, mut at, mut line) = (Vec::new(), 0, 1);
    while at < chars.len() {
        let begin = at;
        let word = |from: usize| end_of(&chars, from, |c, i| (!(c[i].is_alphanumeric() || c[i] == '_')).then_some(i));
        let (end, kind) = match (chars[at], chars.get(at + 1)) {
            ('/', Some('/' | '*')) => (comment_end(&chars, at), None),
            ('"', _) => (string_end(&chars, at, None), Some(true)),
            ('b', Some('"')) => (string_end(&chars, at + 1, None), Some(true)),
            ('r', Some('"' | '#')) if raw_signs(&chars, at + 1).is_some() => {
                let signs = raw_signs(&chars, at + 1).unwrap_or(0);
                (string_end(&chars, at + 1 + signs, Some(signs)), Some(true))
            }
            ('\'', _) => (at + character(&chars, at).unwrap_or(1), None),
            (':', Some(':')) => (at + 2, Some(false)),
            (c, _) if c.is_alphanumeric() || c == '_' => (word(at), Some(false)),
            (c, _) if c.is_whitespace() => (at + 1, None),
            _ => (at + 1, Some(false)),
        };
        let text: String = chars[begin..end].iter().collect();
        let lines = text.matches('\n').count();
        if let Some(string) = kind {
            tokens.push(Token { text, line, string });
        }
        (at, line) = (end, line + lines);
    }
    tokens
}

/// The place behind the bracket that closes the one at `open`.
pub(crate) fn behind(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" if !token.string => depth += 1,
            ")" | "]" | "}" if !token.string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// The end of the item that begins at `from`: behind its `;`, or behind its braces.
fn item_end(tokens: &[Token], from: usize) -> usize {
    let mut at = from;
    while at < tokens.len() {
        if tokens[at].is(";") {
            return at + 1;
        }
        let brace = tokens[at].is("{");
        at = if brace || tokens[at].is("(") || tokens[at].is("[") { behind(tokens, at) } else { at + 1 };
        // `use a::{b, c};` goes on behind its braces.
        if brace && !tokens.get(at).is_some_and(|next| next.is(";")) {
            return at;
        }
    }
    at
}

/// The tokens of a text without the items that are compiled for tests only.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let all = all(text);
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < all.len() {
        let attribute = all[at].is("#") && all.get(at + 1).is_some_and(|next| next.is("["));
        if !attribute {
            kept.push(all[at].clone());
            at += 1;
            continue;
        }
        let end = behind(&all, at + 1);
        let inside = &all[at + 2..end - 1];
        let has = |word: &str| inside.iter().any(|token| token.is(word));
        let for_tests = inside.first().is_some_and(|first| first.is("cfg")) && has("test") && !has("not");
        at = if for_tests { item_end(&all, end) } else { end };
    }
    kept
}
