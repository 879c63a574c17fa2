use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Experiments of the journal side by side: which.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SideBySideRequest {
    /// Their names or beginnings of them, two or more; the others are compared with the first.
    pub experiments: Vec<String>,
    /// Put them side by side though they can't be compared.
    pub anyway: bool,
    /// The journal's file; nothing means the usual one.
    pub journal: Option<PathBuf>,
}
