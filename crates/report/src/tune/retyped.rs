use super::TuneReport;

/// Commands that read an experiment; its name follows.
const READ: [&str; 5] = ["windtunnel report", "journal show", "journal export", "apply --verdict", "--holdback"];
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
        let of_reading = READ.map(|command| (command, self.to_read()));
        let all = of_reading.into_iter().chain([(GO_ON, self.to_measure())]);
        all.fold(text.to_owned(), |text, (command, options)| {
            let begun = format!("{command} {id}");
            text.replace(&begun, &format!("{begun}{options}"))
        })
    }
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
