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
