use super::TuneReport;

/// Commands that read an experiment; its name follows.
const READ: [&str; 7] = [
    "windtunnel report",
    "traffic report",
    "journal show",
    "journal samples",
    "journal export",
    "apply --verdict",
    "--holdback",
];
/// What lists them all.
const LIST: &str = "windtunnel journal list";
/// What goes on with one: that needs the server's key, too.
const GO_ON: &str = "tune --resume";

/// Options that a person must type again with each command about an experiment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetypedOptions {
    /// The journal, as the shell takes it, if it isn't the usual one.
    pub journal: Option<String>,
    /// The file with the key of the server, as the shell takes it, if one was named.
    pub key_file: Option<String>,
}

impl RetypedOptions {
    /// The options of a command that measures: ` --key-file FILE --journal FILE`, or nothing.
    #[must_use]
    pub fn to_measure(&self) -> String {
        let key = self.key_file.as_ref().map_or_else(String::new, |file| format!(" --key-file {file}"));
        key + &self.to_read()
    }

    /// Those of one that reads what was measured.
    fn to_read(&self) -> String {
        self.journal.as_ref().map_or_else(String::new, |file| format!(" --journal {file}"))
    }

    /// A text in which each command about the experiment has them, behind its name.
    #[must_use]
    pub fn in_text(&self, text: &str, id: &str) -> String {
        self.commands().fold(text.to_owned(), |text, (command, options)| {
            let begun = format!("{command} {id}");
            text.replace(&begun, &format!("{begun}{options}"))
        })
    }

    /// A hint in which each command about any experiment has them, behind its name, and each that lists the journal.
    #[must_use]
    pub fn in_hint(&self, hint: &str) -> String {
        let all = self
            .commands()
            .fold(hint.to_owned(), |text, (command, options)| behind_names(&text, &format!("{command} "), &options));
        all.replace(LIST, &format!("{LIST}{}", self.to_read()))
    }

    /// The commands about an experiment, with the options of each.
    fn commands(&self) -> impl Iterator<Item = (&'static str, String)> {
        let of_reading = READ.map(|command| (command, self.to_read()));
        of_reading.into_iter().chain([(GO_ON, self.to_measure())])
    }
}

/// The text with options wherever what is `begun` ends with the name of an experiment: that begins with its date, or is `last`, or the
/// word that stands for one.
fn behind_names(text: &str, begun: &str, options: &str) -> String {
    let is_name = |word: &str| word.starts_with(|c: char| c.is_ascii_digit()) || matches!(word, "last" | "EXPERIMENT");
    let mut parts = text.split(begun);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |before, part| {
        let end = part.find([' ', ';', ',', ':']).unwrap_or(part.len());
        let (name, rest) = part.split_at(part[..end].trim_end_matches('.').len());
        let options = if is_name(name) { options } else { "" };
        format!("{before}{begun}{name}{options}{rest}")
    })
}

impl TuneReport {
    /// Adds the options to the commands that people are told to type.
    pub fn retype(&mut self, options: &RetypedOptions) {
        let Self { id, continued_by, verdict, warnings, next, plan, .. } = self;
        let ids = || std::iter::once(&*id).chain(&*continued_by);
        let add = |text: &mut String| *text = ids().fold(text.clone(), |text, id| options.in_text(&text, id));
        verdict.answer.lines.iter_mut().for_each(add);
        verdict.answer.steps.iter_mut().for_each(|step| add(&mut step.command));
        verdict.details.iter_mut().chain(warnings).chain(next).for_each(add);
        add(&mut verdict.text);
        plan.iter_mut().for_each(|step| add(&mut step.command));
    }
}

#[cfg(test)]
mod tests {
    use super::RetypedOptions;

    #[test]
    fn hints_name_the_journal_behind_experiments_and_nothing_behind_other_words() {
        let own = RetypedOptions { journal: Some("j".to_owned()), key_file: Some("k".to_owned()) };
        for (hint, named) in [
            (
                "wait; windtunnel report 2026-x tells how far it is, windtunnel tune --resume 2026-x.",
                "wait; windtunnel report 2026-x --journal j tells how far it is, windtunnel tune --resume 2026-x --key-file k --journal j.",
            ),
            ("windtunnel tune --resume 2", "windtunnel tune --resume 2 --key-file k --journal j"),
            (
                "windtunnel journal list shows 3 of them, windtunnel report EXPERIMENT reads one",
                "windtunnel journal list --journal j shows 3 of them, windtunnel report EXPERIMENT --journal j reads one",
            ),
            ("windtunnel report tells what came of it", "windtunnel report tells what came of it"),
            (
                "once the network is back, --resume goes on with it",
                "once the network is back, --resume goes on with it",
            ),
        ] {
            assert_eq!(own.in_hint(hint), named);
            assert_eq!(RetypedOptions::default().in_hint(hint), hint);
        }
    }
}
