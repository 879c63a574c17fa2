use serde::Serialize;

/// The four windows, in the order of their knobs: whose, which, and towards whom.
pub(super) const WINDOWS: [(&str, &str); 4] = [
    ("backend", "initcwnd of the backend towards the edge"),
    ("edge-receive", "initrwnd of the edge towards the backend"),
    ("edge-send", "initcwnd of the edge towards the client"),
    ("client", "initrwnd of the client towards the edge"),
];

/// The two windows of each hop: (initcwnd of who sends, initrwnd of who receives), as numbers of knobs.
pub(super) const HOPS: [(&str, usize, usize); 2] = [("backend to edge", 0, 1), ("edge to client", 2, 3)];

/// What is asked of the edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeRequest {
    /// An object that the edge has.
    Hit,
    /// One that it must fetch.
    Miss,
}

impl EdgeRequest {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Hit, Self::Miss];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
        }
    }

    /// What it is, above a table.
    pub fn title(self) -> &'static str {
        match self {
            Self::Hit => "Hits: the edge has the object",
            Self::Miss => "Misses: the edge fetches the object first",
        }
    }
}
