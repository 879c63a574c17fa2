use super::ServeConfig;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a server has counted.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    pub(super) connections: AtomicU64,
    /// Closed without an answer: no key, garbage, too slow, too many.
    pub(super) strangers: AtomicU64,
    pub(super) tests: AtomicU64,
    pub(super) running: AtomicU64,
    pub(super) waiting: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) sent_bytes: AtomicU64,
    pub(super) received_bytes: AtomicU64,
}

impl Metrics {
    /// One more, or one less, of something.
    pub(super) fn add(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Ordering::AcqRel);
    }

    pub(super) fn running(&self) -> u64 {
        self.running.load(Ordering::Acquire)
    }

    /// Prometheus' text format.
    ///
    /// # Source
    /// prometheus.io/docs/instrumenting/exposition_formats, text-based format 0.0.4.
    pub(super) fn to_text(&self, config: &ServeConfig) -> String {
        let mut text = String::new();
        let mut row = |name: &str, kind: &str, help: &str, value: u64| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        };
        let read = |counter: &AtomicU64| counter.load(Ordering::Acquire);
        row("windtunnel_connections_total", "counter", "Connections accepted.", read(&self.connections));
        row(
            "windtunnel_unauthenticated_total",
            "counter",
            "Connections closed without an answer: no key, garbage, too slow, or too many at once.",
            read(&self.strangers),
        );
        row("windtunnel_tests_total", "counter", "Tests begun.", read(&self.tests));
        row("windtunnel_tests_running", "gauge", "Tests under way.", read(&self.running));
        row("windtunnel_tests_waiting", "gauge", "Clients that wait for their turn.", read(&self.waiting));
        row("windtunnel_tests_max", "gauge", "Tests at once at most.", config.max_tests as u64);
        row("windtunnel_refused_total", "counter", "Tests refused: quota, bounds, a full queue.", read(&self.refused));
        row("windtunnel_sent_bytes_total", "counter", "Payload sent in tests.", read(&self.sent_bytes));
        row("windtunnel_received_bytes_total", "counter", "Payload received in tests.", read(&self.received_bytes));
        text
    }
}
