//! The page of a HAR file: what a browser has loaded, as sizes in their order.

use serde::Deserialize;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use wt_trial::{MOST_OBJECTS, Page, PageObject, USUAL_CONNECTIONS};
use wt_units::Bytes;

/// No HAR file is longer.
const LONGEST: u64 = 256 << 20;
/// open(2).
const O_NONBLOCK: i32 = 0o4000;
/// No object of a page is larger.
const LARGEST: u64 = 1 << 30;

#[derive(Deserialize)]
struct File {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "startedDateTime", default)]
    started: String,
    response: Response,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    status: i64,
    /// As it came over the network; -1 where the browser doesn't tell.
    #[serde(rename = "bodySize", default = "unknown")]
    body: i64,
    #[serde(default)]
    content: Content,
}

#[derive(Deserialize, Default)]
struct Content {
    #[serde(default)]
    size: i64,
}

fn unknown() -> i64 {
    -1
}

/// Reads the objects that came whole, in the order in which they were asked for.
///
/// # Errors
/// What is wrong with the file.
///
/// # Source
/// HTTP Archive 1.2, `log.entries[].response`: `bodySize`, `content.size`.
pub(crate) fn read(file: &Path) -> Result<Page, String> {
    // A pipe without a writer mustn't keep us, and a device has no end.
    let open = std::fs::OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(file);
    let open = open.map_err(|error| error.to_string())?;
    if !open.metadata().is_ok_and(|data| data.is_file()) {
        return Err("this is no regular file".to_owned());
    }
    let mut text = String::new();
    open.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > LONGEST {
        return Err("larger than 256 MiB".to_owned());
    }
    let name = file.file_stem().map_or_else(|| "page".to_owned(), |name| name.to_string_lossy().into_owned());
    parse(name, &text)
}

pub(crate) fn parse(name: String, text: &str) -> Result<Page, String> {
    // Browsers begin some of these files with a mark of their encoding.
    let file: File = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| format!("this is no HAR file: {error}"))?;
    let mut entries: Vec<Entry> =
        file.log.entries.into_iter().filter(|entry| (200..300).contains(&entry.response.status)).collect();
    // All times of one file are of one form; the sort is stable where they are missing.
    entries.sort_by(|a, b| a.started.cmp(&b.started));
    let size = |entry: &Entry| {
        let Response { body, content, .. } = &entry.response;
        u64::try_from(if *body > 0 { *body } else { content.size }).unwrap_or(0)
    };
    let sizes: Vec<u64> = entries.iter().map(size).filter(|size| *size > 0).collect();
    if sizes.is_empty() || sizes.len() > MOST_OBJECTS {
        return Err(format!("{} objects came whole; 1 to {MOST_OBJECTS} make a page", sizes.len()));
    }
    if sizes.iter().any(|size| *size > LARGEST) {
        return Err("an object is larger than 1 GiB".to_owned());
    }
    let objects = sizes.into_iter().map(|size| PageObject { path: None, size: Bytes(size) }).collect();
    Ok(Page { name, objects, connections: USUAL_CONNECTIONS, http2: false, close_each: false, tls: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_come_in_their_order_with_their_sizes_on_the_network() {
        let text = r#"{"log": {"version": "1.2", "entries": [
            {"startedDateTime": "2026-01-01T00:00:01Z", "response": {"status": 200, "bodySize": -1, "content": {"size": 300}}},
            {"startedDateTime": "2026-01-01T00:00:00Z", "response": {"status": 200, "bodySize": 100, "content": {"size": 900}}},
            {"startedDateTime": "2026-01-01T00:00:02Z", "response": {"status": 404, "bodySize": 7, "content": {"size": 7}}},
            {"startedDateTime": "2026-01-01T00:00:03Z", "response": {"status": 204, "bodySize": 0}}]}}"#;
        let page = parse("x".into(), text).unwrap();
        let sizes: Vec<u64> = page.objects.iter().map(|object| object.size.get()).collect();
        assert_eq!((sizes, page.connections), (vec![100, 300], 6));
        for bad in ["", "{}", r#"{"log": {"entries": []}}"#, r#"{"log": {"entries": [{"response": {"status": "x"}}]}}"#]
        {
            assert!(parse("x".into(), bad).is_err(), "{bad}");
        }
        assert!(read(Path::new("/nonexistent")).is_err());
    }
}
