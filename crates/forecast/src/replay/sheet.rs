use std::path::Path;
use wt_problem::Problem;

/// A table as it was read.
pub(super) struct Sheet {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// No table is larger.
const LARGEST: u64 = 1 << 20;

impl Sheet {
    /// Reads a CSV file with a row of names; lines that begin with # are comments.
    pub(super) fn read(path: &Path) -> Result<Self, Problem> {
        let name = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let cannot = |why: String| Problem::usage(format!("can't read {}: {why}", path.display()));
        let length = std::fs::metadata(path).map_err(|error| cannot(error.to_string()))?.len();
        if length > LARGEST {
            return Err(cannot(format!("{length} bytes are too many for a study's table; at most {LARGEST}")));
        }
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_path(path);
        let reader = reader.as_mut().map_err(|error| cannot(error.to_string()))?;
        let columns = reader.headers().map_err(|error| cannot(error.to_string()))?.iter().map(str::to_owned).collect();
        let mut rows = Vec::new();
        for record in reader.records() {
            rows.push(record.map_err(|error| cannot(error.to_string()))?.iter().map(str::to_owned).collect());
        }
        Ok(Self { name, columns, rows })
    }

    /// The numbers of a row from a column on.
    pub(super) fn numbers(&self, row: usize, from: usize) -> Vec<f64> {
        self.rows[row].iter().skip(from).filter_map(|cell| cell.parse().ok()).collect()
    }

    /// One number of a row.
    pub(super) fn number(&self, row: usize, column: usize) -> Option<f64> {
        self.rows.get(row)?.get(column)?.parse().ok()
    }
}
