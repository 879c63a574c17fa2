use super::opt_out::OptOut;
use serde::{Deserialize, Serialize};
use wt_problem::Problem;

/// A URL to ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UrlRequest {
    /// `http://HOST[:PORT][/PATH]`, the same with `https`, or a host alone. Large objects give exact answers.
    pub url: String,
    /// Whose it is; guessed from the host's name if it isn't said.
    #[serde(default)]
    pub provider: Option<String>,
    /// The line of the list that it stands on, from 1: one of a list that is no URL is told, and the others go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// The URLs of a list, one a line, each optionally followed by its provider's name.
///
/// Lines that begin with `#`, and what follows a `#` behind a blank, are comments.
#[must_use]
pub fn urls_of(list: &str) -> Vec<UrlRequest> {
    let split = |(number, line): (u32, &str)| {
        let comment = line.find(" #").or_else(|| line.find("\t#")).unwrap_or(line.len());
        let line = line[..comment].trim();
        let (url, provider) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        UrlRequest {
            url: url.to_owned(),
            provider: Some(provider.trim().to_owned()).filter(|provider| !provider.is_empty()),
            line: Some(number),
        }
    };
    // Some editors begin a file with the mark of its bytes' order, which isn't of the first line.
    let list = list.trim_start_matches('\u{feff}');
    (1..).zip(list.lines()).map(split).filter(|target| !target.url.is_empty() && !target.url.starts_with('#')).collect()
}

/// The names, addresses and networks of an opt-out list, written in the same way.
///
/// # Errors
/// A usage problem that names the line which is none of them.
pub fn opt_out_of(list: &str) -> Result<Vec<String>, Problem> {
    let checked = |entry: UrlRequest| {
        OptOut::read(std::slice::from_ref(&entry.url)).map_err(|problem| {
            let what = format!("line {}: {}", entry.line.unwrap_or_default(), problem.what);
            Problem { what, ..problem }
        })?;
        Ok(entry.url)
    };
    urls_of(list).into_iter().map(checked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opt_out_list_holds_its_first_line_and_nothing_that_would_never_match() {
        assert_eq!(opt_out_of("\u{feff}192.0.2.7\r\nexample.org # us\n").unwrap(), ["192.0.2.7", "example.org"]);
        let problem = opt_out_of("# ours\n192.0.2.*\n").unwrap_err();
        assert!(problem.what.starts_with("line 2: \"192.0.2.*\""), "{problem}");
    }
}
