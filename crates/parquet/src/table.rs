use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::io::{Error, Write};
use std::sync::Arc;

/// Rows of a group: enough that readers skip and compress well, few enough for memory.
const GROUP_ROWS: usize = 32_768;
/// A group ends with so many bytes of text, too.
const GROUP_TEXT: usize = 8 << 20;

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// UTF-8.
    Text,
    /// 64 bits with a sign.
    Integer,
    /// 64 bits without one.
    Unsigned,
    /// A double.
    Real,
    /// True or false.
    Switch,
    /// A moment, µs since the Unix epoch, UTC.
    Moment,
}

impl ColumnKind {
    fn physical(self) -> (Physical, Option<LogicalType>) {
        match self {
            Self::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Integer => (Physical::INT64, None),
            Self::Unsigned => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Self::Real => (Physical::DOUBLE, None),
            Self::Switch => (Physical::BOOLEAN, None),
            Self::Moment => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
        }
    }
}

/// A value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// None.
    Missing,
    /// Of a column of texts.
    Text(&'a str),
    /// Of a column of whole numbers or moments.
    Integer(i64),
    /// Of a column of whole numbers without a sign.
    Unsigned(u64),
    /// Of a column of doubles.
    Real(f64),
    /// Of a column of switches.
    Switch(bool),
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Missing, Into::into)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Cell::Text(text)
    }
}

impl From<i64> for Cell<'_> {
    fn from(number: i64) -> Self {
        Cell::Integer(number)
    }
}

impl From<u64> for Cell<'_> {
    fn from(number: u64) -> Self {
        Cell::Unsigned(number)
    }
}

impl From<f64> for Cell<'_> {
    fn from(number: f64) -> Self {
        Cell::Real(number)
    }
}

/// The values of a column that aren't written yet.
#[derive(Debug)]
enum Values {
    Text(Vec<ByteArray>),
    Numbers(Vec<i64>),
    Reals(Vec<f64>),
    Switches(Vec<bool>),
}

#[derive(Debug)]
struct Column {
    name: String,
    kind: ColumnKind,
    values: Values,
    /// 1 for a value, 0 for a missing one.
    levels: Vec<i16>,
}

impl Column {
    fn new(name: String, kind: ColumnKind) -> Self {
        let values = match kind {
            ColumnKind::Text => Values::Text(Vec::new()),
            ColumnKind::Real => Values::Reals(Vec::new()),
            ColumnKind::Switch => Values::Switches(Vec::new()),
            ColumnKind::Integer | ColumnKind::Unsigned | ColumnKind::Moment => Values::Numbers(Vec::new()),
        };
        Self { name, kind, values, levels: Vec::new() }
    }

    fn schema(&self) -> Result<TypePtr, ParquetError> {
        let (physical, logical) = self.kind.physical();
        let column = Type::primitive_type_builder(&self.name, physical).with_repetition(Repetition::OPTIONAL);
        column.with_logical_type(logical).build().map(Arc::new)
    }

    /// Takes a value; how many bytes of text that adds.
    fn push(&mut self, cell: Cell<'_>) -> Result<usize, Error> {
        let mut text = 0;
        match (&mut self.values, cell) {
            (_, Cell::Missing) => {}
            (Values::Text(values), Cell::Text(word)) => match values.last() {
                // Most texts are the one before: those share their bytes.
                Some(last) if last.data() == word.as_bytes() => values.push(last.clone()),
                _ => {
                    text = word.len();
                    values.push(ByteArray::from(word));
                }
            },
            (Values::Numbers(values), Cell::Integer(number)) if self.kind != ColumnKind::Unsigned => {
                values.push(number)
            }
            (Values::Numbers(values), Cell::Unsigned(number)) if self.kind == ColumnKind::Unsigned => {
                values.push(number.cast_signed());
            }
            (Values::Reals(values), Cell::Real(number)) => values.push(number),
            (Values::Switches(values), Cell::Switch(is_on)) => values.push(is_on),
            (_, cell) => {
                let (name, kind) = (&self.name, self.kind);
                return Err(Error::other(format!("column {name} is of {kind:?}, and a row has {cell:?} there")));
            }
        }
        self.levels.push(i16::from(cell != Cell::Missing));
        Ok(text)
    }

