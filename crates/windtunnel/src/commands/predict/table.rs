use super::PredictArgs;
use crate::cli::signals::cancel_on_signals;
use crate::edge::{Exit, Outcome, Problem};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::fs::File;
use std::io::{BufWriter, Read, Seek as _, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use wt_forecast::{SweepAnswer, TableText, check_table, sweep, sweep_parquet};
use wt_setup::files::WholeFile;
use wt_units::counted;

/// Answers every row of a table; 1 where some have no answer.
pub(super) fn run(args: &PredictArgs, table: &Path) -> Outcome {
    let (request, by) = args.sweep()?;
    let cancel = cancel_on_signals()?;
    let mut input = open(table)?;
    if let Some(out) = &args.out {
        keep_table(&input, table, out)?;
    }
    let rows = check_table(&mut input, &request)?;
    input.rewind().map_err(|error| unreadable(table, &error))?;
    if let Some(variable) = by {
        tell(&format!("Shard {} of {}, by {variable}.", request.shard.number(), request.shard.of()));
    }
    let bar = bar(rows, args.out.is_some());
    let mut on_rows = |done| bar.set_position(done);
    let answer = match &args.out {
        Some(path) if is_parquet(path) => {
            let file = WholeFile::create(path).map_err(unwritten)?;
            // The kind of a column is known when all of it is.
            let mut rows = BufWriter::new(tempfile::tempfile().map_err(spool)?);
            let answer = sweep(input, &request, &mut rows, &cancel, &mut on_rows)?;
            let rows = rows.into_inner().map_err(|error| spool(error.into_error()))?;
            sweep_parquet(rows, file)?.finish().map_err(unwritten)?;
            answer
        }
        Some(path) => {
            let mut file = BufWriter::new(WholeFile::create(path).map_err(unwritten)?);
            let answer = sweep(input, &request, &mut file, &cancel, &mut on_rows)?;
            let file =
                file.into_inner().map_err(|error| Problem::environment(format!("can't write the answer: {error}")))?;
            file.finish().map_err(unwritten)?;
            answer
        }
        None => {
            let has_ended = Cell::new(false);
            let mut out = BufWriter::new(StandardOutput { has_ended: &has_ended });
            match sweep(input, &request, &mut out, &cancel, &mut on_rows) {
                // Whoever closed the pipe has seen enough.
                Err(_) if has_ended.get() => return Ok(Exit::Done),
                answer => answer?,
            }
        }
    };
    bar.finish_and_clear();
    report(&answer, args.out.as_deref());
    Ok(if answer.unanswered == 0 { Exit::Done } else { Exit::No })
}

/// Standard output, which notes that its reader has gone.
struct StandardOutput<'a> {
    has_ended: &'a Cell<bool>,
}

impl StandardOutput<'_> {
    fn noted<T>(&self, done: std::io::Result<T>) -> std::io::Result<T> {
        if done.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
            self.has_ended.set(true);
        }
        done
    }
}

impl Write for StandardOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.noted(std::io::stdout().write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.noted(std::io::stdout().flush())
    }
}

/// Whether the answer is asked for as Parquet, by the file's name.
fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case("parquet"))
}

fn spool(error: std::io::Error) -> Problem {
    Problem::environment(format!("can't keep the answer in a temporary file: {error}"))
        .hint("free some space, or name another folder by the variable TMPDIR")
}

/// The table, as a file that can be read twice.
fn open(table: &Path) -> Result<File, Problem> {
    if table == Path::new("-") {
        return spooled(std::io::stdin().lock()).map_err(|error| unreadable(table, &error));
    }
    let file = File::open(table).map_err(|error| unreadable(table, &error))?;
    match file.metadata() {
        Ok(about) if about.is_file() => Ok(file),
        Ok(about) if about.is_dir() => Err(Problem::usage(format!("{} is a folder", table.display()))
            .hint("name a CSV file whose first line has the columns' names")),
        _ => spooled(file).map_err(|error| unreadable(table, &error)),
    }
}

/// Refuses to write the answer over the table that it is about, under whatever name.
fn keep_table(input: &File, table: &Path, out: &Path) -> Result<(), Problem> {
    let which = |about: std::io::Result<std::fs::Metadata>| about.map(|about| (about.dev(), about.ino())).ok();
    match which(std::fs::metadata(out)) {
        Some(file) if which(input.metadata()) == Some(file) => {
            Err(Problem::usage(format!("{} is the table {} itself", out.display(), table.display()))
                .because("the answer would replace it")
                .hint("name another file with --out"))
        }
        _ => Ok(()),
    }
}

/// What can be read once only, such as a pipe, in a file without a name.
fn spooled(from: impl Read) -> std::io::Result<File> {
    let mut file = tempfile::tempfile()?;
    std::io::copy(&mut TableText::new(from), &mut file)?;
    file.rewind()?;
    Ok(file)
}

fn unreadable(table: &Path, error: &std::io::Error) -> Problem {
    Problem::usage(format!("can't read {}: {error}", table.display()))
        .hint("name a CSV file whose first line has the columns' names, or - for standard input")
}

fn unwritten(error: wt_setup::files::WriteError) -> Problem {
    Problem::environment(error.to_string()).hint("name another file with --out; nothing was written")
}

/// Rows done and time left, for who watches.
fn bar(rows: u64, watched: bool) -> ProgressBar {
    let target = if watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(rows), target);
    let style = ProgressStyle::with_template("{human_pos} of {human_len} rows, {per_sec}, about {eta} left");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}

/// What a person wants to know besides the answer.
fn report(answer: &SweepAnswer, out: Option<&Path>) {
    if !answer.kept.is_empty() {
        tell(&format!("Columns kept as they are: {}.", answer.kept.join(", ")));
    }
    for (row, problem) in &answer.problems {
        tell(&format!("Row {row} has no answer: {problem}"));
    }
    if let Some(path) = out {
        let without = if answer.unanswered == 0 {
            String::new()
        } else {
            format!(", {} of them without an answer (column problem)", answer.unanswered)
        };
        tell(&format!("{}{without}: {}", counted(answer.rows as usize, "row"), path.display()));
    }
}

fn tell(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", wt_units::harmless(text));
}
