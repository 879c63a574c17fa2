use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which checkpoint: a number, so that it can't lead anywhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(into = "String", try_from = "String")]
#[schema(value_type = String)]
pub struct CheckpointId(pub(crate) u32);

impl std::str::FromStr for CheckpointId {
    type Err = CheckpointIdError;
    fn from_str(text: &str) -> Result<Self, CheckpointIdError> {
        let bad = || CheckpointIdError { text: text.chars().take(40).collect() };
        if text.is_empty() || text.len() > 9 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad());
        }
        text.parse().ok().filter(|number| *number > 0).map(Self).ok_or_else(bad)
    }
}

impl std::fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl From<CheckpointId> for String {
    fn from(id: CheckpointId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for CheckpointId {
    type Error = CheckpointIdError;
    fn try_from(text: String) -> Result<Self, CheckpointIdError> {
        text.parse()
    }
}

/// What was written isn't the number of a change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not the number of a change: windtunnel settings history lists them")]
pub struct CheckpointIdError {
    /// What was written, or how it begins.
    pub text: String,
}
