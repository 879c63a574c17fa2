/// Longer words aren't compared: no name is near to them, and the time grows with the square of the length.
const LONGEST: usize = 64;

/// The names that are near to what was written, best first; none if nothing is near.
///
/// # Source
/// Similarity is Jaro–Winkler's, or a common beginning or inclusion; 0.75 was chosen by trying the presets' names.
#[must_use]
pub fn nearest<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    if text.len() > LONGEST {
        return Vec::new();
    }
    let wanted = text.to_ascii_lowercase();
    let mut scored: Vec<(f64, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let candidate = name.to_ascii_lowercase();
            let mut score = strsim::jaro_winkler(&wanted, &candidate);
            if wanted.len() >= 2 && (candidate.contains(&wanted) || wanted.contains(&candidate)) {
                score = score.max(0.9);
            }
            (score >= 0.75).then_some((score, name))
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

/// ` (did you mean "adsl"?)`, or nothing: to be put behind an error.
#[must_use]
pub fn suggestion<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let near: Vec<String> = nearest(text, names).into_iter().map(|name| format!("\"{name}\"")).collect();
    if near.is_empty() { String::new() } else { format!(" (did you mean {}?)", near.join(" or ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_endless_words_arent_compared() {
        let names = ["adsl", "adsl-yahoo", "fibre-1g"];
        assert_eq!(suggestion("asdl", names), " (did you mean \"adsl\"?)".to_owned());
        assert_eq!(suggestion("lte", names), "");
        assert!(nearest(&"adsl".repeat(100_000), names).is_empty());
    }
}
