//! Tables of many rows as Parquet, row by row.
//!
//! Rows are kept until they are enough for a group, then written: memory is bounded however many there are. Each column may
//! have missing values. What this leaves out: nested columns, and codecs other than Snappy.
//!
//! # Source
//! <https://parquet.apache.org/docs/file-format/>
//!
//! # Example
//! ```
//! use wt_parquet::{Cell, ColumnKind, ParquetTable};
//! let columns = [("host", ColumnKind::Text), ("rtt_us", ColumnKind::Integer)];
//! let mut table = ParquetTable::new(Vec::new(), columns)?;
//! table.row([Cell::Text("a"), Cell::Integer(31_000)])?;
//! table.row([Cell::Text("b"), Cell::Missing])?;
//! let file = table.finish()?;
//! assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

/// From CSV.
mod from_csv;
/// Row by row.
mod table;

pub use from_csv::from_csv;
pub use table::{Cell, ColumnKind, ParquetTable};
