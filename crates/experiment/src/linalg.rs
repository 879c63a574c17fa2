//! The little linear algebra that a model with a handful of settings needs.

/// A square matrix, row after row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Square {
    size: usize,
    cells: Vec<f64>,
}

impl Square {
    pub(crate) fn zero(size: usize) -> Self {
        Self { size, cells: vec![0.0; size * size] }
    }

    pub(crate) fn get(&self, row: usize, column: usize) -> f64 {
        self.cells[row * self.size + column]
    }

    pub(crate) fn add(&mut self, row: usize, column: usize, value: f64) {
        self.cells[row * self.size + column] += value;
    }

    /// The rows and columns named in `keep`.
    pub(crate) fn minor(&self, keep: &[usize]) -> Self {
        let cells = keep.iter().flat_map(|r| keep.iter().map(|c| self.get(*r, *c))).collect();
        Self { size: keep.len(), cells }
    }

    pub(crate) fn times(&self, vector: &[f64]) -> Vec<f64> {
        (0..self.size).map(|r| (0..self.size).map(|c| self.get(r, c) * vector[c]).sum()).collect()
    }

    /// The inverse by Gauss–Jordan with row exchange; `None` if the matrix is singular.
    pub(crate) fn inverse(&self) -> Option<Self> {
        let n = self.size;
        let mut a = self.clone();
        let mut inverse = Self::zero(n);
        for i in 0..n {
            inverse.cells[i * n + i] = 1.0;
        }
        let largest = self.cells.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        for column in 0..n {
            let pivot = (column..n).max_by(|i, j| a.get(*i, column).abs().total_cmp(&a.get(*j, column).abs()))?;
            let value = a.get(pivot, column);
            if value.is_nan() || value.abs() <= 1e-12 * largest {
                return None;
            }
            let factors: Vec<f64> = (0..n).map(|row| a.get(if row == pivot { column } else { row }, column)).collect();
            for m in [&mut a, &mut inverse] {
                for c in 0..n {
                    m.cells.swap(pivot * n + c, column * n + c);
                }
                let own: Vec<f64> = m.cells[column * n..][..n].iter().map(|cell| cell / value).collect();
                m.cells[column * n..][..n].copy_from_slice(&own);
                let others = m.cells.chunks_exact_mut(n).zip(&factors).enumerate().filter(|(row, _)| *row != column);
                for (_, (cells, factor)) in others {
                    cells.iter_mut().zip(&own).for_each(|(cell, own)| *cell -= factor * own);
                }
            }
        }
        Some(inverse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(size: usize, cells: &[f64]) -> Square {
        Square { size, cells: cells.to_vec() }
    }

    #[test]
    fn the_inverse_times_the_matrix_is_one() {
        let a = square(3, &[0.0, 2.0, 1.0, 4.0, -1.0, 0.5, 3.0, 3.0, 9.0]);
        let inverse = a.inverse().unwrap();
        for c in 0..3 {
            let unit: Vec<f64> = (0..3).map(|r| f64::from(u8::from(r == c))).collect();
            for (got, want) in inverse.times(&a.times(&unit)).iter().zip(&unit) {
                assert!((got - want).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_singular_matrix_has_no_inverse() {
        assert_eq!(square(2, &[1.0, 2.0, 2.0, 4.0]).inverse(), None);
        assert_eq!(square(1, &[f64::NAN]).inverse(), None);
    }
}
