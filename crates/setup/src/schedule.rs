//! Measures again what a change has gained, at random times within a window: as a service and a timer for systemd, which has
//! all that takes. Nothing of ours stays running.

use crate::settings::HostAccess;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::PathBuf;
use wt_problem::Problem;

/// Root's own journal, which `sudo windtunnel` reads, too: a service has no HOME by which it would be found.
const JOURNAL: &str = "/root/.local/share/windtunnel/journal.sqlite3";
/// Minutes of a day.
const DAY: u32 = 24 * 60;

/// What is measured again, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScheduleRequest {
    /// The change; nothing means the latest in force.
    pub change: Option<String>,
    /// What curl fetches; nothing means what the experiment behind the change fetched.
    pub url: Option<String>,
    /// A command of the shell whose time counts, instead.
    pub by: Option<String>,
    /// Within which hours.
    #[serde(with = "crate::text::as_text")]
    pub between: TimeWindow,
    /// On which days: empty means every day.
    pub days: Vec<Weekday>,
    /// Rounds at most, of two runs each.
    pub rounds: u16,
    /// The journal; nothing means root's.
    pub journal: Option<PathBuf>,
    /// Where changes of settings are kept; nothing means where root keeps them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_dir: Option<PathBuf>,
    /// Where monitoring reads; nothing means that nothing is written there.
    pub textfile: Option<PathBuf>,
    /// Whether a change that isn't in force is refused though it is said what is to be timed, where changes can be read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_in_force: bool,
    /// A unit that is started when the gain is gone, or can't be measured.
    pub on_failure: Option<String>,
    /// The program; nothing means the one that runs.
    pub program: Option<PathBuf>,
}

impl Default for ScheduleRequest {
    fn default() -> Self {
        Self {
            change: None,
            url: None,
            by: None,
            between: TimeWindow::default(),
            days: Vec::new(),
            rounds: 20,
            journal: None,
            state_dir: None,
            textfile: None,
            only_in_force: false,
            on_failure: None,
            program: None,
        }
    }
}

/// Hours of a day: `02:00-05:00`. The end may be on the next day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWindow {
    /// When it begins, minutes since midnight.
    begins: u32,
    /// How long it is, minutes.
    lasts: u32,
}

impl Default for TimeWindow {
    fn default() -> Self {
        Self { begins: 2 * 60, lasts: 3 * 60 }
    }
}

impl std::str::FromStr for TimeWindow {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let time = |text: &str| {
            let (hours, minutes) = text.trim().split_once(':')?;
            let two = |text: &str, below: u32| {
                let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
                text.parse::<u32>().ok().filter(|number| is_number && *number < below)
            };
            Some(two(hours, 24)? * 60 + two(minutes, 60)?)
        };
        let both = text.split_once('-').and_then(|(from, to)| Some((time(from)?, time(to)?)));
        let (begins, ends) = both
            .filter(|(from, to)| from != to)
            .ok_or_else(|| format!("\"{text}\" is no window such as 02:00-05:00"))?;
        Ok(Self { begins, lasts: (ends + DAY - begins) % DAY })
    }
}

impl std::fmt::Display for TimeWindow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ends = (self.begins + self.lasts) % DAY;
        let (begin, end) = (self.begins, ends);
        write!(f, "{:02}:{:02}-{:02}:{:02}", begin / 60, begin % 60, end / 60, end % 60)
    }
}

/// A day of the week, as systemd writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Weekday {
    /// Monday.
    Mon,
    /// Tuesday.
    Tue,
    /// Wednesday.
    Wed,
    /// Thursday.
    Thu,
    /// Friday.
    Fri,
    /// Saturday.
    Sat,
    /// Sunday.
    Sun,
}

impl Weekday {
    const ALL: [Self; 7] = [Self::Mon, Self::Tue, Self::Wed, Self::Thu, Self::Fri, Self::Sat, Self::Sun];

    fn name(self) -> &'static str {
        match self {
            Self::Mon => "Mon",
            Self::Tue => "Tue",
            Self::Wed => "Wed",
            Self::Thu => "Thu",
            Self::Fri => "Fri",
            Self::Sat => "Sat",
            Self::Sun => "Sun",
        }
    }
}

