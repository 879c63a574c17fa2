//! A server that listens at an address and speaks our protocol, or should.

use std::net::SocketAddr;
use std::time::Duration;
use wt_load::work::{Leg, OpenedConnection, RemoteEnd};
use wt_load::{Connection, FetchError, Request, SenderOptions};
use wt_trial::{Amount, Direction};
use wt_units::Settings;

/// Where it is, and how long a connection to it may take.
pub(crate) struct TestConnector(pub(crate) SocketAddr, pub(crate) Duration);

impl RemoteEnd for TestConnector {
    fn open(&self, number: u32, leg: &Leg) -> Result<OpenedConnection, FetchError> {
        let (direction, amount) = match *leg {
            Leg::Transfer { direction, amount, .. } => (direction, amount),
            Leg::Talk { time } => (Direction::Down, Amount::Time(time)),
        };
        let token = 500 + u64::from(number);
        let request = Request { direction, amount, token, sender: SenderOptions::default(), window: None };
        Ok(Connection::open(&self.0, &Settings::new(), self.1)?.ask(&request, leg)?)
    }
}
