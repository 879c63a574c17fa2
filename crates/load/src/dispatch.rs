use crate::error::FetchError;
use crate::ftp;
use crate::intact::Reference;
use crate::iperf3;
use crate::job::{Fetch, FetchOutcome};
use crate::page::{HttpPage, PageMemory, load_page, load_page_http2};
use crate::proto::SenderOptions;
use crate::serve;
use crate::transfer::EndReport;
use std::time::Duration;
use wt_trial::{Cancel, Direction, Page, Workload};
use wt_units::{Scheme, Settings};

/// Fetches a file, or its beginning: the clock runs from the request to the last byte that was wanted.
///
/// # Errors
/// [`FetchError`]; a transfer that was cut short is a report, not an error.
pub fn fetch(job: &Fetch<'_>, reference: &mut Reference, cancel: &Cancel) -> Result<FetchOutcome, FetchError> {
    match job.url.scheme {
        Scheme::Http | Scheme::Https => crate::fetch::fetch(job, reference, cancel),
        Scheme::Ftp | Scheme::Ftps => ftp::fetch(job, reference, cancel),
        Scheme::Iperf3 => iperf3::test(job, Direction::Down, cancel),
        Scheme::Wt => serve::test(job, Direction::Down, cancel),
    }
}

/// Brings so many bytes of the pattern to a server that takes `PUT` or `STOR`: the clock runs from the first byte until the
/// server's kernel has acknowledged the last.
///
/// # Errors
/// [`FetchError`]; a transfer that was cut short is a report, not an error.
pub fn bring(job: &Fetch<'_>, cancel: &Cancel) -> Result<FetchOutcome, FetchError> {
    match job.url.scheme {
        Scheme::Http | Scheme::Https => crate::fetch::bring(job, cancel),
        Scheme::Ftp | Scheme::Ftps => ftp::bring(job, cancel),
        Scheme::Iperf3 => iperf3::test(job, Direction::Up, cancel),
        Scheme::Wt => serve::test(job, Direction::Up, cancel),
    }
}

/// Runs a workload that is more than a transfer.
///
/// # Errors
/// [`FetchError`]; what broke off later is a report.
pub fn work_at(
    job: &Fetch<'_>,
    workload: &Workload,
    memory: &PageMemory,
    cancel: &Cancel,
) -> Result<FetchOutcome, FetchError> {
    match (job.url.scheme, workload) {
        (Scheme::Wt, Workload::Page { page }) if page.close_each => {
            let why = "windtunnel serve keeps its connections: name an http:// or https:// server";
            Err(FetchError::Never(why.to_owned()))
        }
        (Scheme::Wt, Workload::Page { page }) if page.http2 => {
            Err(FetchError::Never("windtunnel serve speaks no HTTP/2: name an http:// or https:// server".to_owned()))
        }
        (Scheme::Wt, _) => serve::work(job, workload, cancel),
        (Scheme::Http | Scheme::Https, Workload::Page { page }) => page_at(job, page, memory, cancel),
        _ => {
            let why = "that needs windtunnel serve at the other end: wt://KEY@HOST";
            Err(FetchError::Never(format!("{} can't run {}: {why}", job.url, workload.name())))
        }
    }
}

/// A page of a server that isn't ours: parts of one file, or what the page names.
fn page_at(job: &Fetch<'_>, page: &Page, memory: &PageMemory, cancel: &Cancel) -> Result<FetchOutcome, FetchError> {
    // Each load is somebody's first.
    let tls = job.tls.afresh(page.http2);
    let job = &Fetch { tls: &tls, ..*job };
    let sender = SenderOptions::default();
    let http = HttpPage { fetch: job, memory: Some(memory), token: None, sender, close_each: page.close_each };
    let loaded = if page.http2 {
        load_page_http2(page, &http, cancel)?
    } else {
        load_page(page, &|number| http.open(number, cancel), cancel)?
    };
    let first = loaded.connections.first();
    let connect_time = first.map_or(Duration::ZERO, |end| end.connect_time);
    let granted = first.map_or_else(Settings::new, |end| end.granted.clone());
    let report = EndReport::of_page(loaded, job.deadline);
    Ok(FetchOutcome {
        report,
        connect_time,
        granted,
        length: None,
        surplus: false,
        notes: Vec::new(),
        far: None,
        other: None,
    })
}
