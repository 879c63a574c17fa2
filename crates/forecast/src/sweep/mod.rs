//! The model asked about a whole table of paths: rows in, rows out, on all processors, in shards of any number.
//!
//! A row's answer depends on the row alone: where there is chance, its seeds come from its content. So every division into
//! shards gives the same rows, and a shard that was killed is run again.

/// Work on many threads, its results in order.
mod pool;
/// A row of the table as a question.
mod row;
/// Which rows are computed here.
mod shard;
#[cfg(test)]
mod tests;
/// What can be a table.
mod text;
/// Rows of the answer.
mod write;

pub use row::COLUMNS;
pub use shard::Shard;
pub use text::TableText;
pub use write::sweep_parquet;

use crate::predict::{PredictRequest, predict_on};
use crate::surface::processors;
use row::{Header, TableRow};
use std::io::{Read, Write};
use wt_problem::Problem;
use wt_trial::Cancel;

/// How many wrong rows are named at most.
const NAMED: usize = 5;

/// What a table is asked.
#[derive(Debug, Clone)]
pub struct SweepRequest {
    /// What holds for every row that doesn't say otherwise; its path is that of rows that name none.
    pub usual: PredictRequest,
    /// Whether rows may do without a path of their own.
    pub has_path: bool,
    /// Which of the rows are computed.
    pub shard: Shard,
    /// On how many processors; 0 means all.
    pub threads: usize,
}

impl SweepRequest {
    fn on_threads(&self) -> usize {
        if self.threads == 0 { processors() } else { self.threads }
    }
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweepAnswer {
    /// Rows that were computed.
    pub rows: u64,
    /// Columns that are no question, and are kept as they are.
    pub kept: Vec<String>,
    /// Rows without an answer: their number, from 1, and why; the first five.
    pub problems: Vec<(u64, String)>,
    /// How many there are of those.
    pub unanswered: u64,
}

/// Reads a whole table without computing anything: how many rows this shard has.
///
/// # Errors
/// A usage problem that names the column, or the first rows that ask for what can't be asked.
pub fn check_table(table: impl Read, request: &SweepRequest) -> Result<u64, Problem> {
    let mut reader = row::reader(table);
    let header = header(&mut reader)?;
    let mut checked = Batch::default();
    let check = |rows: &[TableRow]| {
        let mut batch = Batch::default();
        for row in rows {
            batch.add(row, header.question(&row.1, request).err());
        }
        batch
    };
    let on = (request.on_threads(), &Cancel::new());
    pool::in_batches(row::records(&mut reader, request.shard), on, check, |batch| {
        checked.join(batch);
        Ok(())
    })?;
    let Batch { rows, wrong: count, named, .. } = checked;
    if count == 0 {
        return Ok(rows);
    }
    let wrong: Vec<String> = named.iter().map(|(number, problem)| format!("row {number}: {problem}")).collect();
    let more =
        if count > NAMED as u64 { format!("\n… and {} more rows", count - NAMED as u64) } else { String::new() };
    Err(Problem::usage(format!("{count} of {rows} rows ask for what can't be asked:\n{}{more}", wrong.join("\n")))
        .hint("mend these rows; nothing was computed. The first row below the column names is row 1"))
}

/// Answers every row of this shard, in the table's order; `on_rows` hears how many are done.
///
/// # Errors
/// A usage problem where the table is wrong, [`Fault::Stopped`](wt_problem::Fault::Stopped) once `cancel` is set, or what
/// kept the answer from being written.
pub fn sweep(
    table: impl Read,
    request: &SweepRequest,
    out: &mut dyn Write,
    cancel: &Cancel,
    on_rows: &mut dyn FnMut(u64),
) -> Result<SweepAnswer, Problem> {
    let mut reader = row::reader(table);
    let header = header(&mut reader)?;
    let mut answered = Batch::default();
    let unwritten = |error: std::io::Error| Problem::environment(format!("can't write the answer: {error}"));
    out.write_all(&write::head(&header)).map_err(unwritten)?;
    let work = |rows: &[TableRow]| {
        let (mut batch, mut lines) = (Batch::default(), write::Lines::new());
        // What is computed while the user stops is no answer.
        for row in rows.iter().take_while(|_| !cancel.is_cancelled()) {
            let answer = header.question(&row.1, request).and_then(|question| predict_on(&question, 1, cancel));
            lines.add(row, answer.as_ref());
            batch.add(row, answer.err());
        }
        batch.lines = lines.done();
        batch
    };
    let records = row::records(&mut reader, request.shard);
    pool::in_batches(records, (request.on_threads(), cancel), work, |mut batch| {
        if cancel.is_cancelled() {
            return Ok(());
        }
        out.write_all(&std::mem::take(&mut batch.lines)).map_err(unwritten)?;
        answered.join(batch);
        on_rows(answered.rows);
        Ok(())
    })?;
    if cancel.is_cancelled() {
        return Err(Problem::stopped("stopped before all rows were answered").hint("nothing was written; run it again"));
    }
    out.flush().map_err(unwritten)?;
    let Batch { rows, wrong: unanswered, named: problems, .. } = answered;
    Ok(SweepAnswer { rows, kept: header.kept(), problems, unanswered })
}

/// What came of some rows.
#[derive(Default)]
struct Batch {
    rows: u64,
    /// Their lines of the answer.
    lines: Vec<u8>,
    /// Rows without an answer: how many, and the first of them with their numbers.
    wrong: u64,
    named: Vec<(u64, String)>,
}

impl Batch {
    fn add(&mut self, row: &TableRow, problem: Option<Problem>) {
        self.rows += 1;
        if let Some(problem) = problem {
            self.wrong += 1;
            if self.named.len() < NAMED {
                self.named.push((row.0, problem.to_string()));
            }
        }
    }

    /// Those of rows behind these; their lines are written by now.
    fn join(&mut self, next: Self) {
        self.rows += next.rows;
        self.wrong += next.wrong;
        let room = NAMED - self.named.len();
        self.named.extend(next.named.into_iter().take(room));
    }
}

/// The columns' names; none of them is one of the answer's.
fn header<R: Read>(reader: &mut csv::Reader<R>) -> Result<Header, Problem> {
    let header = Header::read(reader)?;
    match header.names.iter().find(|name| write::COLUMNS.contains(&name.as_str())) {
        None => Ok(header),
        Some(name) => Err(Problem::usage(format!("the table has a column {name:?}, and so has the answer"))
            .hint("give yours another name")),
    }
}
