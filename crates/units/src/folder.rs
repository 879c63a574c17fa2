use std::ffi::OsString;
use std::path::PathBuf;

/// A folder below which programs keep what belongs to their user.
///
/// # Source
/// XDG Base Directory Specification 0.8: a variable that isn't an absolute path is to be ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserFolder {
    /// `$XDG_CONFIG_HOME`, or else `~/.config`: what the user sets.
    Config,
    /// `$XDG_DATA_HOME`, or else `~/.local/share`: what the user keeps.
    Data,
    /// `$XDG_STATE_HOME`, or else `~/.local/state`: what a program needs to go on.
    State,
}

impl UserFolder {
    /// Where the folder is; `None` without a home. `variable` looks up the environment.
    ///
    /// # Example
    /// ```
    /// use wt_units::UserFolder;
    /// let environment = |name: &str| (name == "HOME").then(|| "/home/ada".into());
    /// assert_eq!(UserFolder::State.path(environment), Some("/home/ada/.local/state".into()));
    /// ```
    #[must_use]
    pub fn path(self, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let (name, below_home) = match self {
            Self::Config => ("XDG_CONFIG_HOME", ".config"),
            Self::Data => ("XDG_DATA_HOME", ".local/share"),
            Self::State => ("XDG_STATE_HOME", ".local/state"),
        };
        let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        absolute(name).or_else(|| Some(absolute("HOME")?.join(below_home)))
    }
}

#[cfg(test)]
mod tests {
    use super::UserFolder;
    use std::path::PathBuf;

    #[test]
    fn a_variable_counts_if_it_is_an_absolute_path_or_else_the_home_does() {
        for (folder, pairs, wanted) in [
            (UserFolder::Config, &[("XDG_CONFIG_HOME", "/c"), ("HOME", "/h")][..], Some("/c")),
            (UserFolder::Config, &[("XDG_DATA_HOME", "/d"), ("HOME", "/h")], Some("/h/.config")),
            (UserFolder::Data, &[("XDG_DATA_HOME", "relative"), ("HOME", "/h")], Some("/h/.local/share")),
            (UserFolder::State, &[("XDG_STATE_HOME", ""), ("HOME", "relative")], None),
            (UserFolder::State, &[], None),
        ] {
            let variable = |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, text)| text.into());
            assert_eq!(folder.path(variable), wanted.map(PathBuf::from), "{folder:?} {pairs:?}");
        }
    }
}
