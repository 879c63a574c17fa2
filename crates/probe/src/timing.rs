use std::time::Duration;

/// The round-trip time as seen so far, and how long to wait for an answer.
///
/// A fixed timeout of a second makes every size that doesn't get through cost a second. When other probes of the same
/// burst have been answered, silence says enough after a fraction of the round-trip time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rtt {
    min: Option<Duration>,
    smoothed: Duration,
    deviation: Duration,
}

impl Rtt {
    /// How long a first answer is waited for, when nothing is known.
    pub const UNKNOWN: Duration = Duration::from_secs(1);

    /// Takes a sample.
    ///
    /// # Source
    /// Smoothing as in RFC 6298 section 2: an eighth of the new sample, a quarter of the new deviation.
    pub fn sample(&mut self, rtt: Duration) {
        let Some(min) = self.min else {
            *self = Self { min: Some(rtt), smoothed: rtt, deviation: Duration::ZERO };
            return;
        };
        self.min = Some(min.min(rtt));
        let off = rtt.abs_diff(self.smoothed);
        self.deviation = (self.deviation * 3 + off) / 4;
        self.smoothed = (self.smoothed * 7 + rtt) / 8;
    }

    /// The shortest yet.
    #[must_use]
    pub const fn min(&self) -> Option<Duration> {
        self.min
    }

    /// The same, where a shorter one was measured otherwise.
    #[must_use]
    pub fn with_min(self, rtt: Duration) -> Self {
        Self { min: self.min.map(|min| min.min(rtt)), ..self }
    }

    /// The usual one.
    #[must_use]
    pub fn smoothed(&self) -> Option<Duration> {
        self.min.map(|_| self.smoothed)
    }

    /// How long after the time at which an answer was due it is called lost: a quarter of the round-trip time, 10 ms,
    /// and twice the jitter.
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.smoothed / 4 + Duration::from_millis(10) + self.deviation * 2
    }

    /// When probes of which the last left at `sent` are lost, if the last answer came at `heard`.
    #[must_use]
    pub fn verdict_at(&self, sent: Duration, heard: Option<Duration>) -> Duration {
        match self.min {
            None => sent + Self::UNKNOWN,
            Some(_) => (sent + self.smoothed).max(heard.unwrap_or_default()) + self.grace(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn silence_is_judged_by_the_round_trip_time_and_not_by_a_fixed_second() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.verdict_at(ms(5), None), ms(1005));
        rtt.sample(ms(40));
        assert_eq!(rtt.verdict_at(ms(5), None), ms(65));
        assert_eq!(rtt.verdict_at(ms(5), Some(ms(90))), ms(110), "answers that still come in put it off");
    }

    #[test]
    fn jitter_lengthens_the_wait() {
        let mut calm = Rtt::default();
        let mut shaky = Rtt::default();
        for i in 0..20 {
            calm.sample(ms(40));
            shaky.sample(ms(if i % 2 == 0 { 20 } else { 60 }));
        }
        assert_eq!(calm.grace(), ms(20));
        assert!(shaky.grace() > ms(40), "{:?}", shaky.grace());
        assert_eq!(shaky.min(), Some(ms(20)));
    }
}
