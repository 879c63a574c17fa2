/// What ended the rounds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    ByItself,
    Cancelled,
    /// The change is put back soon unless somebody confirms it.
    OutOfTime,
}

/// Why fewer rounds were run than were asked for, if nothing was shown; empty where all were.
pub(super) fn ended_early(rounds: usize, asked: usize, why: Ending) -> String {
    match why {
        _ if rounds >= asked => String::new(),
        Ending::Cancelled => format!(" It was stopped after {rounds} of {asked} rounds."),
        Ending::OutOfTime => format!(
            " It ended after {rounds} of {asked} rounds, since the change is put back unless it is confirmed: confirm it and then \
             windtunnel settings prove, or apply it with a longer --confirm-within."
        ),
        Ending::ByItself => format!(
            " It ended after {rounds} of {asked} rounds: by estimate the rest would hardly have shown a difference (begin it anew if you \
             doubt that)."
        ),
    }
}

/// That so few rounds could show nothing, if that is so.
pub(super) fn too_few(asked: usize, fewest: usize) -> String {
    if asked >= fewest {
        return String::new();
    }
    format!(" Fewer than {fewest} rounds can't show any, however large it is: --rounds {fewest} or more.")
}
