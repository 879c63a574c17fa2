use super::{LabTunnel, PORT, REPORT_WAIT, TrialRun, TrialViews, own_settings, token};
use crate::host::SERVER_V4;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;
use wt_load::page::{HttpPage, PageLoad, load_page, load_page_http2};
use wt_load::{EndReport, Fetch, FetchError, Finish, LoadError, SenderOptions, ServerConfig, ServerTls, Tls, Url};
use wt_sys::{SysError, SysResult};
use wt_trial::{Amount, Cancel, Direction, MOST_OBJECTS, Page, TrialSpec};
use wt_units::{Bytes, Settings};

/// How our own server serves pages, and what it shows to those who come through TLS.
pub(super) fn serving() -> SysResult<(ServerConfig, ServerTls)> {
    let odd = SysError::io("make the server's certificate");
    let tls = ServerTls::of(&SERVER_V4.to_string()).map_err(|error| odd(std::io::Error::other(error)))?;
    // A page may have a connection for each object.
    let (max_reports, own) = (2 * MOST_OBJECTS, Some(tls.clone()));
    Ok((ServerConfig { max_reports, tls: own, ..ServerConfig::default() }, tls))
}

impl LabTunnel {
    /// A page of our own server over cold connections: HTTP/1.1, plain or through TLS, or HTTP/2.
    pub(super) fn page(&self, spec: &TrialSpec, page: &Page, sender: SenderOptions, cancel: &Cancel) -> TrialRun {
        let peer = SocketAddr::new(SERVER_V4.into(), PORT);
        let own = own_settings(&spec.settings, Direction::Down);
        let (token, shown) = (token(spec), &self.tls);
        let loaded = self.lab.client.run(|| -> Result<PageLoad, FetchError> {
            let odd = |error: &dyn std::fmt::Display| FetchError::Protocol(error.to_string());
            let encrypted = page.tls || page.http2;
            let scheme = if encrypted { "https" } else { "http" };
            let url: Url = format!("{scheme}://{peer}/").parse().map_err(|error| odd(&error))?;
            let tls = if encrypted { shown.client() } else { Tls::nobody() };
            // Each load is somebody's first.
            let tls = tls.map_err(|error| odd(&error))?.afresh(page.http2);
            let fetch = Fetch {
                url: &url,
                peer,
                settings: &own,
                amount: Amount::Size(Bytes(1)),
                deadline: spec.deadline,
                tls: &tls,
            };
            let close_each = page.close_each;
            let http = HttpPage { fetch: &fetch, memory: None, token: Some(token), sender, close_each };
            if page.http2 {
                return load_page_http2(page, &http, cancel);
            }
            load_page(page, &|number| http.open(number, cancel), cancel)
        })?;
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(FetchError::Load(error)) => return Ok(Err(error)),
            Err(error) => return Ok(Err(LoadError::Broken(std::io::Error::other(error.to_string())))),
        };
        // Each connection that was opened has a report; a load that broke off may have lost some.
        let patience = if loaded.finish == Finish::Done { REPORT_WAIT } else { Duration::from_millis(200) };
        let opened: BTreeSet<u32> = loaded.objects.iter().map(|object| object.connection).collect();
        let reports: Vec<_> = opened
            .into_iter()
            .map(|number| self.server.take_report(token.wrapping_add(number.into()), patience))
            .collect();
        let connect_time = loaded.connections.first().map_or(Duration::ZERO, |end| end.connect_time);
        let socket = loaded.connections.first().map_or_else(Settings::new, |end| end.granted.clone());
        Ok(Ok(TrialViews {
            client: EndReport::of_page(loaded, spec.deadline),
            server: EndReport::joined(reports, true),
            connect_time,
            socket,
        }))
    }
}
