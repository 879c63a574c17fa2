//! What each stack can do, as a table: features in rows, stacks in columns.

use super::result::Row;
use serde_json::Value;

/// Each feature as JSON has it, and in words.
const FEATURES: [(&str, &str); 8] = [
    ("window_scaling", "window scaling"),
    ("sack", "SACK"),
    ("timestamps", "timestamps"),
    ("pmtu_discovery", "path MTU discovery"),
    ("zero_window_probe", "zero-window probe"),
    ("rst_handling", "resets obeyed, blind ones ignored"),
    ("out_of_order_reassembly", "out-of-order reassembly"),
    ("simultaneous_close", "simultaneous close"),
];

/// The table with its head.
pub(super) fn table(rows: &[Row]) -> Vec<Vec<String>> {
    let told: Vec<Value> = rows.iter().map(Row::conformance).collect();
    let mut head = vec![String::new()];
    head.extend(rows.iter().map(Row::title));
    let row = |(name, words): &(&str, &str)| {
        let answers = told.iter().map(|one| one[*name].as_str().unwrap_or("unknown").to_owned());
        std::iter::once((*words).to_owned()).chain(answers).collect()
    };
    std::iter::once(head).chain(FEATURES.iter().map(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_that_json_has_is_in_the_table() {
        let row = Row::new("smoltcp".parse().unwrap());
        let Value::Object(told) = row.conformance() else { panic!("no object") };
        let mut features: Vec<&str> = told.keys().map(String::as_str).filter(|name| *name != "mss").collect();
        let mut known: Vec<&str> = FEATURES.iter().map(|(name, _)| *name).collect();
        features.sort_unstable();
        known.sort_unstable();
        assert_eq!(features, known);
        let table = table(&[row]);
        assert_eq!((table.len(), table[0].clone()), (9, vec![String::new(), "smoltcp".to_owned()]));
        assert!(table[1..].iter().all(|row| row.len() == 2));
    }
}
