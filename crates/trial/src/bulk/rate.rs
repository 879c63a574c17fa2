use crate::Sample;

/// How many bytes had arrived when.
#[derive(Debug, Clone)]
pub struct Arrivals {
    /// (time, bytes so far), both ascending, from (0, 0) on.
    points: Vec<(u64, u64)>,
}

impl Arrivals {
    /// From the receiver's samples and the trial's end.
    #[must_use]
    pub fn new(samples: &[Sample], elapsed_us: u64, bytes: u64) -> Self {
        let mut points = vec![(0, 0)];
        for point in samples.iter().map(|sample| (sample.t_us, sample.bytes)).chain([(elapsed_us, bytes)]) {
            let last = points[points.len() - 1];
            if point.0 > last.0 && point.1 >= last.1 {
                points.push(point);
            }
        }
        Self { points }
    }

    /// When the last byte had come, µs.
    #[must_use]
    pub fn end_us(&self) -> u64 {
        self.points[self.points.len() - 1].0
    }

    /// When the samples were taken, µs.
    pub(super) fn times(&self) -> impl Iterator<Item = u64> {
        self.points.iter().map(|point| point.0)
    }

    /// Bytes that had arrived at a time, in between by straight lines.
    #[must_use]
    pub fn bytes_at(&self, t_us: u64) -> f64 {
        let after = self.points.partition_point(|point| point.0 < t_us);
        let Some(next) = self.points.get(after) else { return self.points[self.points.len() - 1].1 as f64 };
        let Some(last) = after.checked_sub(1).map(|before| self.points[before]) else { return next.1 as f64 };
        let part = (t_us - last.0) as f64 / (next.0 - last.0) as f64;
        last.1 as f64 + part * (next.1 - last.1) as f64
    }

    /// The mean rate between two times, bytes/s.
    #[must_use]
    pub fn mean(&self, from_us: u64, until_us: u64) -> Option<f64> {
        (until_us > from_us)
            .then(|| (self.bytes_at(until_us) - self.bytes_at(from_us)) / ((until_us - from_us) as f64 / 1e6))
    }

    /// The rate in the window that ends at a time, bytes/s. At the beginning the window is short.
    #[must_use]
    pub fn rate(&self, t_us: u64, window_us: u64) -> f64 {
        self.mean(t_us.saturating_sub(window_us), t_us).unwrap_or(0.0)
    }

    /// When, from `from_us` on, the rate first reached a level and held it for so long; the time at which it reached it.
    #[must_use]
    pub fn holds(&self, from_us: u64, level: f64, window_us: u64, hold_us: u64) -> Option<u64> {
        self.holds_before(from_us, self.end_us(), level, window_us, hold_us)
    }

    /// The same, reached before another time.
    pub(super) fn holds_before(
        &self,
        from_us: u64,
        before_us: u64,
        level: f64,
        window_us: u64,
        hold_us: u64,
    ) -> Option<u64> {
        let mut since = None;
        for t in self.times().filter(|t| *t > from_us && *t <= before_us) {
            // Within the first window a rate would be of too short a time.
            let reached = t >= window_us && self.rate(t, window_us) >= level;
            match since {
                Some(start) if reached && t - start >= hold_us => return Some(start),
                None if reached => since = Some(t),
                Some(_) if !reached => since = None,
                _ => {}
            }
        }
        None
    }

    /// When so many bytes had arrived, µs.
    #[must_use]
    pub fn reaches(&self, bytes: u64) -> Option<u64> {
        let after = self.points.partition_point(|point| point.1 < bytes);
        let next = self.points.get(after)?;
        let Some(last) = after.checked_sub(1).map(|before| self.points[before]) else { return Some(next.0) };
        let part = (bytes - last.1) as f64 / (next.1 - last.1).max(1) as f64;
        Some(last.0 + (part * (next.0 - last.0) as f64) as u64)
    }

    /// The coefficient of variation of the rate in steps of so long, without the last, broken one.
    #[must_use]
    pub fn variation(&self, step_us: u64) -> Option<f64> {
        let count = self.end_us() / step_us.max(1);
        let rates: Vec<f64> = (0..count).filter_map(|i| self.mean(i * step_us, (i + 1) * step_us)).collect();
        if rates.len() < 2 {
            return None;
        }
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let squares = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>();
        (mean > 0.0).then(|| (squares / (rates.len() - 1) as f64).sqrt() / mean)
    }
}
