use super::load::{LoadedResource, PageLoad};
use wt_report::{Axis, Chart, Series};

/// A row for each request: from when it was asked for to its last byte, with a mark at the first one.
pub(super) fn waterfall(url: &str, load: &PageLoad) -> Chart {
    let row = |(index, one): (usize, &LoadedResource)| {
        let end = one.end_ms.or(one.first_byte_ms).unwrap_or(one.start_ms);
        (index as f64, one.start_ms, one.first_byte_ms.unwrap_or(end), end)
    };
    let rows: Vec<_> = load.resources.iter().enumerate().map(row).collect();
    Chart {
        title: format!("Requests of {url}"),
        subtitle: format!(
            "marks: first byte; {} requests, {:.1} kB; load after {:.0} ms",
            load.requests,
            load.bytes / 1e3,
            load.load_ms
        ),
        y: Axis::linear("after the first request", "ms"),
        categories: load.resources.iter().map(|one| name(&one.url).to_owned()).collect(),
        series: vec![Series::intervals("", &rows)],
        ..Chart::default()
    }
}

/// What stands behind the last stroke of a URL.
pub(super) fn name(url: &str) -> &str {
    let plain = url.split(['?', '#']).next().unwrap_or(url);
    plain.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(url)
}
