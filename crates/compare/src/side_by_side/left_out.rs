use std::collections::BTreeMap;
use wt_problem::{Fault, Problem};

/// Experiments of a fleet that can't be part of its report, and why.
#[derive(Debug, Default)]
pub(super) struct LeftOut(BTreeMap<String, String>);

impl LeftOut {
    /// Takes down why one can't be; what goes for all of them is an error.
    pub(super) fn unless_all<T>(&mut self, id: &str, read: Result<T, Problem>) -> Result<Option<T>, Problem> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(problem) if matches!(problem.fault, Fault::Usage | Fault::Internal) => {
                self.0.entry(id.to_owned()).or_insert(problem.what);
                Ok(None)
            }
            Err(problem) => Err(problem),
        }
    }

    pub(super) fn notes(&self) -> Vec<String> {
        self.0.iter().map(|(id, why)| format!("{id} is left out: {why}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_one_alone_leaves_it_out_and_what_is_wrong_with_the_server_is_an_error() {
        let mut left_out = LeftOut::default();
        assert_eq!(left_out.unless_all("a", Ok(7)).unwrap(), Some(7));
        assert_eq!(left_out.unless_all::<u8>("b", Err(Problem::internal("damaged"))).unwrap(), None);
        assert_eq!(left_out.unless_all::<u8>("c", Err(Problem::usage("one setting alone"))).unwrap(), None);
        assert!(left_out.unless_all::<u8>("d", Err(Problem::environment("the server is gone"))).is_err());
        assert_eq!(left_out.notes(), ["b is left out: damaged", "c is left out: one setting alone"]);
    }
}
