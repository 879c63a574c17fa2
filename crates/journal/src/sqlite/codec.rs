use super::Trouble;
use crate::{State, columns};
use serde::de::DeserializeOwned;
use wt_trial::{Phase, Status};

pub(super) use columns::{phase_name, signed, to_json, unsigned};

pub(super) fn phase(word: &str) -> Result<Phase, Trouble> {
    columns::phase(word).map_err(Trouble::Senseless)
}

pub(super) fn status(word: &str) -> Result<Status, Trouble> {
    columns::status(word).map_err(Trouble::Senseless)
}

pub(super) fn state(word: &str) -> Result<State, Trouble> {
    columns::state(word).map_err(Trouble::Senseless)
}

pub(super) fn from_json<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, Trouble> {
    columns::from_json(what, text).map_err(Trouble::Senseless)
}
