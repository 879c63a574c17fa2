use crate::{Cell, ColumnKind, ParquetTable};
use std::io::{Error, Read, Seek, SeekFrom, Write};

/// What the cells of a column have been so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CellKinds {
    any: bool,
    integer: bool,
    unsigned: bool,
    real: bool,
    switch: bool,
}

impl CellKinds {
    const NOTHING: Self = Self { any: false, integer: true, unsigned: true, real: true, switch: true };

    fn see(&mut self, cell: &str) {
        if !cell.is_empty() {
            self.any = true;
            self.integer &= integer::<i64>(cell).is_some();
            self.unsigned &= integer::<u64>(cell).is_some();
            self.real &= real(cell).is_some();
            self.switch &= switch(cell).is_some();
        }
    }

    fn kind(self) -> ColumnKind {
        match self {
            Self { any: false, .. } => ColumnKind::Text,
            Self { integer: true, .. } => ColumnKind::Integer,
            Self { unsigned: true, .. } => ColumnKind::Unsigned,
            Self { real: true, .. } => ColumnKind::Real,
            Self { switch: true, .. } => ColumnKind::Switch,
            _ => ColumnKind::Text,
        }
    }
}

/// A whole number that is written as it always is: what has zeros in front is a name.
fn integer<T: std::str::FromStr>(cell: &str) -> Option<T> {
    let is_plain = cell == "0" || !cell.trim_start_matches('-').starts_with(['0', '+']) && cell != "-0";
    cell.parse().ok().filter(|_| is_plain)
}

/// A number in digits, with a point or an exponent; neither `nan` nor `inf`, nor a whole one that would lose digits, which is a name.
fn real(cell: &str) -> Option<f64> {
    let is_plain = cell.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let has_zeros = cell
        .trim_start_matches('-')
        .strip_prefix('0')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let keeps_its_digits = |number: f64| match cell.parse::<i128>() {
        Ok(whole) => number as i128 == whole || number.to_string() == cell,
        Err(_) => !cell.bytes().all(|byte| byte.is_ascii_digit()) || number.to_string() == cell,
    };
    cell.parse().ok().filter(|number: &f64| is_plain && !has_zeros && number.is_finite() && keeps_its_digits(*number))
}

fn switch(cell: &str) -> Option<bool> {
    cell.parse().ok()
}

/// Writes a table of CSV, whose first line has the columns' names, as Parquet. A column in `known` is of that kind; of the others
/// one whose cells are all whole numbers, numbers, or `true` and `false` is so, and text otherwise. An empty cell is a missing value.
/// The table is read twice, so that nothing but a group of rows is in memory.
///
/// # Errors
/// A cell that isn't of its known kind, CSV that isn't any, and what reading and writing says.
pub fn from_csv<W: Write + Send>(mut csv: impl Read + Seek, out: W, known: &[(&str, ColumnKind)]) -> Result<W, Error> {
    csv.seek(SeekFrom::Start(0))?;
    let mut reader = csv::Reader::from_reader(&mut csv);
    let names = reader.headers()?.clone();
    let mut seen = vec![CellKinds::NOTHING; names.len()];
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record)? {
        seen.iter_mut().zip(&record).for_each(|(seen, cell)| seen.see(cell));
    }
    let columns = names.iter().zip(seen).map(|(name, seen)| {
        let known = known.iter().find(|(known, _)| *known == name);
        (name, known.map_or_else(|| seen.kind(), |(_, kind)| *kind))
    });
    let columns: Vec<(&str, ColumnKind)> = columns.collect();
    csv.seek(SeekFrom::Start(0))?;
    let mut reader = csv::Reader::from_reader(&mut csv);
    let mut table = ParquetTable::new(out, columns.iter().copied())?;
    while reader.read_record(&mut record)? {
        let cells = columns.iter().zip(&record).map(|((name, kind), cell)| {
            of_kind(*kind, cell)
                .ok_or_else(|| Error::other(format!("column {name} has {cell:?}, which isn't of {kind:?}")))
        });
        table.row(cells.collect::<Result<Vec<_>, _>>()?)?;
    }
    table.finish()
}

fn of_kind(kind: ColumnKind, cell: &str) -> Option<Cell<'_>> {
    if cell.is_empty() {
        return Some(Cell::Missing);
    }
    match kind {
        ColumnKind::Text => Some(Cell::Text(cell)),
        ColumnKind::Integer | ColumnKind::Moment => cell.parse().ok().map(Cell::Integer),
        ColumnKind::Unsigned => cell.parse().ok().map(Cell::Unsigned),
        ColumnKind::Real => cell.parse().ok().map(Cell::Real),
        ColumnKind::Switch => switch(cell).map(Cell::Switch),
    }
}
