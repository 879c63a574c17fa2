//! Hosts asked by connections of our own, over raw sockets.

use super::connections::Connections;
use super::finding::HostFinding;
use super::net::Net;
use super::sessions::Sessions;
use std::os::fd::BorrowedFd;
use std::time::Duration;
use wt_probe::Time;
use wt_probe::first_window::{Goal, Survey, WaitingPlace};
use wt_problem::Problem;

/// Packets that have waited so long for us mean that this host is busy: then nobody else is begun for as long. It is more
/// than two threads on one core make each other wait, and far less than any timer of a server's.
const LAG: Duration = Duration::from_millis(30);
/// After packets have found no room on this host, nobody is begun for so long.
const FULL: Duration = Duration::from_millis(100);
/// From so many hosts on packets are waited for together.
const MANY: usize = 64;
/// So many packets are read before others may leave.
const BATCH: usize = 256;

/// Connections of our own.
pub(super) struct RawConnections<'a> {
    net: Net,
    survey: Survey<&'a Sessions>,
    /// Until when what is still under way must find our ports in use.
    quiet_at: Time,
    stopped: bool,
}

impl<'a> RawConnections<'a> {
    /// Nobody yet.
    pub(super) fn new(net: Net, survey: Survey<&'a Sessions>) -> Self {
        Self { net, survey, quiet_at: Time::ZERO, stopped: false }
    }

    fn take(&mut self, found: &mut Vec<(usize, HostFinding)>) {
        while let Some(send) = self.survey.poll() {
            self.net.send(&send);
        }
        for (number, one) in self.survey.take_found() {
            self.quiet_at = self.quiet_at.max(one.quiet_at);
            found.push((number, HostFinding::of(&one)));
        }
    }
}

impl Connections for RawConnections<'_> {
    fn add(&mut self, number: usize, goal: Goal) {
        self.survey.add(number, goal);
    }

    fn step(&mut self, now: Time, found: &mut Vec<(usize, HostFinding)>) -> Result<(), Problem> {
        let survey = &mut self.survey;
        let (mut lag, mut last) = (Duration::ZERO, Time::ZERO);
        let drained = self.net.hear(BATCH, |(at, from, port, to, segment)| {
            let waited = now.saturating_sub(at);
            (lag, last) = (lag.max(waited), at);
            survey.waited(now, WaitingPlace::Here, waited);
            survey.handle(at, from, port, to, &segment);
        });
        if lag >= LAG {
            survey.hold(now + lag);
        }
        // A ring that was full gives more than is read at once.
        if !drained && self.net.take_drops() > 0 {
            survey.overflown(now);
            survey.hold(now + FULL);
        }
        // Timers don't overtake packets that wait.
        survey.wake(if drained { now } else { last });
        self.take(found);
        Ok(())
    }

    fn wakeup(&self, _: Time) -> Option<Time> {
        if self.has_found() { Some(self.quiet_at) } else { self.survey.wakeup() }
    }

    fn has_found(&self) -> bool {
        self.stopped || self.survey.is_done()
    }

    fn settle(&mut self) {
        self.net.deafen();
    }

    fn is_done(&self, now: Time) -> bool {
        self.has_found() && now >= self.quiet_at
    }

    fn stop(&mut self, now: Time, found: &mut Vec<(usize, HostFinding)>) {
        self.survey.stop(now);
        self.stopped = true;
        self.take(found);
    }

    fn is_crowded(&self) -> bool {
        self.survey.running() >= MANY
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.net.descriptor()
    }
}
