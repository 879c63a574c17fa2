use std::io::Read as _;
use std::ops::RangeInclusive;
use std::path::Path;
use wt_problem::Problem;

/// A table as it was read.
pub(super) struct Sheet {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// Where it was read, and each row's line.
    file: String,
    lines: Vec<u64>,
}

/// No table is larger.
const LARGEST: u64 = 1 << 20;
/// Figures that a transfer may have, whatever their unit.
const FIGURES: RangeInclusive<f64> = 1e-6..=1e12;

impl Sheet {
    /// Reads a CSV file with a row of names; lines that begin with # are comments.
    pub(super) fn read(path: &Path) -> Result<Self, Problem> {
        let name = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let cannot = |why: String| Problem::usage(format!("can't read {}: {why}", path.display()));
        // A device or a pipe has no length before it is read.
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(|error| cannot(error.to_string()))?;
        file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| cannot(error.to_string()))?;
        if bytes.len() as u64 > LARGEST {
            return Err(cannot(format!("it is too long for a study's table; at most {LARGEST} bytes")));
        }
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_reader(&*bytes);
        let columns: Vec<String> =
            reader.headers().map_err(|error| cannot(error.to_string()))?.iter().map(str::to_owned).collect();
        if let [only] = columns.as_slice()
            && only.contains(';')
        {
            let why = "its columns stand apart by semicolons".to_owned();
            return Err(cannot(why).hint("write them with commas between, and figures with a point: 1.5"));
        }
        let (mut rows, mut lines) = (Vec::new(), Vec::new());
        for record in reader.records() {
            let record = record.map_err(|error| cannot(error.to_string()))?;
            lines.push(record.position().map_or(0, csv::Position::line));
            rows.push(record.iter().map(str::to_owned).collect());
        }
        Ok(Self { name, columns, rows, file: path.display().to_string(), lines })
    }

    /// Refuses cells of a setting's column that are no numbers of this range.
    ///
    /// # Errors
    /// A usage problem that names the file, the line and the column.
    pub(super) fn check(&self, column: usize, allowed: RangeInclusive<f64>) -> Result<(), Problem> {
        let is_allowed = |row| self.number(row, column).is_some_and(|number| allowed.contains(&number));
        match (0..self.rows.len()).find(|row| !is_allowed(*row)) {
            Some(row) => {
                let (low, high) = (allowed.start(), allowed.end());
                Err(self.wrong(row, column).hint(format!("allowed are numbers from {low} to {high}")))
            }
            None => Ok(()),
        }
    }

    /// Refuses figures, from a column on, that no transfer has, and a table without any; an empty cell is one that wasn't measured.
    ///
    /// # Errors
    /// As [`Sheet::check`].
    pub(super) fn check_figures(&self, from: usize) -> Result<(), Problem> {
        if self.rows.is_empty() {
            let what = format!("can't replay {}: there is no measurement in it, only names of columns", self.file);
            return Err(Problem::usage(what));
        }
        let is_figure = |cell: &str| cell.is_empty() || cell.parse().is_ok_and(|number| FIGURES.contains(&number));
        for (row, cells) in self.rows.iter().enumerate() {
            if let Some(column) = (from..cells.len()).find(|column| !is_figure(&cells[*column])) {
                let hint = "write what was measured as a positive number, or leave the cell empty";
                return Err(self.wrong(row, column).hint(hint));
            }
        }
        Ok(())
    }

    fn wrong(&self, row: usize, column: usize) -> Problem {
        let (line, cell) = (self.lines[row], &self.rows[row][column]);
        let name = self.columns.get(column).map_or("", String::as_str);
        Problem::usage(format!("{}, line {line}, column {name}: {cell:?} is out of range, or no number", self.file))
    }

    /// What the figures of one row, from a column on, are of those of another, series by series.
    pub(super) fn ratios(&self, row: usize, of: usize, from: usize) -> Vec<f64> {
        let figure = |row, column| self.number(row, column);
        (from..self.columns.len()).filter_map(|column| Some(figure(row, column)? / figure(of, column)?)).collect()
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
