use std::borrow::Cow;

/// A text as a POSIX shell takes it for one word: as it is where that is safe, or else between single quotes. What a terminal would
/// obey is written by its number: scripts are looked at, too.
///
/// By hand rather than by shlex, which also quotes `=`, `,` and `%`: commands are shown so that people type them again, and
/// `initcwnd=20` reads better bare.
///
/// # Example
/// ```
/// assert_eq!(wt_units::shell_word("initcwnd=20"), "initcwnd=20");
/// assert_eq!(wt_units::shell_word("it's"), r"'it'\''s'");
/// assert_eq!(wt_units::shell_word("\u{7}s"), r#""$(printf '\007s')""#);
/// ```
///
/// # Source
/// POSIX.1-2024, printf: `\ddd` in the format, one to three octal digits; XCU 2.6.3: a substitution loses new lines at its end,
/// which stay between single quotes here.
#[must_use]
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,/:@%+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        Cow::Borrowed(text)
    } else if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        Cow::Owned(format!("\"$(printf '{}')\"", octal(text)))
    } else {
        Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
    }
}

/// As a format of printf(1): letters and digits as they are, all else by number.
fn octal(text: &str) -> String {
    let byte = |byte: u8| {
        if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("\\{byte:03o}") }
    };
    text.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::shell_word;
    use proptest::prelude::*;

    #[test]
    fn what_a_shell_would_take_apart_is_quoted() {
        for (text, wanted) in [
            ("tune", "tune"),
            ("--vary=rwin=1,2", "--vary=rwin=1,2"),
            ("https://host:8080/a%20b", "https://host:8080/a%20b"),
            ("", "''"),
            ("a b", "'a b'"),
            ("~", "'~'"),
            ("$(reboot)", "'$(reboot)'"),
            ("it's", r"'it'\''s'"),
            ("\u{1b}]0;p'", r#""$(printf '\033\1350\073p\047')""#),
        ] {
            assert_eq!(shell_word(text), wanted);
        }
    }

    proptest! {
        #[test]
        fn a_shell_reads_the_text_again(text in "[ -~äß\n\t]{0,40}") {
            let word = shell_word(&text);
            // What a POSIX shell does with such a word: quotes switch, a backslash outside of them keeps the next.
            let (mut read, mut inside, mut chars) = (String::new(), false, word.chars());
            while let Some(c) = chars.next() {
                match c {
                    '\'' => inside = !inside,
                    '\\' if !inside => read.extend(chars.next()),
                    c => {
                        prop_assert!(inside || !" \n\t$`\"|&;<>()*?[]#~{}!^".contains(c), "{word}");
                        read.push(c);
                    }
                }
            }
            prop_assert_eq!((read, inside), (text, false));
        }
    }
}
