//! A CSV file as columns of text, with the line of every row for messages.

use crate::edge::Failure;
use std::io::Read;
use wt_units::suggestion;

/// Beyond this many cells a file is no table of measurements that somebody made.
const MOST_CELLS: usize = 5_000_000;
/// Nor if it has more bytes than this, whatever it holds.
const MOST_BYTES: u64 = 256 << 20;
/// How much of the file is looked at to find its separator.
const HEAD: usize = 64 * 1024;

/// A CSV file.
#[derive(Debug)]
pub(super) struct Sheet {
    /// What the file is called in messages.
    file: String,
    pub(super) columns: Vec<Column>,
    /// The line of each row.
    lines: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    cells: Vec<String>,
}

impl Sheet {
    /// Reads a table.
    pub(super) fn read(mut input: impl Read, file: &str) -> Result<Self, Failure> {
        let mut head = Vec::new();
        let failed = |e: std::io::Error| Failure::usage(format!("cannot read {file}")).because(e.to_string());
        input.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
        if is_utf16(&head) {
            return Err(Failure::usage(format!(
                "{file}: line 1, column 1: the file is not UTF-8; it looks like UTF-16"
            ))
            .hint(format!("iconv -f UTF-16 -t UTF-8 {file} > new.csv")));
        }
        let head = head.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(&head).to_vec();
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(separator(&head))
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(head.as_slice().chain(Bounded { input, left: MOST_BYTES }));
        let problem = |e: &csv::Error| complaint(file, e);
        let names: Vec<String> = reader.headers().map_err(|e| problem(&e))?.iter().map(str::to_owned).collect();
        let mut sheet =
            Self { file: file.to_owned(), columns: names.into_iter().map(Column::new).collect(), lines: Vec::new() };
        sheet.check_names()?;
        let mut record = csv::StringRecord::new();
        while reader.read_record(&mut record).map_err(|e| problem(&e))? {
            let line = record.position().map_or(0, csv::Position::line);
            sheet.lines.push(line);
            if sheet.lines.len() * sheet.columns.len() > MOST_CELLS {
                return Err(Failure::usage(format!("{file}: line {line}: more than {MOST_CELLS} cells"))
                    .hint("analyse means of rounds, or a part of the file"));
            }
            for (number, (column, cell)) in sheet.columns.iter_mut().zip(&record).enumerate() {
                if cell.contains('\0') {
                    let what = format!("{file}: line {line}, column {}: there is a zero byte in the text", number + 1);
                    return Err(Failure::usage(what).because("the file is no table of text, or is damaged"));
                }
                column.cells.push(cell.to_owned());
            }
        }
        if sheet.lines.is_empty() {
            return Err(Failure::usage(format!("{file}: there is no row under the header")));
        }
        Ok(sheet)
    }

    fn check_names(&self) -> Result<(), Failure> {
        if self.columns.iter().all(|c| c.name.is_empty()) {
            return Err(Failure::usage(format!("{}: the file is empty, or has no header line", self.file)));
        }
        for (i, column) in self.columns.iter().enumerate() {
            if self.columns[..i].iter().any(|other| other.name == column.name) {
                let name = &column.name;
                let what = format!("{}: line 1, column {}: a second column is called '{name}'", self.file, i + 1);
                return Err(Failure::usage(what).hint("give every column a name of its own"));
            }
        }
        Ok(())
    }

