/// A number of things in words: `1 round`, `3 rounds`.
///
/// ```
/// assert_eq!(wt_units::counted(1, "round"), "1 round");
/// assert_eq!(wt_units::counted(3, "more round"), "3 more rounds");
/// ```
#[must_use]
pub fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// How far something changed, in percent, with a sign and so many decimals, and without one where that rounds to nothing: never `-0`.
///
/// ```
/// assert_eq!(wt_units::change(12.34, 1), "+12.3");
/// assert_eq!(wt_units::change(-0.3, 0), "0");
/// ```
#[must_use]
pub fn change(percent: f64, decimals: usize) -> String {
    let text = format!("{percent:+.decimals$}");
    let is_nothing = text.bytes().all(|byte| !(b'1'..=b'9').contains(&byte)) && percent.is_finite();
    if is_nothing { text.trim_start_matches(['+', '-']).to_owned() } else { text }
}
