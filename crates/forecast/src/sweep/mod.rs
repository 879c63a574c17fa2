//! The model asked about a whole table of paths: rows in, rows out, on all processors, in shards of any number.
//!
//! A row's answer depends on the row alone: where there is chance, its seeds come from its content. So every division into
//! shards gives the same rows, and a shard that was killed is run again.

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
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use wt_problem::Problem;
use wt_trial::Cancel;

/// How many wrong rows are named at most.
const NAMED: usize = 5;
/// Rows that are computed before they are written, for each processor.
const AHEAD: usize = 256;

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
    let (mut rows, mut wrong, mut count) = (0, Vec::new(), 0);
    for record in row::records(&mut reader, request.shard) {
        let (number, record) = record?;
        rows += 1;
        if let Err(problem) = header.question(&record, request) {
            count += 1;
            if wrong.len() < NAMED {
                wrong.push(format!("row {number}: {problem}"));
            }
        }
    }
    if count == 0 {
        return Ok(rows);
    }
    let more = if count > NAMED { format!("\n… and {} more rows", count - NAMED) } else { String::new() };
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
    let threads = if request.threads == 0 { processors() } else { request.threads };
    let mut answer = SweepAnswer { kept: header.kept(), ..SweepAnswer::default() };
    let unwritten = |error: std::io::Error| Problem::environment(format!("can't write the answer: {error}"));
    out.write_all(&write::head(&header)).map_err(unwritten)?;
    let mut records = row::records(&mut reader, request.shard);
    loop {
        let rows: Vec<TableRow> = records.by_ref().take(AHEAD * threads).collect::<Result<_, _>>()?;
        if rows.is_empty() {
            break;
        }
        for (row, (lines, problem)) in rows.iter().zip(answers(&header, &rows, request, threads, cancel)?) {
            out.write_all(&lines).map_err(unwritten)?;
            answer.rows += 1;
            if let Some(problem) = problem {
                answer.unanswered += 1;
                if answer.problems.len() < NAMED {
                    answer.problems.push((row.0, problem));
                }
            }
        }
        on_rows(answer.rows);
    }
    out.flush().map_err(unwritten)?;
    Ok(answer)
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

/// A row's lines, and why it has no answer.
type AnsweredRow = (Vec<u8>, Option<String>);

/// The lines of each row, and why one has no answer; whoever is free takes the next row.
fn answers(
    header: &Header,
    rows: &[TableRow],
    request: &SweepRequest,
    threads: usize,
    cancel: &Cancel,
) -> Result<Vec<AnsweredRow>, Problem> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(vec![None; rows.len()]);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(rows.len()) {
            scope.spawn(|| {
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(row) = rows.get(at)
                    && !cancel.is_cancelled()
                {
                    let answered =
                        header.question(&row.1, request).and_then(|question| predict_on(&question, 1, cancel));
                    let lines = write::lines(row, answered.as_ref());
                    let problem = answered.err().map(|problem| problem.to_string());
                    done.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some((lines, problem));
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    if cancel.is_cancelled() {
        return Err(Problem::stopped("stopped before all rows were answered").hint("nothing was written; run it again"));
    }
    Ok(done.into_iter().flatten().collect())
}