impl std::str::FromStr for Weekday {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let day = Self::ALL.into_iter().find(|day| day.name().eq_ignore_ascii_case(text));
        day.ok_or_else(|| format!("\"{text}\" is no day of the week: Mon, Tue, Wed, Thu, Fri, Sat, Sun"))
    }
}

/// Units for systemd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScheduleAnswer {
    /// 1.
    pub schema_version: u32,
    /// The change that is measured again.
    pub change: String,
    /// The service first, then its timer.
    pub units: Vec<ScheduleUnit>,
}

/// A unit for systemd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScheduleUnit {
    /// Its file name.
    pub name: String,
    /// What the file holds.
    pub content: String,
}

impl HostAccess {
    /// A service that measures again what a change gains, and checks whether all that was changed holds; and its timer.
    /// Nothing is written.
    ///
    /// # Errors
    /// A usage [`Problem`] where the change isn't in force, or nothing is said that could be timed, and for what no unit can have.
    pub fn schedule(&mut self, request: &ScheduleRequest) -> Result<ScheduleAnswer, Problem> {
        request.check()?;
        let request = &request.absolute()?;
        let said = request.by.clone().or_else(|| request.url.clone());
        let (change, url) = match (&request.change, said) {
            // Whoever says both needn't be able to read what root has changed.
            (Some(change), Some(_)) if !request.only_in_force || self.hidden().is_some() => {
                let id: wt_host::CheckpointId =
                    change.parse().map_err(|error: wt_host::CheckpointIdError| Problem::usage(error.to_string()))?;
                (id.to_string(), None)
            }
            (change, said) => {
                let crate::settings::InForce { id, .. } = self.in_force(change.as_deref()).map_err(|problem| {
                    let problem = if change.is_none() {
                        Problem::usage("no change is in force that could be measured again")
                    } else {
                        problem
                    };
                    // Which one was meant is said, and nothing more can be.
                    if change.is_some() && said.is_some() {
                        return problem;
                    }
                    if wt_sys::process::effective_uid() == 0 {
                        return problem.hint("windtunnel settings history lists the changes");
                    }
                    problem.hint("for changes of root run it with sudo; or name both, --change N --url URL")
                })?;
                let fetched = self.store.read(&mut self.system, id).ok().and_then(|stored| stored.basis?.url);
                (id.to_string(), fetched.filter(|_| said.is_none()))
            }
        };
        let timed = match (&request.by, request.url.clone().or(url)) {
            (Some(command), _) => ["--by".to_owned(), command.clone()],
            (None, Some(url)) => ["--url".to_owned(), url],
            (None, None) => {
                return Err(Problem::usage(format!("nothing is said that could be timed for change {change}"))
                    .because("it doesn't rest on an experiment that fetched something from a server")
                    .hint("name what curl is to fetch, --url URL, or a command, --by 'CMD'"));
            }
        };
        let program = match &request.program {
            Some(program) => program.clone(),
            None => std::env::current_exe().map_err(|error| Problem::internal(format!("this program: {error}")))?,
        };
        let folder = request.by.is_some().then(here).transpose()?;
        let units = units(request, &program.display().to_string(), &change, timed, folder.as_deref());
        Ok(ScheduleAnswer { schema_version: 1, change, units })
    }
}

impl ScheduleRequest {
    /// Whether units can have it.
    ///
    /// # Errors
    /// A usage [`Problem`] that names what can't be.
    fn check(&self) -> Result<(), Problem> {
        let blank = |text: &str| text.trim().is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control());
        if let Some(url) = self.url.as_ref().filter(|url| blank(url)) {
            return Err(Problem::usage(format!("\"{url}\" is no URL")).hint("write https://HOST/PATH"));
        }
        if self.by.as_ref().is_some_and(|by| by.trim().is_empty()) {
            return Err(Problem::usage("an empty command can't be timed").hint("--by 'scp server:big.bin /dev/null'"));
        }
        match self.on_failure.as_ref().filter(|unit| !is_unit(unit)) {
            Some(unit) => Err(Problem::usage(format!("\"{unit}\" is no name of a unit of systemd"))
                .hint("write one with what it is at its end, and without %: tell-me.service, mail@root.service")),
            None => Ok(()),
        }
    }

    /// The same from wherever it runs: a service's folder is `/`.
    fn absolute(&self) -> Result<Self, Problem> {
        let absolute = |path: &Option<PathBuf>| {
            let whole = |path: &PathBuf| {
                if crate::journal::is_common(Some(path)) {
                    return Ok(path.clone());
                }
                std::path::absolute(path).map_err(|error| Problem::usage(format!("{}: {error}", path.display())))
            };
            path.as_ref().map(whole).transpose()
        };
        let (journal, textfile) = (absolute(&self.journal)?, absolute(&self.textfile)?);
        let (state_dir, program) = (absolute(&self.state_dir)?, absolute(&self.program)?);
        Ok(Self { journal, state_dir, textfile, program, ..self.clone() })
    }
}

