//! A CSV file as columns of text, with the line of every row for messages.

use super::error::{CellName, ColumnRole, SheetError};
use std::io::Read;

/// Beyond this many cells a file is no table of measurements that somebody made.
const MOST_CELLS: usize = 5_000_000;
/// Nor if it is wider than this: designs have some columns, and series some hundreds.
const MOST_COLUMNS: usize = 4_096;
/// Nor if it has more bytes than this, whatever it holds.
const MOST_BYTES: u64 = 256 << 20;
/// How much of the file is looked at to find its separator.
const HEAD: usize = 64 * 1024;
/// What is measured lies in here, in whatever unit.
const MEASURABLE: std::ops::RangeInclusive<f64> = 1e-100..=1e100;

/// A CSV file.
#[derive(Debug)]
pub(super) struct Sheet {
    /// What the file is called in messages.
    file: String,
    pub(super) columns: Vec<Column>,
    /// What stands between its cells.
    separator: u8,
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
    pub(super) fn read(mut input: impl Read, file: &str) -> Result<Self, SheetError> {
        let mut head = Vec::new();
        let failed = |source| SheetError::Unreadable { file: file.to_owned(), source };
        input.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
        if is_utf16(&head) {
            return Err(SheetError::Utf16 { file: file.to_owned() });
        }
        let head = head.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(&head).to_vec();
        let separator = separator(&head);
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(separator)
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(head.as_slice().chain(BoundedReader { input, left: MOST_BYTES }));
        let problem = |error| complaint(file, error);
        let names: Vec<String> = reader.headers().map_err(problem)?.iter().map(str::to_owned).collect();
        if names.len() > MOST_COLUMNS {
            return Err(SheetError::TooManyColumns { file: file.to_owned(), found: names.len(), most: MOST_COLUMNS });
        }
        let columns = names.into_iter().map(Column::new).collect();
        let mut sheet = Self { file: file.to_owned(), columns, separator, lines: Vec::new() };
        sheet.check_names()?;
        let mut record = csv::StringRecord::new();
        while reader.read_record(&mut record).map_err(problem)? {
            let line = record.position().map_or(0, csv::Position::line);
            sheet.lines.push(line);
            if sheet.lines.len() * sheet.columns.len() > MOST_CELLS {
                return Err(SheetError::TooManyCells { file: file.to_owned(), line, most: MOST_CELLS });
            }
            for (number, (column, cell)) in sheet.columns.iter_mut().zip(&record).enumerate() {
                if cell.contains('\0') {
                    return Err(SheetError::ZeroByte { file: file.to_owned(), line, column: number + 1 });
                }
                column.cells.push(cell.to_owned());
            }
        }
        if sheet.lines.is_empty() {
            return Err(SheetError::NoRows { file: file.to_owned() });
        }
        Ok(sheet)
    }

    fn check_names(&self) -> Result<(), SheetError> {
        if self.columns.iter().all(|c| c.name.is_empty()) {
            return Err(SheetError::NoHeader { file: self.file.clone() });
        }
        let mut known = std::collections::HashSet::new();
        for (i, column) in self.columns.iter().enumerate() {
            if !known.insert(column.name.as_str()) {
                let name = column.name.clone();
                return Err(SheetError::SameName { file: self.file.clone(), column: i + 1, name });
            }
        }
        Ok(())
    }

    /// Keeps these rows alone, in this order.
    pub(super) fn keep(&mut self, rows: &[usize]) {
        for column in &mut self.columns {
            column.cells = rows.iter().map(|row| std::mem::take(&mut column.cells[*row])).collect();
        }
        self.lines = rows.iter().map(|row| self.lines[*row]).collect();
    }

