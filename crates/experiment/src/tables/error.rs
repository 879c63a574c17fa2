use crate::classic::TableError;
use std::io;
use wt_units::suggestion;

/// A cell of a sheet, as messages name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellName {
    /// What the file is called.
    pub file: String,
    /// Its line there.
    pub line: u64,
    /// Its column, from 1.
    pub column: usize,
    /// The column's name.
    pub name: String,
}

impl std::fmt::Display for CellName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: line {}, column {} ({})", self.file, self.line, self.column, self.name)
    }
}

/// What a column was named for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnRole {
    /// The outcomes.
    Value,
    /// The settings that are compared.
    Factor,
    /// The blocks within which they are compared.
    Block,
}

impl ColumnRole {
    /// As the command line and the page call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Factor => "factor",
            Self::Block => "block",
        }
    }
}

/// Why a sheet can't be analysed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SheetError {
    /// The input can't be read.
    #[error("cannot read {file}")]
    Unreadable {
        /// What the file is called.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// The text isn't encoded as we read it.
    #[error("{file}: line 1, column 1: the file is not UTF-8; it looks like UTF-16")]
    Utf16 {
        /// What the file is called.
        file: String,
    },
    /// The text of a cell isn't encoded as we read it.
    #[error("{file}: line {line}, column {column}: the text is not UTF-8")]
    NotUtf8 {
        /// What the file is called.
        file: String,
        /// The line.
        line: u64,
        /// The column, from 1.
        column: usize,
    },
    /// No table of measurements has so many cells.
    #[error("{file}: line {line}: more than {most} cells")]
    TooManyCells {
        /// What the file is called.
        file: String,
        /// The line with which they are too many.
        line: u64,
        /// How many are allowed.
        most: usize,
    },
    /// No table of measurements is so wide.
    #[error("{file}: {found} columns, and at most {most} are read")]
    TooManyColumns {
        /// What the file is called.
        file: String,
        /// How many there are.
        found: usize,
        /// How many are allowed.
        most: usize,
    },
    /// No text has such a byte.
    #[error("{file}: line {line}, column {column}: there is a zero byte in the text")]
    ZeroByte {
        /// What the file is called.
        file: String,
        /// The line.
        line: u64,
        /// The column, from 1.
        column: usize,
    },
    /// A row isn't as long as the header.
    #[error("{file}: line {line}, column {column}: the row has {cells} cells, the header {header}")]
    UnequalRow {
        /// What the file is called.
        file: String,
        /// The line.
        line: u64,
        /// The first column that is missing, or too many, from 1.
        column: usize,
        /// The row's cells.
        cells: u64,
        /// The header's.
        header: u64,
    },
    /// There is only a header.
    #[error("{file}: there is no row under the header")]
    NoRows {
        /// What the file is called.
        file: String,
    },
    /// There is not even that.
    #[error("{file}: the file is empty, or has no header line")]
    NoHeader {
        /// What the file is called.
        file: String,
    },
    /// Two columns have one name.
    #[error("{file}: line 1, column {column}: a second column is called '{name}'")]
    SameName {
        /// What the file is called.
        file: String,
        /// The second one, from 1.
        column: usize,
        /// The name.
        name: String,
    },
    /// A column was named that isn't there.
    #[error("--{}: {file} has no column '{name}'{}", .role.name(), suggestion(.name, .columns.iter().map(String::as_str)))]
    NoSuchColumn {
        /// What it was named for.
        role: ColumnRole,
        /// What the file is called.
        file: String,
        /// What was asked for.
        name: String,
        /// What there is.
        columns: Vec<String>,
    },
    /// Nothing tells which column has the outcomes.
    #[error("{file}: cannot tell which column is the outcome")]
    OutcomeUnclear {
        /// What the file is called.
        file: String,
        /// Whether several could be; otherwise none.
        several: bool,
        /// What there is.
        columns: Vec<String>,
    },
    /// An outcome must be above zero.
    #[error("{cell}: {} is not above zero", quoted(.text))]
    NotAboveZero {
        /// Where.
        cell: CellName,
        /// What stands there.
        text: String,
    },
    /// Nothing that is measured is so large or so small, nor do sums of its squares have a value.
    #[error("{cell}: {} is no measurement, which lies between 1e-100 and 1e100", quoted(.text))]
    NoMeasurement {
        /// Where.
        cell: CellName,
        /// What stands there.
        text: String,
    },
    /// Nothing is so many times as fast.
    #[error("{cell}: {} is no log of a ratio, which lies between -20 and 20 (is it a percentage?)", quoted(.text))]
    NoLogRatio {
        /// Where.
        cell: CellName,
        /// What stands there.
        text: String,
    },
    /// A standard error must be above zero, and that of a log has a scale.
    #[error("{cell}: {} is no standard error of a log, which is above zero and at most 20", quoted(.text))]
    NoStandardError {
        /// Where.
        cell: CellName,
        /// What stands there.
        text: String,
    },
    /// There is no figure.
    #[error("{cell}: the cell is empty")]
    EmptyCell {
        /// Where.
        cell: CellName,
    },
    /// There is something else.
    #[error("{cell}: {} is not a number", quoted(.text))]
    NotANumber {
        /// Where.
        cell: CellName,
        /// What stands there.
        text: String,
    },
    /// A point separates decimals, or thousands: both readings fit the column.
    #[error("{cell}: the point in {} may separate decimals or thousands", quoted(.text))]
    PointUnclear {
        /// Where.
        cell: CellName,
        /// What stands there.
        text: String,
    },
    /// Beside the outcomes there is nothing to compare by.
    #[error("{file}: there is no column of levels beside the outcome{}", if *.several { "s" } else { "" })]
    NoFactor {
        /// What the file is called.
        file: String,
        /// Whether there are several columns of outcomes.
        several: bool,
    },
    /// All rows have one level.
    #[error("{cell}: there is only one level, {}, so there is nothing to compare", quoted(.level))]
    OneLevel {
        /// Its first cell.
        cell: CellName,
        /// The level.
        level: String,
    },
    /// So many levels are a list.
    #[error("{file}: column {column} has more than {most} levels")]
    TooManyLevels {
        /// What the file is called.
        file: String,
        /// The column's name.
        column: String,
        /// How many are allowed.
        most: usize,
    },
    /// A column of outcomes is named twice.
    #[error("{file}: the column '{column}' is named twice")]
    ValueTwice {
        /// What the file is called.
        file: String,
        /// The column.
        column: String,
    },
    /// Two rows of a table with series side by side have one level.
    #[error("{cell}: level '{level}' stands in line {before} already")]
    LevelTwice {
        /// The second one.
        cell: CellName,
        /// The level.
        level: String,
        /// The line of the first one.
        before: u64,
    },
    /// Two rows of one block have one level.
    #[error("{cell}: level '{level}' in block '{block}' stands in line {before} already")]
    LevelTwiceInBlock {
        /// The second one.
        cell: CellName,
        /// The level.
        level: String,
        /// The block.
        block: String,
        /// The line of the first one.
        before: u64,
    },
    /// Two rows of one block have one combination of both factors.
    #[error("{cell}: this combination stands in line {before} already, in the same block")]
    CombinationTwice {
        /// The second one.
        cell: CellName,
        /// The line of the first one.
        before: u64,
    },
    /// Every block lacks a level.
    #[error("{file}: no block of {block} holds every level")]
    NoWholeBlock {
        /// What the file is called.
        file: String,
        /// The column of blocks.
        block: String,
    },
    /// An outcome isn't above zero, though it was read as one: a mistake of ours.
    #[error("{file}: an outcome is not above zero")]
    NotPositive {
        /// What the file is called.
        file: String,
    },
    /// The cells make no table.
    #[error("{file}: {source}")]
    Table {
        /// What the file is called.
        file: String,
        /// Why.
        source: TableError,
    },
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

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn long_cells_are_cut_off_between_letters() {
        assert_eq!(quoted("fast"), "'fast'");
        assert_eq!(quoted(&"ä".repeat(41)), format!("'{}…' (41 characters)", "ä".repeat(40)));
    }
}