/// Whether systemd takes it for a unit's name.
///
/// # Source
/// systemd.unit(5), "Description": the name's prefix has letters, digits and `:-_.\`, one `@` before an instance, a type at its end, and
/// 255 characters at most.
fn is_unit(name: &str) -> bool {
    const TYPES: [&str; 11] =
        ["service", "socket", "device", "mount", "automount", "swap", "target", "path", "timer", "slice", "scope"];
    let Some((prefix, kind)) = name.rsplit_once('.') else { return false };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    TYPES.contains(&kind)
        && !prefix.is_empty()
        && !prefix.starts_with('@')
        && name.len() <= 255
        && prefix.chars().all(is_allowed)
}

/// The folder from which names count in a command.
fn here() -> Result<String, Problem> {
    let folder = std::env::current_dir().map_err(|error| Problem::environment(format!("this folder: {error}")))?;
    let text = folder.to_str().filter(|text| !text.contains(char::is_control) && *text == text.trim_end());
    text.map(str::to_owned).ok_or_else(|| {
        Problem::usage(format!("no unit can be started in {}", folder.display()))
            .hint("type it in another folder, and name files from / on in the command")
    })
}

/// Whether something is in a folder of temporary files, of which a unit with `PrivateTmp` sees one of its own.
fn is_temporary(path: &str) -> bool {
    ["/tmp", "/var/tmp"].iter().any(|folder| std::path::Path::new(path).starts_with(folder))
}

fn units(
    request: &ScheduleRequest,
    program: &str,
    change: &str,
    timed: [String; 2],
    folder: Option<&str>,
) -> Vec<ScheduleUnit> {
    let name = format!("windtunnel-again-{change}");
    let journal = request.journal.as_ref().map_or_else(|| JOURNAL.to_owned(), |path| path.display().to_string());
    let state = request.state_dir.as_ref().map(|folder| folder.display().to_string());
    let [flag, what] = timed;
    let rounds = request.rounds.to_string();
    let prove: [&str; 9] = ["settings", "prove", change, &flag, &what, "--rounds", &rounds, "--journal", &journal];
    let check = ["settings", "check", "--journal", &journal];
    let line = |words: &[&str]| {
        let state = state.as_ref().map_or_else(Vec::new, |folder| vec!["--state-dir", folder.as_str()]);
        let words: Vec<String> = [&[program], words, &state[..]].concat().into_iter().map(quoted).collect();
        words.join(" ")
    };
    let mut service = format!(
        "# Measures again whether change {change} makes anything faster. Exit code 1: it doesn't any more, or what was changed\n\
         # has drifted, or the path, kernel or device is another one; 3 to 5: that couldn't be measured.\n\
         [Unit]\n\
         Description=Windtunnel measures change {change} again\n\
         Documentation=man:windtunnel-schedule(1)\n\
         Wants=network-online.target\n\
         After=network-online.target\n"
    );
    if let Some(unit) = &request.on_failure {
        let _ = writeln!(service, "OnFailure={}", unit.replace('%', "%%"));
    }
    service.push_str("\n[Service]\nType=oneshot\n");
    if let Some(folder) = folder {
        // Where the command was typed: names of files in it count from there.
        let _ = writeln!(service, "WorkingDirectory={}", folder.replace('%', "%%"));
    }
    let _ = write!(service, "ExecStart={}\nExecStart={}\n", line(&prove), line(&check));
    if let Some(file) = &request.textfile {
        // Also when the gain is gone, which is what monitoring is to hear of.
        let file = file.display().to_string();
        let _ = writeln!(service, "ExecStopPost=-{}", line(&["metrics", "--textfile", &file, "--journal", &journal]));
    }
    let textfile = request.textfile.as_ref().map(|file| file.display().to_string());
    let named = [Some(program), Some(&journal), folder, state.as_deref(), textfile.as_deref()];
    let in_command =
        request.by.iter().flat_map(|command| command.split(|c: char| c.is_whitespace() || "'\"=:<>".contains(c)));
    let sees_temporary = named.into_iter().flatten().chain(in_command).any(is_temporary);
    // The change is taken out of the kernel and put back: what is to be written must stay writable.
    service.push_str(
        "# SIGTERM ends the round, and puts the change back in force.\nTimeoutStartSec=2h\nTimeoutStopSec=2min\nNice=10\n\
         NoNewPrivileges=yes\nProtectSystem=full\nProtectClock=yes\nProtectKernelLogs=yes\n\
         RestrictSUIDSGID=yes\nLockPersonality=yes\n",
    );
    if !sees_temporary {
        service.push_str("PrivateTmp=yes\n");
    }
    let TimeWindow { begins, lasts } = request.between;
    let days = Weekday::ALL.into_iter().filter(|day| request.days.contains(day)).map(Weekday::name);
    let days: Vec<&str> = days.collect();
    let days = if days.is_empty() { String::new() } else { format!("{} ", days.join(",")) };
    let timer = format!(
        "# At a random time of each window, so that hosts don't measure at once and no hour is always or never looked at.\n\
         [Unit]\n\
         Description=When Windtunnel measures change {change} again\n\
         Documentation=man:windtunnel-schedule(1)\n\
         \n\
         [Timer]\n\
         OnCalendar={days}*-*-* {:02}:{:02}:00\n\
         RandomizedDelaySec={lasts}min\n\
         AccuracySec=1s\n\
         # A window that was missed isn't made up for at another hour.\n\
         Persistent=no\n\
         \n\
         [Install]\n\
         WantedBy=timers.target\n",
        begins / 60,
        begins % 60,
    );
    vec![
        ScheduleUnit { name: format!("{name}.service"), content: service },
        ScheduleUnit { name: format!("{name}.timer"), content: timer },
    ]
}

