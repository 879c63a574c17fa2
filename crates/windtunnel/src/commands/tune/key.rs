use crate::edge::Problem;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use wt_load::SharedKey;
use wt_units::{Scheme, Url};

/// Where a key may be that belongs into no argument.
const VARIABLE: &str = "WINDTUNNEL_KEY";

/// The key for a server of ours: from a file, from the environment, or from whoever sits at the terminal. One in the address
/// counts too, but everybody on this host can read it there, which is said.
///
/// # Errors
/// A [`Problem`] when what should be a key is none, or its file can't be read.
pub(crate) fn find(target: Option<&str>, file: Option<&Path>) -> Result<Option<SharedKey>, Problem> {
    let server = target.and_then(|target| target.parse::<Url>().ok()).filter(|url| url.scheme == Scheme::Wt);
    if let Some(url) = server.as_ref().filter(|url| url.login.is_some()) {
        let _ = writeln!(
            std::io::stderr().lock(),
            "windtunnel: every user of this host can read the key among this command's arguments: write {url} --key-file FILE"
        );
    }
    if let Some(path) = file {
        return wt_setup::serve::read_key(path).map(Some);
    }
    if let Some(text) = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty()) {
        let key = text.parse().map_err(|error| Problem::usage(format!("{VARIABLE}: {error}")))?;
        return Ok(Some(key));
    }
    let Some(url) = server.filter(|url| url.login.is_none() && std::io::stdin().is_terminal()) else { return Ok(None) };
    let text = rpassword::prompt_password(format!("Key of {url}: "));
    let text = text.map_err(|error| Problem::environment(format!("can't ask for the key: {error}")))?;
    text.parse().map(Some).map_err(|error| Problem::usage(format!("{error}")))
}
