use std::borrow::Cow;
use std::ffi::OsStr;

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
        Cow::Owned(format!("\"$(printf '{}')\"", octal(text.as_bytes())))
    } else {
        Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
    }
}

/// A word as a program is given it, which needn't be text, as names of files are: then what isn't plain ASCII is written by its
/// number, and the shell makes the same bytes of it. Otherwise as [`shell_word`].
///
/// # Example
/// ```
/// use std::os::unix::ffi::OsStrExt as _;
/// let word = std::ffi::OsStr::from_bytes(b"caf\xe9.csv");
/// assert_eq!(wt_units::shell_word_of_os(word), r#""$(printf 'caf\351.csv')""#);
/// ```
#[must_use]
pub fn shell_word_of_os(word: &OsStr) -> Cow<'_, str> {
    let by_number = || Cow::Owned(format!("\"$(printf '{}')\"", octal(word.as_encoded_bytes())));
    word.to_str().map_or_else(by_number, shell_word)
}

/// As a format of printf(1): letters, digits and what paths have as they are, all else by number.
fn octal(bytes: &[u8]) -> String {
    let byte = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"/._".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("\\{byte:03o}")
        }
    };
    bytes.iter().copied().map(byte).collect()
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
