//! Parsers of files that browsers write, as functions of bytes: for fuzzing (`fuzz/`), and for a test with random bytes.

/// A HAR file.
pub fn har(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(page) = crate::har::parse("page".to_owned(), text) {
        assert!((1..=wt_trial::MOST_OBJECTS).contains(&page.objects.len()));
        assert!(page.objects.iter().all(|object| object.size.get() > 0));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn no_har_makes_us_panic(
            status in any::<i64>(), body in any::<i64>(), size in any::<i64>(), times in 0usize..20, cut in 0usize..3000, at in 0usize..3000, value: u8
        ) {
            let entry = format!(r#"{{"startedDateTime":"2026-01-01","response":{{"status":{status},"bodySize":{body},"content":{{"size":{size}}}}}}}"#);
            let other = r#"{"response":{"status":200,"content":{"size":7}}}"#;
            let all = std::iter::once(entry.as_str()).chain(std::iter::repeat_n(other, times)).collect::<Vec<_>>().join(",");
            let mut bytes = format!(r#"{{"log":{{"entries":[{all}]}}}}"#).into_bytes();
            super::har(&bytes);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
            bytes.truncate(cut);
            super::har(&bytes);
        }
    }
}
