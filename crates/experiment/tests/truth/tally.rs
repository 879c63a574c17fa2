//! Counts with what they show of a rate.

/// How often something happened that should be rare.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) count: usize,
    pub(crate) of: usize,
}

impl Tally {
    pub(crate) fn of(runs: u64, happens: impl Fn(u64) -> bool) -> Self {
        let count = (0..runs).filter(|seed| happens(*seed)).count();
        Self { count, of: usize::try_from(runs).expect("a count") }
    }

    /// The upper end of Wilson's 95 % interval.
    pub(crate) fn upper(self) -> f64 {
        let (n, z) = (self.of as f64, 1.96);
        let p = self.count as f64 / n;
        (p + z * z / (2.0 * n) + z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt()) / (1.0 + z * z / n)
    }

    /// Prints a row of a table, and holds the rate against one in twenty.
    #[expect(clippy::print_stdout, reason = "the tables of `make truth`")]
    pub(crate) fn told_and_rare(self, cell: &str) {
        let share = 100.0 * self.count as f64 / self.of as f64;
        println!("| {cell} | {} | {share:.2} % | {:.2} % |", self.of, 100.0 * self.upper());
        assert!(self.upper() <= 0.06, "{cell}: {self:?}");
    }
}
