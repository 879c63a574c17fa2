use crate::describe::mean;

/// A complete table of one factor in blocks: every level once in every block.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    levels: Vec<String>,
    blocks: Vec<String>,
    /// Row after row, one row for each level.
    cells: Vec<f64>,
}

/// Why a table can't be analysed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A comparison needs two.
    #[error("there is only one level, so there is nothing to compare")]
    OneLevel,
    /// The number of cells isn't the number of levels times that of blocks.
    #[error("{cells} cells are not {levels} levels times {blocks} blocks")]
    Shape {
        /// Cells.
        cells: usize,
        /// Levels.
        levels: usize,
        /// Blocks.
        blocks: usize,
    },
    /// A cell that isn't a finite number.
    #[error("the cell of level {level} in block {block} is no finite number")]
    NotFinite {
        /// Its level.
        level: String,
        /// Its block.
        block: String,
    },
}

impl Table {
    /// A table from its cells, row after row.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn new(levels: Vec<String>, blocks: Vec<String>, cells: Vec<f64>) -> Result<Self, TableError> {
        if levels.len() < 2 {
            return Err(TableError::OneLevel);
        }
        if blocks.is_empty() || cells.len() != levels.len() * blocks.len() {
            return Err(TableError::Shape { cells: cells.len(), levels: levels.len(), blocks: blocks.len() });
        }
        if let Some(i) = cells.iter().position(|c| !c.is_finite()) {
            let (level, block) = (levels[i / blocks.len()].clone(), blocks[i % blocks.len()].clone());
            return Err(TableError::NotFinite { level, block });
        }
        Ok(Self { levels, blocks, cells })
    }

    /// The names of the levels.
    #[must_use]
    pub fn levels(&self) -> &[String] {
        &self.levels
    }

    /// The names of the blocks.
    #[must_use]
    pub fn blocks(&self) -> &[String] {
        &self.blocks
    }

    /// The outcomes of a level, block after block.
    #[must_use]
    pub fn row(&self, level: usize) -> &[f64] {
        let b = self.blocks.len();
        &self.cells[level * b..(level + 1) * b]
    }

    /// The same table with the logarithm of every cell; `None` if a cell isn't positive.
    #[must_use]
    pub fn log(&self) -> Option<Self> {
        let cells: Vec<f64> = self.cells.iter().map(|c| c.ln()).collect();
        cells.iter().all(|c| c.is_finite()).then(|| Self { cells, ..self.clone() })
    }

    /// The same table with the sign of every cell changed.
    pub(super) fn negated(&self) -> Self {
        Self { cells: self.cells.iter().map(|c| -c).collect(), ..self.clone() }
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.cells.chunks_exact(self.blocks.len())
    }

    /// The outcomes within a block, level after level.
    pub(super) fn column(&self, block: usize) -> Vec<f64> {
        self.rows().map(|row| row[block]).collect()
    }

    pub(super) fn row_means(&self) -> Vec<f64> {
        self.rows().map(mean).collect()
    }

    /// The number of levels and of blocks.
    pub(super) fn shape(&self) -> (usize, usize) {
        (self.levels.len(), self.blocks.len())
    }
}
