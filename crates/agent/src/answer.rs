use serde::Serialize;
use wt_fleet::JobEnd;

/// What an agent did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct AgentAnswer {
    /// 1.
    pub schema_version: u32,
    /// Experiments that came to their end.
    pub measured: u64,
    /// Jobs that it refused.
    pub refused: u64,
    /// Jobs that failed.
    pub failed: u64,
}

impl AgentAnswer {
    pub(crate) fn count(&mut self, end: &JobEnd) {
        match end {
            JobEnd::Done { .. } => self.measured += 1,
            JobEnd::Refused { .. } => self.refused += 1,
            JobEnd::Failed { .. } => self.failed += 1,
            JobEnd::Later { .. } => {}
        }
    }
}
