use super::windows::EdgeRequest;
use serde::Serialize;
use std::collections::BTreeMap;
use wt_units::Bytes;

/// What comes out of the question which window of a CDN matters.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum CdnAnswer {
    /// What was measured.
    Measured(CdnMeasured),
    /// What the model computes.
    Modelled(CdnModelled),
}

/// What was measured.
#[derive(Debug, Serialize)]
pub struct CdnMeasured {
    /// 1.
    pub schema_version: u32,
    /// The path, as it was named.
    pub path: String,
    /// What caches at the edge.
    pub proxy: &'static str,
    /// What the order of the combinations was drawn from; `--order-seed` repeats it.
    pub order_seed: u64,
    /// The object's size, bytes.
    pub object_bytes: u64,
    /// The small level of each window, segments.
    pub low: u32,
    /// The large level of each window, segments.
    pub high: u32,
    /// The fewest rounds that can show anything of a window.
    pub fewest_rounds: u32,
    /// RTTs of the hops.
    pub rtt_ms: HopRtts,
    /// What came of each kind of requests, by its name.
    pub requests: BTreeMap<EdgeRequest, RequestMeasured>,
}

/// RTTs of the hops.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HopRtts {
    /// Between the client and the edge, ms.
    pub client_edge: f64,
    /// Between the edge and the backend, ms.
    pub edge_backend: f64,
}

/// What came of one kind of requests.
#[derive(Debug, Serialize)]
pub struct RequestMeasured {
    /// Complete rounds.
    pub rounds: usize,
    /// The geometric mean of all requests.
    pub seconds: Option<f64>,
    /// The windows whose large level is shown to be faster, and by enough to matter; the strongest first.
    pub matters: Vec<&'static str>,
    /// Each window with what is claimed of it.
    pub windows: Vec<WindowMeasured>,
    /// Each hop's two windows with the seconds.
    pub combinations: Vec<HopSeconds>,
}

/// What is claimed of one window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowMeasured {
    /// Its name.
    pub window: &'static str,
    /// Whose, which, and towards whom.
    pub what: &'static str,
    /// By how much the large level is faster.
    pub ratio: Option<f64>,
    /// The lower bound of that.
    pub lower: Option<f64>,
    /// The upper bound.
    pub upper: Option<f64>,
    /// The evidence that it is faster, to one.
    pub evidence: f64,
    /// The evidence that a claim needs, to one.
    pub needed: f64,
    /// Whether it is shown to be faster, and by enough to matter.
    pub matters: bool,
    /// Whether it is shown to be slower.
    pub slower: bool,
    /// Whether it is shown to be faster by any amount.
    #[serde(skip)]
    pub faster: bool,
}

/// What the model computes.
#[derive(Debug, Serialize)]
pub struct CdnModelled {
    /// 1.
    pub schema_version: u32,
    /// `sim`.
    pub tunnel: &'static str,
    /// The path, as it was named.
    pub path: String,
    /// The object's size, bytes.
    pub object_bytes: u64,
    /// The small level of each window, segments.
    pub low: u32,
    /// The large level of each window, segments.
    pub high: u32,
    /// The path's RTT, ms.
    pub rtt_ms: f64,
    /// What came of each kind of requests, by its name.
    pub requests: BTreeMap<EdgeRequest, RequestModelled>,
}

/// What the model computes of one kind of requests.
#[derive(Debug, Serialize)]
pub struct RequestModelled {
    /// The geometric mean of all requests.
    pub seconds: Option<f64>,
    /// Each window.
    pub windows: Vec<WindowModelled>,
    /// Each hop's two windows with the seconds.
    pub combinations: Vec<HopSeconds>,
}

/// What the model computes of one window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowModelled {
    /// Its name.
    pub window: &'static str,
    /// Whose, which, and towards whom.
    pub what: &'static str,
    /// By how much the large level is faster: the mean over both levels of the others.
    pub ratio: Option<f64>,
}

/// How long requests took with one combination of a hop's windows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HopSeconds {
    /// The hop.
    pub hop: &'static str,
    /// The sender's initial window, segments.
    pub initcwnd: u32,
    /// The receiver's, segments.
    pub initrwnd: u32,
    /// The geometric mean over the combinations of the other hop's windows, each of which counts alike; `None` while one of them was
    /// never drawn.
    pub seconds: Option<f64>,
}

impl CdnAnswer {
    /// Whether no window is shown to matter: the answer is "no". A model shows nothing.
    #[must_use]
    pub fn is_no(&self) -> bool {
        match self {
            Self::Measured(measured) => measured.is_no(),
            Self::Modelled(_) => false,
        }
    }
}

impl CdnMeasured {
    /// The object's size.
    pub fn object(&self) -> Bytes {
        Bytes(self.object_bytes)
    }

    /// Whether no window is shown to matter.
    fn is_no(&self) -> bool {
        self.requests.values().all(|request| request.matters.is_empty())
    }
}

impl CdnModelled {
    /// The object's size.
    pub fn object(&self) -> Bytes {
        Bytes(self.object_bytes)
    }
}
