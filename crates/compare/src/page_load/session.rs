use super::answer::PageAnswer;
use super::compare::{ComparedLoads, WindowPair};
use super::devtools::Browser;
use super::film::{Frame, strips};
use super::journaled::{LoadBefore, LoadLog};
use super::load::{PageLoad, filmed, load};
use super::request::{DEADLINE, PageRequest};
use crate::rounds::Orders;
use serde_json::json;
use std::cell::RefCell;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use wt_problem::Problem;
use wt_report::Filmstrip;
use wt_setup::draw_order_seed;
use wt_sys::clock::monotonic_ns;
use wt_trial::Cancel;

/// Programs that speak the protocol, the first that is there is taken.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// So often at most a load of a comparison is repeated that isn't like the others.
const REPEATS: u32 = 2;

/// Loads a page in a real browser, each time in a new one.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub fn run(request: &PageRequest, cancel: &Cancel) -> Result<PageAnswer, Problem> {
    request.check()?;
    let options: Vec<OsString> = if request.insecure { vec!["--ignore-certificate-errors".into()] } else { Vec::new() };
    let version = RefCell::new(String::new());
    let deadline = request.deadline.unwrap_or(DEADLINE);
    let mut start = || {
        // A new browser each time: caches, connections and names are cold.
        let mut browser = Browser::start(&program(request)?, &options, cancel)?;
        let about = browser.ask(None, "Browser.getVersion", &json!({}))?;
        about["product"].as_str().unwrap_or_default().clone_into(&mut version.borrow_mut());
        Ok(browser)
    };
    let Some(pair) = request.compare else {
        let once = || load(&mut start()?, &request.url, deadline);
        let loads = (0..request.runs).map(|_| once()).collect::<Result<_, _>>()?;
        let film = request.film.then(|| filmed(&mut start()?, &request.url, deadline)).transpose()?;
        let mut answer = PageAnswer::new(&request.url, version.take(), loads);
        answer.film = film.and_then(|(load, frames)| strips(&[("page".to_owned(), load.load_ms, &frames)]));
        return Ok(answer);
    };
    let compared = compare(request, pair, deadline, &mut start, &version);
    pair.unset();
    let (id, arms, film) = compared?;
    let mut answer = PageAnswer::compared(&request.url, version.take(), pair, arms);
    (answer.id, answer.film) = (Some(id), film);
    Ok(answer)
}

/// A comparison's name in the journal, its loads, and what they looked like.
type ComparedPages = (String, [Vec<PageLoad>; 2], Option<Filmstrip>);

/// A load with each window in every round, in random order, after one that doesn't count.
fn compare(
    request: &PageRequest,
    pair: WindowPair,
    deadline: Duration,
    start: &mut dyn FnMut() -> Result<Browser, Problem>,
    version: &RefCell<String>,
) -> Result<ComparedPages, Problem> {
    let seed = draw_order_seed()?;
    pair.set(0)?;
    let began = monotonic_ns();
    let load_before = load(&mut start()?, &request.url, deadline)?;
    let took = Duration::from_nanos(monotonic_ns().saturating_sub(began));
    let usual = load_before.failed;
    let before = LoadBefore { load: load_before, took, browser: version.borrow().clone() };
    let mut log = LoadLog::open(request, pair, &before, deadline, seed)?;
    let mut orders = Orders::new(seed, 2);
    let mut arms = [Vec::new(), Vec::new()];
    for round in 1..=request.runs {
        let done = orders.round(|arm| {
            pair.set(arm)?;
            let once = || load(&mut start()?, &request.url, deadline);
            log.trial(round, arm, || alike(&pair.label(arm), usual, once)).map(Some)
        })?;
        for (arm, load) in done.into_iter().flatten() {
            arms[arm].push(load);
        }
    }
    let id = log.id().to_owned();
    if let Some(compared) = ComparedLoads::of(pair, [&arms[0], &arms[1]]) {
        log.end(&compared)?;
    }
    let mut film_of = |arm: usize| -> Result<(String, f64, Vec<Frame>), Problem> {
        pair.set(arm)?;
        let (load, frames) = filmed(&mut start()?, &request.url, deadline)?;
        Ok((pair.label(arm), load.load_ms, frames))
    };
    let films = if request.film { Some([film_of(0)?, film_of(1)?]) } else { None };
    let film =
        films.and_then(|[before, after]| strips(&[(before.0, before.1, &before.2), (after.0, after.1, &after.2)]));
    Ok((id, arms, film))
}

/// A load in which as many requests fail as in the one before the first round: one that lacks more or less of the page takes another time
/// for another page, so it doesn't count and is repeated.
///
/// # Errors
/// Those of loading; a remote [`Problem`] where it is so again and again.
fn alike(label: &str, usual: usize, mut once: impl FnMut() -> Result<PageLoad, Problem>) -> Result<PageLoad, Problem> {
    let mut loaded = once()?;
    for _ in 0..REPEATS {
        if loaded.failed == usual {
            return Ok(loaded);
        }
        loaded = once()?;
    }
    if loaded.failed == usual {
        return Ok(loaded);
    }
    let what = format!("{} of its requests fail with {label}, and {usual} before the first round", loaded.failed);
    Err(Problem::remote(format!("the page can't be compared: {what}"))
        .because("a page that lacks some of its objects is another page, and may be faster for it")
        .hint("windtunnel page without --compare says which fail; have the server answer each alike"))
}

fn program(request: &PageRequest) -> Result<OsString, Problem> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |name: &Path| match name.components().count() {
        1 => std::env::split_paths(&path).any(|folder| folder.join(name).is_file()),
        _ => name.is_file(),
    };
    let missing =
        |what: String| Problem::environment(what).hint("sudo apt-get install chromium, or name one: --browser PROGRAM");
    match &request.browser {
        Some(program) if there(program) => Ok(program.clone().into_os_string()),
        Some(program) => Err(missing(format!("there is no program {}", program.display()))),
        None => {
            let first = PROGRAMS.iter().find(|name| there(Path::new(name)));
            first.map(OsString::from).ok_or_else(|| missing("there is no Chromium".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_in_which_other_requests_fail_is_repeated_and_in_the_end_refused() {
        let loads = |failed: &[usize]| {
            let mut left = failed.iter().map(|failed| PageLoad { failed: *failed, ..PageLoad::default() });
            let alike = alike("initcwnd=10", 1, || left.next().ok_or_else(|| Problem::internal("no more")));
            (alike.map(|load| load.failed), left.len())
        };
        assert_eq!(loads(&[1, 9]), (Ok(1), 1));
        assert_eq!(loads(&[0, 3, 1]), (Ok(1), 0));
        let (refused, left) = loads(&[0, 0, 2, 9]);
        let refused = refused.unwrap_err();
        assert_eq!((left, refused.fault), (1, wt_problem::Fault::Remote));
        assert!(refused.what.contains("2 of its requests fail with initcwnd=10, and 1 before"), "{refused}");
    }
}
