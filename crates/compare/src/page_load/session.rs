use super::answer::PageAnswer;
use super::compare::WindowPair;
use super::devtools::Browser;
use super::load::{PageLoad, load};
use super::request::PageRequest;
use crate::rounds::Orders;
use serde_json::json;
use std::ffi::OsString;
use std::time::Duration;
use wt_problem::Problem;
use wt_setup::draw_order_seed;

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
    let mut version = String::new();
    let mut once = || {
        // A new browser each time: caches, connections and names are cold.
        let mut browser = Browser::start(&program, &options)?;
        let about = browser.ask(None, "Browser.getVersion", &json!({}))?;
        about["product"].as_str().unwrap_or_default().clone_into(&mut version);
        load(&mut browser, &request.url, request.deadline.unwrap_or(DEADLINE))
    };
    let Some(pair) = request.compare else {
        let loads = (0..request.runs).map(|_| once()).collect::<Result<_, _>>()?;
        return Ok(PageAnswer::new(&request.url, version, loads));
    };
    let arms = in_rounds(pair, request.runs, &mut once);
    pair.unset();
    Ok(PageAnswer::compared(&request.url, version, pair, arms?))
}

/// A load with each window in every round, in random order.
fn in_rounds(
    pair: WindowPair,
    rounds: u32,
    once: &mut dyn FnMut() -> Result<PageLoad, Problem>,
) -> Result<[Vec<PageLoad>; 2], Problem> {
    let mut orders = Orders::new(draw_order_seed()?, 2);
    let mut arms = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let done = orders.round(|arm| {
            pair.set(arm)?;
            once().map(Some)
        })?;
        for (arm, load) in done.into_iter().flatten() {
            arms[arm].push(load);
        }
    }
    Ok(arms)
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
