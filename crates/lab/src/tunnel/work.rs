use super::{LabTunnel, PORT, REPORT_WAIT, TrialRun, TrialViews, own_settings, small, token};
use crate::host::SERVER_V4;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wt_load::work::{Leg, OpenedConnection, RemoteEnd, WorkOutcome, join, work};
use wt_load::{Connection, FetchError, LoadError, Request, SenderOptions};
use wt_trial::{Amount, Cancel, Direction, TrialSpec};
use wt_units::{Knob, Settings};

/// Our server in the lab, as seen from the client's namespace.
struct Server<'a> {
    spec: &'a TrialSpec,
    sender: SenderOptions,
    token: u64,
    /// What the client's kernel refused to set for what the client sends, and why.
    refused: Mutex<Vec<String>>,
}

impl RemoteEnd for Server<'_> {
    fn open(&self, number: u32, leg: &Leg) -> Result<OpenedConnection, FetchError> {
        let peer = SocketAddr::new(SERVER_V4.into(), PORT);
        let token = self.token.wrapping_add(number.into());
        let settings = &self.spec.settings;
        let (direction, amount, tried) = match *leg {
            Leg::Transfer { direction, amount, tried } => (direction, amount, tried),
            Leg::Talk { time } => (self.spec.workload.direction(), Amount::Time(time), true),
        };
        let own = if tried { own_settings(settings, direction) } else { Settings::new() };
        let window = small(settings, Knob::Rwin).filter(|_| tried && direction == Direction::Up);
        let sender = if tried { self.sender.clone() } else { SenderOptions::default() };
        let connection = Connection::open(&peer, &own, self.spec.deadline)?;
        // Only the server's own sending is set by the request.
        let sender = match direction {
            Direction::Down => sender,
            Direction::Up => {
                self.refused.lock().unwrap_or_else(PoisonError::into_inner).extend(connection.send_with(&sender));
                SenderOptions::default()
            }
        };
        let request = Request { direction, amount, token, sender, window };
        Ok(connection.ask(&request, leg)?)
    }
}

impl LabTunnel {
    /// Whatever is done over connections of our own protocol.
    pub(super) fn work(&self, spec: &TrialSpec, sender: SenderOptions, cancel: &Cancel) -> TrialRun {
        let far = Server { spec, sender, token: token(spec), refused: Mutex::default() };
        let worked = self.lab.client.run(|| work(&spec.workload, &far, spec.deadline, cancel))?;
        let mut worked = match worked {
            Ok(worked) => worked,
            Err(FetchError::Load(error)) => return Ok(Err(error)),
            Err(error) => return Ok(Err(LoadError::Broken(std::io::Error::other(error.to_string())))),
        };
        let wait =
            |number: usize| worked.report.patience(if number == 0 { REPORT_WAIT } else { Duration::from_secs(2) });
        let tokens = worked.tokens.iter().enumerate();
        let mut servers: Vec<_> = tokens.map(|(number, token)| self.server.take_report(*token, wait(number))).collect();
        join(&spec.workload, &mut worked, &servers);
        let WorkOutcome { mut report, connect_time, granted, .. } = worked;
        let mut server = if servers.is_empty() { None } else { servers.swap_remove(0) };
        let refused = far.refused.into_inner().unwrap_or_else(PoisonError::into_inner);
        let sender = if spec.workload.direction() == Direction::Up { Some(&mut report) } else { server.as_mut() };
        sender.into_iter().for_each(|sender| sender.refused.extend_from_slice(&refused));
        Ok(Ok(TrialViews { client: report, server, connect_time, socket: granted }))
    }
}
