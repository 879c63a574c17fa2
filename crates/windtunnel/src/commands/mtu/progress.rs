//! What a person sees while sizes are scanned: on stderr, and only if that is a terminal.

use crate::screen::Screen;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use wt_prober::mtu::MtuEvent;

/// A line that says how far a scan is; it is gone when this is dropped.
pub(super) struct Progress(ProgressBar);

impl Progress {
    pub(super) fn new() -> Self {
        Self(ProgressBar::hidden())
    }

    pub(super) fn event(&mut self, event: &MtuEvent) {
        match event {
            MtuEvent::Scanning { packets, per_second } if Screen::stderr().live => {
                let seconds = packets.div_ceil((*per_second).max(1));
                let bar = ProgressBar::with_draw_target(Some(u64::from(*packets)), ProgressDrawTarget::stderr());
                if let Ok(style) = ProgressStyle::with_template("scanning: {pos} of at most {len} packets, {msg}") {
                    bar.set_style(style);
                }
                bar.set_message(format!("{per_second} a second: up to {seconds} s"));
                self.0 = bar;
            }
            // Where losses are split by direction, more may leave than was said first.
            MtuEvent::Scanned { packets } => {
                let packets = u64::from(*packets);
                self.0.set_length(packets.max(self.0.length().unwrap_or(0)));
                self.0.set_position(packets);
            }
            MtuEvent::Scanning { .. } | MtuEvent::Searched { .. } => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
