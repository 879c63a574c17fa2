use super::item::Item;
use crate::change::Risk;
use serde::Serialize;

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExportFile {
    /// Where it belongs.
    pub path: String,
    /// What it holds.
    pub content: String,
}

/// One file in the making, and what didn't go into it.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileDraft {
    /// The file; empty if nothing went in.
    pub(crate) content: String,
    /// What didn't, and why.
    pub(crate) skipped: Vec<Risk>,
}

impl FileDraft {
    /// Notes that an item can't be expressed.
    pub(crate) fn skip(&mut self, item: &Item, why: &str) {
        let risk = Risk { key: item.key.to_owned(), text: format!("{}={}{}: {why}", item.key, item.value, item.on()) };
        if !self.skipped.contains(&risk) {
            self.skipped.push(risk);
        }
    }
}

/// The files of an export, and what didn't go into them.
pub(super) type Files = (Vec<ExportFile>, Vec<Risk>);
