use super::finding::HostFinding;
use std::os::fd::BorrowedFd;
use wt_probe::Time;
use wt_probe::first_window::Goal;
use wt_problem::Problem;

/// Where hosts are asked: by connections of our own, or by the kernel's.
pub(super) trait Connections {
    /// One more.
    fn add(&mut self, number: usize, goal: Goal);
    /// Does what is due, and tells what was found.
    fn step(&mut self, now: Time, found: &mut Vec<(usize, HostFinding)>) -> Result<(), Problem>;
    /// When something is due; `None` if never.
    fn wakeup(&self, now: Time) -> Option<Time>;
    /// Whether everything has been found that will be; packets may still be under way.
    fn has_found(&self) -> bool;
    /// Everything has been found: only our ports are still needed.
    fn settle(&mut self) {}
    /// Whether nothing is left to do.
    fn is_done(&self, now: Time) -> bool;
    /// Ends all.
    fn stop(&mut self, now: Time, found: &mut Vec<(usize, HostFinding)>);
    /// Whether so much comes that it is better read together.
    fn is_crowded(&self) -> bool {
        false
    }
    /// What to wait for, beside time.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