    pub(super) fn rows(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn line(&self, row: usize) -> u64 {
        self.lines[row]
    }

    /// The column of this name, as an argument asks for it.
    pub(super) fn find(&self, flag: &str, name: &str) -> Result<usize, Failure> {
        let names = || self.columns.iter().map(|c| c.name.as_str());
        names().position(|n| n == name).ok_or_else(|| {
            let near = suggestion(name, names());
            let columns: Vec<&str> = names().collect();
            let failure = Failure::usage(format!("{flag}: {} has no column '{name}'{near}", self.file));
            failure.hint(format!("its columns are {}", columns.join(", ")))
        })
    }

    pub(super) fn cells(&self, column: usize) -> &[String] {
        &self.columns[column].cells
    }

    /// Whether every cell of a column is a number.
    pub(super) fn is_numeric(&self, column: usize) -> bool {
        self.cells(column).iter().all(|cell| number(cell).is_some())
    }

    /// A column of outcomes: numbers above zero.
    pub(super) fn outcomes(&self, column: usize) -> Result<Vec<f64>, Failure> {
        let values = self.figures(column)?;
        if let Some(row) = values.iter().position(|v| *v <= 0.0) {
            let what = format!("{} is not above zero", quoted(&self.cells(column)[row]));
            return Err(self
                .at(row, column, what)
                .because("settings are compared by their ratios")
                .hint("leave failed trials out and report how many there were"));
        }
        Ok(values)
    }

    /// A column of figures of any sign.
    pub(super) fn figures(&self, column: usize) -> Result<Vec<f64>, Failure> {
        let figure = |(row, cell): (usize, &String)| {
            number(cell).ok_or_else(|| match cell.as_str() {
                "" => self.at(row, column, "the cell is empty".to_owned()),
                text => {
                    let failure = self.at(row, column, format!("{} is not a number", quoted(text)));
                    if text.contains(',') {
                        failure.hint("write decimals with a point, and no separators of thousands")
                    } else {
                        failure
                    }
                }
            })
        };
        self.cells(column).iter().enumerate().map(figure).collect()
    }

    /// What is wrong with a cell.
    pub(super) fn at(&self, row: usize, column: usize, what: String) -> Failure {
        let name = &self.columns[column].name;
        Failure::usage(format!("{}: line {}, column {} ({name}): {what}", self.file, self.lines[row], column + 1))
    }

    /// What is wrong with the file.
    pub(super) fn wrong(&self, what: impl std::fmt::Display) -> Failure {
        Failure::usage(format!("{}: {what}", self.file))
    }
}

/// Reads no more than is left, and then says so.
struct Bounded<R> {
    input: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            let what = format!("it holds more than {} MiB, which no table of measurements does", MOST_BYTES >> 20);
            std::io::Error::new(std::io::ErrorKind::FileTooLarge, what)
        })?;
        Ok(read)
    }
}

impl Column {
    fn new(name: String) -> Self {
        Self { name, cells: Vec::new() }
    }
}

/// A finite number; `nan` and `inf` are none.
fn number(cell: &str) -> Option<f64> {
    cell.parse().ok().filter(|v: &f64| v.is_finite())
}

/// Whether a file begins as UTF-16 does: with its mark, or with every other byte zero.
fn is_utf16(head: &[u8]) -> bool {
    let zeros = |first: usize| {
        let half = || head.iter().take(64).skip(first).step_by(2);
        half().count() > 2 && half().all(|b| *b == 0)
    };
    head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) || zeros(0) || zeros(1)
}

/// What a cell holds, cut off where nobody reads on.
pub(super) fn quoted(cell: &str) -> String {
    const MOST: usize = 40;
    if cell.chars().count() <= MOST {
        return format!("'{cell}'");
    }
    let start: String = cell.chars().take(MOST).collect();
    format!("'{start}…' ({} characters)", cell.chars().count())
}

/// The separator: what the header has most of.
fn separator(head: &[u8]) -> u8 {
    let header = head.split(|b| *b == b'\n').find(|line| !line.is_empty() && line[0] != b'#').unwrap_or_default();
    let count = |separator: u8| header.iter().filter(|b| **b == separator).count();
    *b",;\t".iter().rev().max_by_key(|s| count(**s)).unwrap_or(&b',')
}

/// What the reader stumbled over, with line and column.
fn complaint(file: &str, error: &csv::Error) -> Failure {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let line = pos.as_ref().map_or(0, csv::Position::line);
            let column = (*len).min(*expected_len) + 1;
            let what =
                format!("{file}: line {line}, column {column}: the row has {len} cells, the header {expected_len}");
            Failure::usage(what).hint("quote cells that contain the separator")
        }
        csv::ErrorKind::Utf8 { pos, err } => {
            let line = pos.as_ref().map_or(0, csv::Position::line);
            Failure::usage(format!("{file}: line {line}, column {}: the text is not UTF-8", err.field() + 1))
                .hint(format!("iconv -f ISO-8859-1 -t UTF-8 {file} > new.csv"))
        }
        _ => Failure::usage(format!("cannot read {file}")).because(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Bounded, quoted};
    use std::io::Read as _;

    #[test]
    fn no_more_is_read_than_is_left() {
        let read = |left: u64| Bounded { input: &[7u8; 10][..], left }.read_to_end(&mut Vec::new());
        assert_eq!(read(10).ok(), Some(10));
        assert_eq!(read(9).map_err(|error| error.kind()), Err(std::io::ErrorKind::FileTooLarge));
    }

    #[test]
    fn long_cells_are_cut_off_between_letters() {
        assert_eq!(quoted("fast"), "'fast'");
        assert_eq!(quoted(&"ä".repeat(41)), format!("'{}…' (41 characters)", "ä".repeat(40)));
    }
}
