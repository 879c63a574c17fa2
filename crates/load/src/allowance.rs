use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that may still be moved by several connections together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowance(Option<Arc<AtomicU64>>);

impl Allowance {
    /// As much as anybody wants.
    pub(crate) fn endless() -> Self {
        Self(None)
    }

    /// So many bytes, for all who hold a clone of it.
    pub(crate) fn of(bytes: u64) -> Self {
        if bytes == u64::MAX { Self::endless() } else { Self(Some(Arc::new(AtomicU64::new(bytes)))) }
    }

    /// How many are left now.
    pub(crate) fn left(&self) -> u64 {
        self.0.as_ref().map_or(u64::MAX, |left| left.load(Ordering::Relaxed))
    }

    /// So many were moved; false if that was all, or more.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let Some(left) = &self.0 else { return true };
        let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(bytes)));
        before.is_ok_and(|before| before > bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_share_an_allowance_have_no_more_than_it_together() {
        let (one, other) = (Allowance::of(100), Allowance::endless());
        let two = one.clone();
        assert!(one.take(60) && two.take(39) && two.left() == 1);
        assert!(!two.take(1) && !one.take(5) && one.left() == 0);
        assert!(other.take(u64::MAX) && other.left() == u64::MAX);
    }
}
