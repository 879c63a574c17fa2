use super::load::{LoadedResource, PageLoad};
use wt_report::{Axis, Chart, Series};

/// What a row's line means where it is known when requests were sent.
pub(super) const THIN: &str = "thin: waits in the browser; ";

/// A request in its row: when it was asked for, when it was sent, its first byte and its last.
pub(super) fn row(place: usize, one: &LoadedResource) -> (f64, f64, f64, f64, f64) {
    let end = one.end_ms.or(one.first_byte_ms).unwrap_or(one.start_ms);
    let sent = one.sent_ms.unwrap_or(one.start_ms);
    (place as f64, one.start_ms, sent, one.first_byte_ms.unwrap_or(end), end)
}

/// [`THIN`] where it is known of one of the requests when it was sent.
pub(super) fn thin<'a>(requests: impl IntoIterator<Item = &'a LoadedResource>) -> &'static str {
    if requests.into_iter().any(|one| one.sent_ms.is_some()) { THIN } else { "" }
}

/// A row for each request: from when it was asked for to its last byte, thin until it was sent, with a mark at the first byte.
pub(super) fn waterfall(url: &str, load: &PageLoad) -> Chart {
    let rows: Vec<_> = load.resources.iter().enumerate().map(|(place, one)| row(place, one)).collect();
    Chart {
        title: format!("Requests of {url}"),
        subtitle: format!(
            "{}marks: first byte; {} requests, {:.1} kB; load after {:.0} ms",
            thin(&load.resources),
            load.requests,
            load.bytes / 1e3,
            load.load_ms
        ),
        y: Axis::linear("after the first request", "ms"),
        categories: load.resources.iter().map(|one| name(&one.url).to_owned()).collect(),
        series: vec![Series::waits("", &rows)],
        ..Chart::default()
    }
}

/// What stands behind the last stroke of a URL.
pub(super) fn name(url: &str) -> &str {
    let plain = url.split(['?', '#']).next().unwrap_or(url);
    plain.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(url)
}
