//! What the terminal that is written to can show: how wide it is, colours, and more than ASCII.

use clap::ValueEnum;
use std::borrow::Cow;
use std::io::IsTerminal as _;
use std::sync::OnceLock;

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ColorMode {
    /// On a terminal, unless NO_COLOR is set or TERM is "dumb"
    #[default]
    Auto,
    /// Also into pipes and files
    Always,
    /// Not at all
    Never,
}

static MODE: OnceLock<ColorMode> = OnceLock::new();

/// Keeps what `--color` says for the whole program.
pub(crate) fn choose(mode: ColorMode) {
    let _ = MODE.set(mode);
}

/// What can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Screen {
    /// Columns.
    pub(crate) width: usize,
    /// Whether to colour.
    pub(crate) color: bool,
    /// Whether lines may be written over: a bar of progress.
    pub(crate) live: bool,
    unicode: bool,
    /// Whether lines must fit: where somebody looks at them, or says how wide they may be.
    narrow: bool,
}

impl Screen {
    /// Standard output.
    pub(crate) fn stdout() -> Self {
        let out = std::io::stdout();
        let size = terminal_size::terminal_size_of(&out);
        Self::new(out.is_terminal(), size.map(|(width, _)| width.0), &variable)
    }

    /// Standard error.
    pub(crate) fn stderr() -> Self {
        let err = std::io::stderr();
        let size = terminal_size::terminal_size_of(&err);
        Self::new(err.is_terminal(), size.map(|(width, _)| width.0), &variable)
    }

    fn new(terminal: bool, columns: Option<u16>, of: &dyn Fn(&str) -> Option<String>) -> Self {
        let said = of("COLUMNS").and_then(|columns| columns.trim().parse().ok()).filter(|columns| *columns > 0);
        let seen = columns.map(usize::from).filter(|columns| *columns > 0);
        let dumb = of("TERM").is_some_and(|term| term == "dumb");
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(of);
        Self {
            width: said.or(seen).unwrap_or(wt_report::UNKNOWN_WIDTH),
            color: match MODE.get().copied().unwrap_or_default() {
                ColorMode::Always => true,
                ColorMode::Never => false,
                ColorMode::Auto => terminal && !dumb && of("NO_COLOR").is_none(),
            },
            live: terminal && !dumb,
            unicode: !locale.is_some_and(|locale| locale == "C" || locale == "POSIX"),
            narrow: terminal || said.is_some(),
        }
    }

    /// The text as it can be given to this terminal, whatever it quotes.
    pub(crate) fn harmless<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.color { wt_units::harmless(text) } else { wt_units::harmless_and_plain(text) }
    }

    /// The text as this terminal can show it.
    pub(crate) fn shown<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.unicode || text.is_ascii() { Cow::Borrowed(text) } else { Cow::Owned(wt_report::ascii(text)) }
    }

    /// The text as this terminal can show it, in lines that fit.
    pub(crate) fn fitted(&self, text: &str) -> String {
        let text = self.shown(text);
        wt_report::fold(&text, self.room()).into_owned()
    }

    /// How wide lines may be.
    pub(crate) fn room(&self) -> usize {
        if self.narrow { self.width } else { usize::MAX }
    }

    /// Whether more than ASCII can be shown.
    pub(crate) fn is_unicode(&self) -> bool {
        self.unicode
    }
}

/// A variable of the environment that says something.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::Screen;

    #[test]
    fn width_colour_and_characters_follow_the_environment() {
        let screen = |terminal, columns, said: &'static [(&str, &str)]| {
            let of = move |name: &str| said.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            let screen = Screen::new(terminal, columns, &of);
            (screen.width, screen.color, screen.live, screen.unicode)
        };
        assert_eq!(screen(true, Some(120), &[("TERM", "xterm"), ("LANG", "de_DE.UTF-8")]), (120, true, true, true));
        assert_eq!(screen(true, Some(120), &[("COLUMNS", "80")]), (80, true, true, true));
        assert_eq!(screen(true, Some(80), &[("TERM", "dumb")]), (80, false, false, true));
        assert_eq!(screen(true, Some(80), &[("NO_COLOR", "1")]), (80, false, true, true));
        assert_eq!(screen(false, None, &[("COLUMNS", "nonsense")]), (100, false, false, true));
        assert_eq!(screen(false, None, &[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")]), (100, false, false, false));
        assert_eq!(screen(false, None, &[("LC_ALL", "C.UTF-8"), ("LANG", "C")]), (100, false, false, true));
    }
}
