//! What a page looked like while it loaded: pictures that the browser sends.
//!
//! Pictures cost the browser time, so a load that is filmed isn't one that counts.

use serde_json::{Value, json};
use wt_report::Filmstrip;

/// So many pictures of a load are kept.
const MOST: usize = 400;
/// No picture of this size is longer, characters of base64; what is longer isn't kept.
const LONGEST: usize = 1 << 20;
/// So many moments are shown, the beginning and the end included.
pub(super) const MOMENTS: usize = 8;

/// A picture, and when it was taken, ms after the first request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frame {
    pub(super) at_ms: f64,
    /// JPEG as base64.
    pub(super) jpeg: String,
}

/// What asks for pictures.
pub(super) fn request() -> (&'static str, Value) {
    (
        "Page.startScreencast",
        json!({ "format": "jpeg", "quality": 50, "maxWidth": 240, "maxHeight": 240, "everyNthFrame": 1 }),
    )
}

/// The pictures of a load as they come.
#[derive(Debug, Default)]
pub(super) struct Film {
    /// When the first request was sent, by the clock on the wall, s.
    begin: Option<f64>,
    frames: Vec<Frame>,
}

impl Film {
    /// Takes an event; the number of a picture that wants to be acknowledged.
    pub(super) fn take(&mut self, message: &Value) -> Option<u64> {
        let params = &message["params"];
        match message["method"].as_str()? {
            "Network.requestWillBeSent" => self.begin = self.begin.or(params["wallTime"].as_f64()),
            "Page.screencastFrame" => {
                let data = params["data"].as_str().unwrap_or_default();
                let at = params["metadata"]["timestamp"].as_f64().zip(self.begin).map(|(at, begin)| (at - begin) * 1e3);
                let whole = (1..=LONGEST).contains(&data.len()) && data.bytes().all(is_base64);
                if let Some(at_ms) = at.filter(|at| at.is_finite() && *at >= 0.0 && whole && self.frames.len() < MOST) {
                    self.frames.push(Frame { at_ms, jpeg: data.to_owned() });
                }
                return params["sessionId"].as_u64();
            }
            _ => {}
        }
        None
    }

    /// Whether there is no picture yet.
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Its pictures in their order.
    pub(super) fn frames(mut self) -> Vec<Frame> {
        self.frames.sort_by(|a, b| a.at_ms.total_cmp(&b.at_ms));
        self.frames
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Loads beside each other at the same moments, from the first request to the end of the longest; `None` without a picture.
pub(super) fn strips(films: &[(String, f64, &[Frame])]) -> Option<Filmstrip> {
    let last = |(_, load_ms, frames): &(String, f64, &[Frame])| {
        frames.last().map_or(*load_ms, |frame| frame.at_ms.max(*load_ms))
    };
    let end = films.iter().map(last).fold(0.0, f64::max);
    let moments_ms: Vec<f64> = (0..MOMENTS).map(|place| end * place as f64 / (MOMENTS - 1) as f64).collect();
    let seen = |frames: &[Frame], at: f64| {
        frames.iter().rev().find(|frame| frame.at_ms <= at + 1e-6).map(|frame| frame.jpeg.clone())
    };
    let row = |(label, _, frames): &(String, f64, &[Frame])| {
        (label.clone(), moments_ms.iter().map(|at| seen(frames, *at)).collect())
    };
    let rows: Vec<(String, Vec<Option<String>>)> = films.iter().map(row).collect();
    let any = rows.iter().any(|(_, pictures)| pictures.iter().any(Option::is_some));
    any.then_some(Filmstrip { moments_ms, rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(at_ms: f64, jpeg: &str) -> Frame {
        Frame { at_ms, jpeg: jpeg.to_owned() }
    }

    #[test]
    fn pictures_are_placed_after_the_first_request_and_what_is_none_is_left_out() {
        let mut film = Film::default();
        let picture = |at: f64, data: &str, number: u64| {
            json!({"method": "Page.screencastFrame", "params":
                {"data": data, "metadata": {"timestamp": at}, "sessionId": number}})
        };
        assert_eq!(film.take(&picture(999.0, "before", 1)), Some(1), "acknowledged, but of another page");
        film.take(&json!({"method": "Network.requestWillBeSent", "params": {"wallTime": 1000.0}}));
        film.take(&json!({"method": "Network.requestWillBeSent", "params": {"wallTime": 1000.5}}));
        for (at, data) in [(1000.5, "b"), (1000.25, "a+/="), (1000.75, "<script>"), (999.5, "early"), (1001.0, "")] {
            assert_eq!(film.take(&picture(at, data, 7)), Some(7));
        }
        assert_eq!(film.frames(), [frame(250.0, "a+/="), frame(500.0, "b")]);
    }

    #[test]
    fn both_loads_are_shown_at_the_same_moments() {
        let (slow, fast) = ([frame(100.0, "a"), frame(650.0, "b")], [frame(100.0, "c"), frame(300.0, "d")]);
        let films = [("slow".to_owned(), 700.0, &slow[..]), ("fast".to_owned(), 350.0, &fast[..])];
        let strip = strips(&films).unwrap();
        assert_eq!(strip.moments_ms, [0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0]);
        let shown = |row: usize| -> String {
            strip.rows[row].1.iter().map(|picture| picture.as_deref().unwrap_or("-")).collect()
        };
        assert_eq!((shown(0), shown(1)), ("-aaaaaab".to_owned(), "-ccddddd".to_owned()));
        assert!(strips(&[("none".to_owned(), 5.0, &[])]).is_none());
    }
}
