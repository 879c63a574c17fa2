use serde_json::Value;
use wt_prober::first_window::HostFinding;

/// The columns of the CSV table; where a redirect leads is in `why`.
const COLUMNS: [&str; 20] = [
    "url",
    "provider",
    "address",
    "verdict",
    "segments",
    "bytes",
    "mss",
    "limit",
    "why",
    "method",
    "syn_ack_mss",
    "sack",
    "timestamps",
    "window_scale",
    "window",
    "ecn",
    "fast_open",
    "probes",
    "packets",
    "seconds",
];

/// Findings as CSV with a header line; what isn't known is empty.
pub(super) struct Table(csv::Writer<Vec<u8>>);

impl Table {
    /// The header alone.
    pub(super) fn new() -> Self {
        let mut table = Self(csv::Writer::from_writer(Vec::new()));
        table.write(COLUMNS.iter().map(|name| (*name).to_owned()));
        table
    }

    /// Adds a line.
    pub(super) fn add(&mut self, finding: &HostFinding) {
        let all = serde_json::to_value(finding).unwrap_or_default();
        let text = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.write(COLUMNS.iter().map(|name| match *name {
            "syn_ack_mss" => text(&all["syn_ack"]["mss"]),
            "sack" | "timestamps" | "window_scale" | "window" | "ecn" | "fast_open" => text(&all["syn_ack"][*name]),
            name => text(&all[name]),
        }));
    }

    /// The whole table.
    pub(super) fn text(self) -> String {
        String::from_utf8(self.0.into_inner().unwrap_or_default()).unwrap_or_default()
    }

    fn write(&mut self, cells: impl Iterator<Item = String>) {
        // Into memory nothing fails, and all lines have as many cells.
        let _ = self.0.write_record(cells);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_probe::first_window::Verdict;

    #[test]
    fn a_line_of_csv_has_a_cell_for_every_column() {
        let mut table = Table::new();
        let finding = HostFinding {
            url: "http://x/\"a,b\"".into(),
            provider: "X, Inc.".into(),
            verdict: Verdict::Exact,
            segments: Some(10),
            ..HostFinding::default()
        };
        table.add(&finding);
        table.add(&HostFinding::default());
        let text = table.text();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(reader.headers().unwrap().len(), COLUMNS.len());
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!((&rows[0][0], &rows[0][1], &rows[0][4]), ("http://x/\"a,b\"", "X, Inc.", "10"));
        assert_eq!((&rows[1][3], &rows[1][4]), ("unknown", ""));
    }
}