/// A word of a command line as systemd reads it: nothing of it is a variable or a specifier.
///
/// # Source
/// systemd.service(5), "Command lines"; systemd.syntax(7), "Quoting".
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=,@+~?&".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let mut text = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '%' | '$' => text.extend([c, c]),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(text, "\\x{:02x}", u32::from(c) & 0xFF);
            }
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_may_end_on_the_next_day_and_is_never_empty() {
        for (text, wanted) in [("02:00-05:00", Some((120, 180))), ("22:30-01:15", Some((1_350, 165)))] {
            let window: Option<TimeWindow> = text.parse().ok();
            assert_eq!(window.map(|window| (window.begins, window.lasts)), wanted);
            assert_eq!(window.map(|window| window.to_string()).as_deref(), Some(text));
        }
        for text in ["", "02:00", "2:00-05:00", "02:00-02:00", "24:00-01:00", "02:60-03:00", "02:00-+5:00"] {
            assert!(text.parse::<TimeWindow>().is_err(), "{text}");
        }
    }

    #[test]
    fn words_that_systemd_would_read_otherwise_are_quoted() {
        for (word, wanted) in [
            ("https://h/a?b=1&c=2", "https://h/a?b=1&c=2"),
            ("https://h/a%20b", "\"https://h/a%%20b\""),
            ("scp s:b /dev/null; echo \"$X\" \\", "\"scp s:b /dev/null; echo \\\"$$X\\\" \\\\\""),
            ("", "\"\""),
            (";", "\";\""),
            ("a\nb", "\"a\\nb\""),
        ] {
            assert_eq!(quoted(word), wanted);
        }
    }

    #[test]
    fn what_a_unit_cant_have_is_refused_and_paths_are_those_of_whoever_types() {
        let of = |change: fn(&mut ScheduleRequest)| {
            let mut request = ScheduleRequest::default();
            change(&mut request);
            request
        };
        for request in [
            of(|one| one.url = Some("not a url".to_owned())),
            of(|one| one.url = Some(String::new())),
            of(|one| one.by = Some(" ".to_owned())),
            of(|one| one.on_failure = Some("bad unit".to_owned())),
            of(|one| one.on_failure = Some("a.service b.service".to_owned())),
            of(|one| one.on_failure = Some("mail@%n.service".to_owned())),
            of(|one| one.on_failure = Some("mail".to_owned())),
            of(|one| one.on_failure = Some("x.service\nExecStart=/bin/true".to_owned())),
        ] {
            assert!(request.check().is_err(), "{request:?}");
        }
        for unit in ["tell-me.service", "mail@root.service", "a\\x2db.target"] {
            assert!(
                ScheduleRequest { on_failure: Some(unit.to_owned()), ..ScheduleRequest::default() }.check().is_ok()
            );
        }
        let state = ScheduleRequest { state_dir: Some("/srv/changes".into()), ..ScheduleRequest::default() };
        let state = units(&state, "/usr/bin/windtunnel", "3", ["--by".to_owned(), "true".to_owned()], None);
        let lines = state[0].content.lines().filter(|line| line.starts_with("Exec"));
        assert!(lines.clone().count() == 2 && lines.clone().all(|line| line.ends_with(" --state-dir /srv/changes")));
        let here = std::env::current_dir().unwrap();
        let request = of(|one| (one.journal, one.textfile) = (Some("j.sqlite3".into()), Some("/x.prom".into())));
        let absolute = request.absolute().unwrap();
        assert_eq!((absolute.journal, absolute.textfile), (Some(here.join("j.sqlite3")), Some("/x.prom".into())));
        let common: PathBuf = "postgresql://h/d".into();
        let request = ScheduleRequest { journal: Some(common.clone()), ..ScheduleRequest::default() };
        assert_eq!(request.absolute().unwrap().journal, Some(common));
    }

    #[test]
    fn the_timer_draws_its_time_and_the_service_fails_when_the_gain_is_gone() {
        let request = ScheduleRequest {
            days: vec![Weekday::Thu, Weekday::Mon],
            between: "23:00-04:00".parse().unwrap(),
            on_failure: Some("mail@%n.service".to_owned()),
            textfile: Some("/var/lib/x.prom".into()),
            ..ScheduleRequest::default()
        };
        let timed = ["--url".to_owned(), "https://h/f".to_owned()];
        let [service, timer] = &units(&request, "/usr/bin/windtunnel", "3", timed, None)[..] else {
            panic!("two units")
        };
        assert!(timer.content.contains("OnCalendar=Mon,Thu *-*-* 23:00:00\nRandomizedDelaySec=300min\n"));
        let lines: Vec<&str> = service.content.lines().filter(|line| line.starts_with("Exec")).collect();
        let journal = "--journal /root/.local/share/windtunnel/journal.sqlite3";
        assert_eq!(
            lines[0],
            format!("ExecStart=/usr/bin/windtunnel settings prove 3 --url https://h/f --rounds 20 {journal}")
        );
        // Neither's exit code is passed over.
        assert_eq!(lines[1], format!("ExecStart=/usr/bin/windtunnel settings check {journal}"));
        assert_eq!(lines[2], format!("ExecStopPost=-/usr/bin/windtunnel metrics --textfile /var/lib/x.prom {journal}"));
        assert!(service.content.contains("OnFailure=mail@%%n.service\n"), "{}", service.content);
        assert_eq!(
            (service.name.as_str(), timer.name.as_str()),
            ("windtunnel-again-3.service", "windtunnel-again-3.timer")
        );
    }

    #[test]
    fn a_command_runs_where_it_was_typed_and_sees_temporary_files_that_it_names() {
        let service = |by: &str, folder: &str| {
            let request = ScheduleRequest { by: Some(by.to_owned()), ..ScheduleRequest::default() };
            let timed = ["--by".to_owned(), by.to_owned()];
            units(&request, "/usr/bin/windtunnel", "3", timed, Some(folder))[0].content.clone()
        };
        let plain = service("scp big.bin 192.0.2.1:/dev/null", "/srv/50% full");
        assert!(plain.contains("\nWorkingDirectory=/srv/50%% full\n") && plain.contains("PrivateTmp=yes"), "{plain}");
        for (by, folder) in [("sh t.sh", "/tmp/job"), ("cp '/var/tmp/a' /dev/null", "/srv"), ("x --to=/tmp/a", "/srv")]
        {
            let seen = service(by, folder);
            assert!(!seen.contains("PrivateTmp"), "{seen}");
        }
        assert!(service("cp /tmpfiles/a /dev/null", "/srv").contains("PrivateTmp=yes"));
    }
}