    pub(super) fn rows(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn line(&self, row: usize) -> u64 {
        self.lines[row]
    }

    /// The column of this name, which somebody asked for.
    pub(super) fn find(&self, role: ColumnRole, name: &str) -> Result<usize, SheetError> {
        self.columns.iter().position(|column| column.name == name).ok_or_else(|| SheetError::NoSuchColumn {
            role,
            file: self.file.clone(),
            name: name.to_owned(),
            columns: self.names(),
        })
    }

    /// All names, in the order of the file.
    pub(super) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// What the file is called.
    pub(super) fn file(&self) -> String {
        self.file.clone()
    }

    pub(super) fn cells(&self, column: usize) -> &[String] {
        &self.columns[column].cells
    }

    /// Whether every cell of a column is a number.
    pub(super) fn is_numeric(&self, column: usize) -> bool {
        self.cells(column).iter().all(|cell| number(cell).is_some())
    }

    /// A column of outcomes: numbers above zero, of which squares can be summed.
    pub(super) fn outcomes(&self, column: usize) -> Result<Vec<f64>, SheetError> {
        let values = self.figures(column)?;
        if let Some(row) = values.iter().position(|v| *v <= 0.0) {
            let text = self.cells(column)[row].clone();
            return Err(SheetError::NotAboveZero { cell: self.at(row, column), text });
        }
        if let Some(row) = values.iter().position(|v| !MEASURABLE.contains(v)) {
            let text = self.cells(column)[row].clone();
            return Err(SheetError::NoMeasurement { cell: self.at(row, column), text });
        }
        if let Some(row) = self.thousands(column) {
            let text = self.cells(column)[row].clone();
            return Err(SheetError::PointUnclear { cell: self.at(row, column), text });
        }
        Ok(values)
    }

    /// The first row of a column whose points may separate thousands: the file is of those that have a comma in decimals, three digits
    /// stand behind every point and one to three, of which the first is no zero, before it, and some cells are numbers below a
    /// thousand without one.
    fn thousands(&self, column: usize) -> Option<usize> {
        let cells = self.cells(column);
        let digits = |part: &str, few: std::ops::RangeInclusive<usize>| {
            few.contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit())
        };
        let grouped = |cell: &String| {
            let parts = cell.split_once('.');
            parts.is_some_and(|(high, low)| digits(high, 1..=3) && !high.starts_with('0') && digits(low, 3..=3))
        };
        let is_small = |cell: &String| digits(cell, 1..=3);
        let fits = self.separator == b';' && cells.iter().all(|cell| grouped(cell) || is_small(cell));
        cells.iter().position(grouped).filter(|_| fits && cells.iter().any(is_small))
    }

    /// A column of figures of any sign.
    pub(super) fn figures(&self, column: usize) -> Result<Vec<f64>, SheetError> {
        let figure = |(row, cell): (usize, &String)| {
            number(cell).ok_or_else(|| match cell.as_str() {
                "" => SheetError::EmptyCell { cell: self.at(row, column) },
                text => SheetError::NotANumber { cell: self.at(row, column), text: text.to_owned() },
            })
        };
        self.cells(column).iter().enumerate().map(figure).collect()
    }

    /// A cell, as messages name it.
    pub(super) fn at(&self, row: usize, column: usize) -> CellName {
        let name = self.columns[column].name.clone();
        CellName { file: self.file.clone(), line: self.lines[row], column: column + 1, name }
    }
}

/// Reads no more than is left, and then says so.
struct BoundedReader<R> {
    input: R,
    left: u64,
}

impl<R: Read> Read for BoundedReader<R> {
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

/// The separator: what the header has most of.
fn separator(head: &[u8]) -> u8 {
    let header = head.split(|b| *b == b'\n').find(|line| !line.is_empty() && line[0] != b'#').unwrap_or_default();
    let count = |separator: u8| header.iter().filter(|b| **b == separator).count();
    *b",;\t".iter().rev().max_by_key(|s| count(**s)).unwrap_or(&b',')
}

/// What the reader stumbled over, with line and column.
fn complaint(file: &str, error: csv::Error) -> SheetError {
    let file = file.to_owned();
    let line = error.position().map_or(0, csv::Position::line);
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            let column = usize::try_from((*len).min(*expected_len)).unwrap_or(usize::MAX).saturating_add(1);
            SheetError::UnequalRow { file, line, column, cells: *len, header: *expected_len }
        }
        csv::ErrorKind::Utf8 { err, .. } => SheetError::NotUtf8 { file, line, column: err.field() + 1 },
        // It reads as the reader's own error does.
        _ => SheetError::Unreadable { file, source: error.into() },
    }
}

#[cfg(test)]
mod tests {
    use super::BoundedReader;
    use std::io::Read as _;

    #[test]
    fn no_more_is_read_than_is_left() {
        let read = |left: u64| BoundedReader { input: &[7u8; 10][..], left }.read_to_end(&mut Vec::new());
        assert_eq!(read(10).ok(), Some(10));
        assert_eq!(read(9).map_err(|error| error.kind()), Err(std::io::ErrorKind::FileTooLarge));
    }
}
