//! Our own tables of trials: which of their rows count.

use super::sheet::Sheet;

/// Columns that our tables of trials have beside each other, and hardly any other table.
const PHASE: &str = "phase";
const STATUS: &str = "status";
/// The number of a trial's settings, 0 being the current ones.
pub(super) const ARM: &str = "arm";
/// The phase whose trials are compared.
const ROUND: &str = "round";
/// Trials in which something was measured.
const COUNTS: [&str; 2] = ["completed", "incomplete"];

/// Keeps the trials of rounds in which something was measured, the current settings first, and says what was left out: pilots, warm-ups,
/// trials for delay alone, and attempts that were repeated. A table that isn't one of ours stays as it is.
pub(super) fn keep_rounds(sheet: &mut Sheet) -> Option<String> {
    let column = |name: &str| sheet.columns.iter().position(|column| column.name == name);
    let (phase, status, arm) = (column(PHASE)?, column(STATUS)?, column(ARM)?);
    let arms: Vec<u64> = sheet.cells(arm).iter().map(|cell| cell.parse().ok()).collect::<Option<_>>()?;
    let counts =
        |row: &usize| sheet.cells(phase)[*row] == ROUND && COUNTS.contains(&sheet.cells(status)[*row].as_str());
    let all = sheet.rows();
    let mut kept: Vec<usize> = (0..all).filter(counts).collect();
    if kept.is_empty() {
        return None;
    }
    // What everything is compared with is what stands first.
    kept.sort_by_key(|row| arms[*row]);
    sheet.keep(&kept);
    let left_out = all - kept.len();
    (left_out > 0).then(|| {
        format!("{left_out} of {all} rows are left out: pilots, warm-ups, and attempts in which nothing was measured")
    })
}
