//! The growth of a curve.

/// A decade's cost may exceed that of n log n by this factor: what is measured in processors' time repeats to a tenth or so,
/// and what leaves a cache costs more.
const SLACK: f64 = 1.35;
/// Below this, s, a cost is that of starting, and says nothing of growth.
const LEAST: f64 = 0.002;

/// One size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub(crate) size: f64,
    /// Time of processors, s.
    pub(crate) cpu_s: f64,
    /// The most memory, MiB.
    pub(crate) peak_mib: f64,
}

/// A job over its sizes.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    pub(crate) name: &'static str,
    pub(crate) of: &'static str,
    pub(crate) reason: Option<&'static str>,
    pub(crate) points: Vec<Point>,
}

impl Curve {
    /// The slope of log cost over log size in the last decade and a bit, where costs have settled.
    pub(crate) fn exponent(&self) -> Option<f64> {
        let last = self.points.last()?;
        let first = self.points.iter().find(|point| point.size * 10.1 >= last.size && point.cpu_s >= LEAST)?;
        (first.size < last.size).then(|| (last.cpu_s / first.cpu_s).ln() / (last.size / first.size).ln())
    }

    /// The two sizes between which it grows faster than n log n, with slack, if it does anywhere: neighbours, or those a decade apart.
    pub(crate) fn too_fast(&self) -> Option<(f64, f64)> {
        let law = |size: f64| size * size.max(2.0).ln();
        let pairs = self.points.iter().enumerate().flat_map(|(at, b)| {
            let within = self.points[..at].iter().filter(|a| a.size * 10.1 >= b.size);
            within.chain(at.checked_sub(1).map(|before| &self.points[before])).map(move |a| (a, b))
        });
        let is_fast =
            |(a, b): &(&Point, &Point)| a.cpu_s >= LEAST && b.cpu_s / a.cpu_s > law(b.size) / law(a.size) * SLACK;
        pairs.filter(is_fast).map(|(a, b)| (a.size, b.size)).next()
    }

    pub(crate) fn is_unexplained(&self) -> bool {
        self.too_fast().is_some() && self.reason.is_none()
    }

    /// What grows, how, and why if it grows too fast.
    pub(crate) fn remark(&self) -> String {
        match (self.too_fast(), self.reason) {
            (None, _) => "no faster than n log n".to_owned(),
            (Some((a, b)), Some(why)) => format!("faster than n log n from {a} to {b}: {why}"),
            (Some((a, b)), None) => format!("FASTER than n log n from {a} to {b}, and nobody says why"),
        }
    }

    pub(crate) fn line(&self) -> String {
        let cells: Vec<String> =
            self.points.iter().map(|p| format!("{}: {:.4} s {:.0} MiB", p.size, p.cpu_s, p.peak_mib)).collect();
        let exponent = self.exponent().map_or_else(|| "–".to_owned(), |exponent| format!("{exponent:.2}"));
        format!("{:<18} exponent {exponent}  {}\n    {}", self.name, self.remark(), cells.join(", "))
    }
}
