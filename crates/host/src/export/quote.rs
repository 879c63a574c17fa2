//! Names of devices in files of others. Linux takes nearly everything for a name: only `/`, `:` and white space are excluded
//! (`dev_valid_name` of the kernel), so that quotes, `$(…)`, `*` and `#` can stand in one.

use std::borrow::Cow;

/// A name as one word of YAML.
///
/// # Source
/// YAML 1.2.2, 7.3.1: a text in double quotes may have every escape of JSON.
pub(super) fn yaml_word(name: &str) -> Cow<'_, str> {
    /// Plain words that YAML 1.1 or 1.2 takes for something else than a text.
    const RESERVED: [&str; 10] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan"];
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.@".contains(c))
        && !RESERVED.contains(&name.to_ascii_lowercase().as_str());
    if is_plain { Cow::Borrowed(name) } else { Cow::Owned(serde_json::Value::from(name).to_string()) }
}

/// A name as a value of a key file.
///
/// # Source
/// The Desktop Entry format that GKeyFile reads: `\` begins an escape.
pub(super) fn keyfile_value(name: &str) -> String {
    name.replace('\\', r"\\")
}

/// A name as a pattern that fits nothing else.
///
/// # Source
/// systemd.link(5): names in `[Match]` are shell patterns, and `!` before the first inverts them; fnmatch(3).
pub(super) fn pattern(name: &str) -> String {
    let special = |c: char| r"\*?[]!".contains(c) || c == '"' || c == '\'';
    name.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::{keyfile_value, pattern, yaml_word};

    #[test]
    fn usual_names_stay_as_they_are_and_others_lose_their_meaning() {
        for name in ["eth0", "enp3s0", "br-lan", "eth0.100", "wg_0"] {
            assert_eq!(
                (yaml_word(name).as_ref(), keyfile_value(name), pattern(name)),
                (name, name.to_owned(), name.to_owned())
            );
        }
        assert_eq!(yaml_word("no"), "\"no\"");
        assert_eq!(yaml_word("1e3"), "\"1e3\"");
        assert_eq!(yaml_word("a\"{b}#"), "\"a\\\"{b}#\"");
        assert_eq!(keyfile_value("a\\n"), "a\\\\n");
        assert_eq!(pattern("e*[a]"), r"e\*\[a\]");
    }
}
