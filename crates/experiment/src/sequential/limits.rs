/// Rounds before the model may drop a setting or call rivals resolved.
pub(super) const ROUNDS_TO_STEER: usize = 3;
/// Rounds before the experiment may be given up.
pub(super) const ROUNDS_TO_GIVE_UP: usize = 5;
