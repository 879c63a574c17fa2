use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How what a server says begins when it ends a transfer since the client has had enough, and why the peer left then.
const ENOUGH: &str = "the quota of ";

/// Bytes that may still be moved by several connections together, and until when.
#[derive(Debug, Clone)]
pub(crate) struct Allowance {
    /// Bytes that are left.
    bytes: Option<Arc<AtomicU64>>,
    /// When the time is used up, ns of the monotonic clock: it moves as others of the same client begin and end.
    until_ns: Option<Arc<AtomicU64>>,
}

impl Default for Allowance {
    fn default() -> Self {
        Self::endless()
    }
}

impl Allowance {
    /// As much as anybody wants, for as long.
    pub(crate) fn endless() -> Self {
        Self { bytes: None, until_ns: None }
    }

    /// So many bytes, for all who hold a clone of it, and time without end until [`Allowance::end_at`] says otherwise.
    pub(crate) fn of(bytes: u64, has_end: bool) -> Self {
        let shared = |number| Some(Arc::new(AtomicU64::new(number)));
        Self {
            bytes: if bytes == u64::MAX { None } else { shared(bytes) },
            until_ns: if has_end { shared(u64::MAX) } else { None },
        }
    }

    /// As many bytes as of that, and the end of this one.
    pub(crate) fn renewed(&self, other: Self) -> Self {
        Self { until_ns: self.until_ns.clone(), ..other }
    }

    /// How many bytes are left now.
    pub(crate) fn left(&self) -> u64 {
        self.bytes.as_ref().map_or(u64::MAX, |left| left.load(Ordering::Relaxed))
    }

    /// So many were moved; false if that was all, or more.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let Some(left) = &self.bytes else { return true };
        let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(bytes)));
        before.is_ok_and(|before| before > bytes)
    }

    /// When the time is used up as things are now, ns of the monotonic clock.
    pub(crate) fn until_ns(&self) -> u64 {
        self.until_ns.as_ref().map_or(u64::MAX, |until| until.load(Ordering::Relaxed))
    }

    /// From now on that is so for all who hold a clone of it.
    pub(crate) fn end_at(&self, until_ns: u64) {
        if let Some(until) = &self.until_ns {
            until.store(until_ns, Ordering::Relaxed);
        }
    }

    /// Whether nothing may be moved any more.
    pub(crate) fn is_used_up(&self, now_ns: u64) -> bool {
        self.left() == 0 || now_ns >= self.until_ns()
    }
}

/// Why a transfer ended whose bytes are used up.
pub(crate) fn out_of_bytes() -> String {
    format!("{ENOUGH}bytes is used up")
}

/// Why a transfer ended whose time is used up.
pub(crate) fn out_of_time() -> String {
    format!("{ENOUGH}time is used up")
}

/// Whether the other end said that it left since this client has had enough.
pub(crate) fn is_enough(why: &str) -> bool {
    why.starts_with(ENOUGH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_share_an_allowance_have_no_more_than_it_together() {
        let (one, other) = (Allowance::of(100, true), Allowance::endless());
        let two = one.clone();
        assert!(one.take(60) && two.take(39) && two.left() == 1);
        assert!(!one.is_used_up(u64::MAX - 1) && one.is_used_up(u64::MAX));
        assert!(!two.take(1) && !one.take(5) && one.left() == 0 && two.is_used_up(0));
        assert!(other.take(u64::MAX) && other.left() == u64::MAX);
        one.end_at(7);
        other.end_at(7);
        assert_eq!((two.until_ns(), other.until_ns(), Allowance::of(100, false).until_ns()), (7, u64::MAX, u64::MAX));
    }

    #[test]
    fn a_renewed_allowance_has_all_of_its_bytes_and_those_who_run_hear_of_its_end() {
        let old = Allowance::of(5, true);
        let new = old.renewed(Allowance::of(100, true));
        new.end_at(9);
        assert_eq!((old.left(), new.left(), old.until_ns()), (5, 100, 9));
    }
}
