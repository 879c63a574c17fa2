use super::error::KnobError;
use super::kind::{HostKnob, Knob};
use super::table::ALL;
use super::value::Value;
use wt_units::nearest;

/// A name as the table has it: lower case, dashes, without the kernel's prefixes.
fn normal(text: &str) -> String {
    let text = text.trim().to_ascii_lowercase().replace('/', ".");
    let text = ["net.ipv4.", "net.core.", "net.ipv6."].iter().find_map(|p| text.strip_prefix(p)).unwrap_or(&text);
    text.replace(['_', '.'], "-")
}

impl Knob {
    /// The setting of this name, alias or kernel name.
    ///
    /// # Errors
    /// [`KnobError::Unknown`] with the nearest names.
    pub fn find(text: &str) -> Result<&'static Self, KnobError> {
        Self::find_spelt(text).map(|(knob, _)| knob)
    }

    /// The same, and whether the kernel's name was used, so that a number is the kernel's number.
    fn find_spelt(text: &str) -> Result<(&'static Self, bool), KnobError> {
        let dotted = text.trim().to_ascii_lowercase().replace('/', ".");
        let whole = |knob: &&Self| {
            knob.host.is_some_and(|host| host == HostKnob::Sysctl(host.sysctl()) && host.sysctl() == dotted)
        };
        if let Some(knob) = ALL.iter().find(whole) {
            return Ok((knob, true));
        }
        let word = normal(text);
        let by_name = ALL.iter().find(|knob| knob.name == word || knob.aliases.contains(&word.as_str()));
        let by_kernel =
            || ALL.iter().find(|knob| matches!(knob.host, Some(HostKnob::Sysctl(name)) if normal(name) == word));
        let short = word.strip_prefix("tcp-").unwrap_or(&word);
        let by_short = || ALL.iter().find(|knob| knob.name == short);
        if let Some(knob) = by_name {
            return Ok((knob, false));
        }
        if let Some(knob) = by_kernel() {
            return Ok((knob, true));
        }
        by_short().map(|knob| (knob, false)).ok_or_else(|| KnobError::Unknown {
            text: text.to_owned(),
            nearest: nearest(
                &word,
                ALL.iter().flat_map(|knob| std::iter::once(knob.name).chain(knob.aliases.iter().copied())),
            ),
        })
    }

    /// Reads `KEY=VALUE`.
    ///
    /// # Errors
    /// [`KnobError`] with the nearest key, or with what is allowed.
    pub fn parse_pair(text: &str) -> Result<(&'static Self, Value), KnobError> {
        let (key, value) = text.split_once('=').ok_or_else(|| KnobError::NoValue(text.to_owned()))?;
        let (knob, kernel) = Self::find_spelt(key)?;
        Ok((knob, knob.parse_spelt(value, kernel)?))
    }
}
