use super::{LabTunnel, PORT, REPORT_WAIT, Ran, RanOrNot, own_settings, token};
use crate::host::SERVER_V4;
use std::net::SocketAddr;
use std::time::Duration;
use wt_load::page::{HttpPage, PageLoad, load_page};
use wt_load::{EndReport, Fetch, FetchError, Finish, LoadError, SenderOptions, Tls, Url};
use wt_trial::{Amount, Cancel, Direction, Measures, Page, TrialSpec};
use wt_units::{Bytes, Settings};

impl LabTunnel {
    /// A page of our own server, over HTTP/1.1 and cold connections.
    pub(super) fn page(&self, spec: &TrialSpec, page: &Page, sender: SenderOptions, cancel: &Cancel) -> RanOrNot {
        let peer = SocketAddr::new(SERVER_V4.into(), PORT);
        let own = own_settings(&spec.settings, Direction::Down);
        let token = token(spec);
        let loaded = self.lab.client.run(|| -> Result<PageLoad, FetchError> {
            let odd = |error: &dyn std::fmt::Display| FetchError::Protocol(error.to_string());
            let url: Url = format!("http://{peer}/").parse().map_err(|error| odd(&error))?;
            let tls = Tls::nobody().map_err(|error| odd(&error))?;
            let fetch = Fetch {
                url: &url,
                peer,
                settings: &own,
                amount: Amount::Size(Bytes(1)),
                deadline: spec.deadline,
                tls: &tls,
            };
            let http = HttpPage { fetch: &fetch, memory: None, token: Some(token), sender };
            load_page(page, &|number| http.open(number, cancel), cancel)
        })?;
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(FetchError::Load(error)) => return Ok(Err(error)),
            Err(error) => return Ok(Err(LoadError::Broken(std::io::Error::other(error.to_string())))),
        };
        // Each connection that was opened has a report; a load that broke off may have lost some.
        let patience = if loaded.finish == Finish::Done { REPORT_WAIT } else { Duration::from_millis(200) };
        let opened = u64::from(page.connections).min(loaded.connections.len() as u64);
        let reports: Vec<EndReport> =
            (0..opened).filter_map(|number| self.server.take_report(token.wrapping_add(number), patience)).collect();
        let connect_time = loaded.connections.first().map_or(Duration::ZERO, |end| end.connect_time);
        let socket = loaded.connections.first().map_or_else(Settings::new, |end| end.granted.clone());
        Ok(Ok(Ran { client: seen(loaded, spec), server: joined(reports), connect_time, socket }))
    }
}

/// What the client saw. A page that isn't whole took all the time there was, however early it broke off.
fn seen(loaded: PageLoad, spec: &TrialSpec) -> EndReport {
    let PageLoad { finish, elapsed, bytes, objects, connections } = loaded;
    let info = connections.into_iter().map(|end| end.info).max_by_key(|info| info.bytes_received);
    let elapsed = if matches!(finish, Finish::Done | Finish::Cancelled) { elapsed } else { spec.deadline };
    EndReport {
        info: info.unwrap_or_default(),
        measures: Measures { objects, ..Measures::default() },
        ..EndReport::of_several(finish, bytes, elapsed)
    }
}

/// The server's connections as one: that with the most payload, with the sums of what can be added.
fn joined(reports: Vec<EndReport>) -> Option<EndReport> {
    let sum = |of: fn(&EndReport) -> u64| reports.iter().map(of).sum::<u64>();
    let total_retrans = sum(|report| report.info.total_retrans.into());
    let busy_time = sum(|report| report.info.busy_time);
    let rwnd_limited = sum(|report| report.info.rwnd_limited);
    let sndbuf_limited = sum(|report| report.info.sndbuf_limited);
    let data_segs_out = sum(|report| report.info.data_segs_out.into());
    let bytes = sum(|report| report.bytes);
    let most = reports.into_iter().max_by_key(|report| report.bytes)?;
    let info = wt_sys::tcp::TcpInfo {
        total_retrans: u32::try_from(total_retrans).unwrap_or(u32::MAX),
        data_segs_out: u32::try_from(data_segs_out).unwrap_or(u32::MAX),
        busy_time,
        rwnd_limited,
        sndbuf_limited,
        ..most.info
    };
    Some(EndReport { info, bytes, ..most })
}
