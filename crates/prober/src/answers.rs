use serde::{Serialize, Serializer};

/// What was found of each host: the JSON of one is that host's object, of several an object with a list of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers<T>(pub Vec<T>);

impl<T: Serialize> Serialize for Answers<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Several<'a, T> {
            schema_version: u32,
            targets: &'a [T],
        }
        match &self.0[..] {
            [one] => one.serialize(serializer),
            targets => Several { schema_version: 1, targets }.serialize(serializer),
        }
    }
}

/// A time as the JSON contracts have it, µs.
pub(crate) fn micros(time: std::time::Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}
