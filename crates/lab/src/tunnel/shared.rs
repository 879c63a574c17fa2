//! Several downloads that share the path, each with a congestion control and a start of its own.

use super::{AppliedSettings, LabTunnel, NAME, PORT, REPORT_WAIT, broken, own_settings};
use crate::host::SERVER_V4;
use std::net::SocketAddr;
use std::time::Duration;
use wt_load::{Connection, Finish, LoadError, Request, SenderOptions, download};
use wt_sys::clock::monotonic_ns;
use wt_trial::{Amount, Cancel, Direction, TunnelError};
use wt_units::{Bytes, Knob, Level, Settings};

/// One of several downloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedFlow {
    /// The sender's congestion control, as the kernel calls it.
    pub control: String,
    /// When it begins to connect, counted from the beginning of all.
    pub start: Duration,
    /// Payload.
    pub size: Bytes,
}

/// What came of one of several downloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedFlowOutcome {
    /// When it asked, counted from the beginning of all.
    pub begun: Duration,
    /// From its request until its last byte had come; `None` if not all came.
    pub elapsed: Option<Duration>,
    /// How many bytes had arrived when, µs since its request.
    pub arrivals: Vec<(u64, u64)>,
}

impl LabTunnel {
    /// Runs these downloads over a path that was emptied and seeded anew. `held` are settings of both hosts.
    ///
    /// # Errors
    /// [`TunnelError`]: the lab is broken, a setting was refused, or a sender had another congestion control than asked.
    pub fn share(
        &mut self,
        held: &Settings,
        flows: &[SharedFlow],
        (seed, deadline): (u64, Duration),
        cancel: &Cancel,
    ) -> Result<Vec<SharedFlowOutcome>, TunnelError> {
        // Naming any congestion control lets connections begin without the pacing of the host's default.
        let held = held.clone().with(Knob::Cc, Level::Name("reno".to_owned()));
        let _applied = AppliedSettings::apply(&self.lab, &held, Direction::Down)?;
        self.lab.reset(seed).map_err(|error| broken(&error))?;
        let first_token = monotonic_ns().rotate_left(24) ^ seed;
        let begun_ns = monotonic_ns();
        let run = |number: usize, flow: &SharedFlow| {
            wait_until(begun_ns + flow.start.as_nanos() as u64);
            let sender = SenderOptions { congestion_control: Some(flow.control.clone()), ..SenderOptions::default() };
            let token = first_token.wrapping_add(number as u64);
            let amount = Amount::Size(flow.size);
            let request = Request { direction: Direction::Down, amount, token, sender, window: None };
            let peer = SocketAddr::new(SERVER_V4.into(), PORT);
            let connection = Connection::open(&peer, &own_settings(&Settings::new(), Direction::Down), deadline)?;
            let begun = Duration::from_nanos(monotonic_ns() - begun_ns);
            let report = download(connection, &request, deadline, cancel)?;
            Ok::<_, LoadError>((token, begun, report))
        };
        let ran: Vec<_> = std::thread::scope(|scope| {
            let client = &self.lab.client;
            let threads: Vec<_> =
                (0..).zip(flows).map(|(number, flow)| scope.spawn(move || client.run(|| run(number, flow)))).collect();
            threads.into_iter().map(|thread| thread.join().map_err(|_| broken(&"a download's thread died"))).collect()
        });
        let mut outcomes = Vec::with_capacity(flows.len());
        for (flow, ran) in flows.iter().zip(ran) {
            let ran = ran?.map_err(|error| broken(&error))?;
            let (token, begun, report) = ran.map_err(|error| broken(&error))?;
            let sender = self.server.take_report(token, report.patience(REPORT_WAIT));
            let used = sender.map(|sender| sender.congestion_control).unwrap_or_default();
            if used != flow.control {
                let level = Level::Name(flow.control.clone());
                let why = format!("the sender had \"{used}\"");
                return Err(TunnelError::CannotSet { tunnel: NAME, knob: Knob::Cc, level, why });
            }
            outcomes.push(SharedFlowOutcome {
                begun,
                elapsed: (report.finish == Finish::Done).then_some(report.elapsed),
                arrivals: report.samples.iter().map(|sample| (sample.t_us, sample.bytes)).collect(),
            });
        }
        Ok(outcomes)
    }
}

/// Waits for nothing but time, ns of the monotonic clock.
fn wait_until(due_ns: u64) {
    loop {
        let left = due_ns.saturating_sub(monotonic_ns());
        if left == 0 {
            return;
        }
        let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_nanos(left)));
    }
}