    fn write(&mut self, writer: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = Some(self.levels.as_slice());
        match &mut self.values {
            Values::Text(values) => {
                writer.typed::<ByteArrayType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Numbers(values) => {
                writer.typed::<Int64Type>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Reals(values) => {
                writer.typed::<DoubleType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Switches(values) => {
                writer.typed::<BoolType>().write_batch(values, levels, None)?;
                values.clear();
            }
        }
        self.levels.clear();
        Ok(())
    }
}

/// A table that is being written.
pub struct ParquetTable<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Column>,
    /// Rows and bytes of text that aren't written yet.
    waiting: (usize, usize),
}

impl<W: Write + Send> ParquetTable<W> {
    /// A table with these columns, in this order; their names differ.
    ///
    /// # Errors
    /// What `out` says of the first bytes.
    pub fn new<N: Into<String>>(out: W, columns: impl IntoIterator<Item = (N, ColumnKind)>) -> Result<Self, Error> {
        let columns: Vec<Column> = columns.into_iter().map(|(name, kind)| Column::new(name.into(), kind)).collect();
        let fields = columns.iter().map(Column::schema).collect::<Result<Vec<_>, _>>().map_err(io)?;
        let schema = Type::group_type_builder("windtunnel").with_fields(fields).build().map_err(io)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("windtunnel ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties)).map_err(io)?;
        Ok(Self { writer, columns, waiting: (0, 0) })
    }

    /// Adds a row: a cell for each column.
    ///
    /// # Errors
    /// A row of another form, and what the writer says once a group is full.
    pub fn row<'a>(&mut self, cells: impl IntoIterator<Item = Cell<'a>>) -> Result<(), Error> {
        let mut cells = cells.into_iter();
        for column in &mut self.columns {
            let cell = cells.next().ok_or_else(|| Error::other(format!("a row ends before column {}", column.name)))?;
            self.waiting.1 += column.push(cell)?;
        }
        if cells.next().is_some() {
            return Err(Error::other("a row has more cells than there are columns"));
        }
        self.waiting.0 += 1;
        if self.waiting.0 >= GROUP_ROWS || self.waiting.1 >= GROUP_TEXT { self.group() } else { Ok(()) }
    }

    /// Writes what waits.
    fn group(&mut self) -> Result<(), Error> {
        self.waiting = (0, 0);
        let mut group = self.writer.next_row_group().map_err(io)?;
        for column in &mut self.columns {
            let writer = group.next_column().map_err(io)?;
            let mut writer = writer.ok_or_else(|| Error::other("a group has fewer columns than its table"))?;
            column.write(&mut writer).and_then(|()| writer.close()).map_err(io)?;
        }
        group.close().map(drop).map_err(io)
    }

    /// Writes the rest and the end; without it a table is none.
    ///
    /// # Errors
    /// What the writer says.
    pub fn finish(mut self) -> Result<W, Error> {
        if self.waiting.0 > 0 {
            self.group()?;
        }
        let mut out = self.writer.into_inner().map_err(io)?;
        out.flush()?;
        Ok(out)
    }
}

impl<W: Write + Send> std::fmt::Debug for ParquetTable<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetTable").field("columns", &self.columns.len()).field("waiting", &self.waiting).finish()
    }
}

/// What the writer below says stays what it was.
fn io(error: ParquetError) -> Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<Error>() {
            Ok(error) => *error,
            Err(other) => Error::other(other),
        },
        error => Error::other(error),
    }
}

#[cfg(test)]
mod tests;
