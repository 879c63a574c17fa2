use super::answer::PageAnswer;
use super::devtools::Browser;
use super::load::load;
use super::request::PageRequest;
use serde_json::json;
use std::ffi::OsString;
use std::time::Duration;
use wt_problem::Problem;

/// Programs that speak the protocol, the first that is there is taken.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// How long one load may take if nobody says it.
const DEADLINE: Duration = Duration::from_secs(60);

/// Loads a page in a real browser, each time in a new one.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub fn run(request: &PageRequest) -> Result<PageAnswer, Problem> {
    request.check()?;
    let program = program(request)?;
    let options: Vec<OsString> = if request.insecure { vec!["--ignore-certificate-errors".into()] } else { Vec::new() };
    let mut loads = Vec::new();
    let mut version = String::new();
    for _ in 0..request.runs {
        // A new browser each time: caches, connections and names are cold.
        let mut browser = Browser::start(&program, &options)?;
        let about = browser.ask(None, "Browser.getVersion", &json!({}))?;
        about["product"].as_str().unwrap_or_default().clone_into(&mut version);
        loads.push(load(&mut browser, &request.url, request.deadline.unwrap_or(DEADLINE))?);
    }
    Ok(PageAnswer::new(&request.url, version, loads))
}

fn program(request: &PageRequest) -> Result<OsString, Problem> {
    if let Some(program) = &request.browser {
        return Ok(program.clone().into_os_string());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |name: &&str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    PROGRAMS.iter().find(|name| there(name)).map(OsString::from).ok_or_else(|| {
        Problem::environment("there is no Chromium")
            .hint("sudo apt-get install chromium, or name one: --browser PROGRAM")
    })
}
