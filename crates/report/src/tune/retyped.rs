use super::TuneReport;

/// Options that a person must type again with each command about an experiment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetypedOptions {
    /// The journal, as the shell takes it, if it isn't the usual one.
    pub journal: Option<String>,
    /// The file with the key of the server, as the shell takes it, if one was named.
    pub key_file: Option<String>,
}

impl TuneReport {
    /// Adds the options to the commands that people are told to type: what reads the experiment needs its journal, what goes on
    /// with it the key, too.
    pub fn retype(&mut self, options: &RetypedOptions) {
        let option = |name: &str, value: &Option<String>| {
            value.as_ref().map_or_else(String::new, |value| format!(" {name} {value}"))
        };
        let journal = option("--journal", &options.journal);
        let both = option("--key-file", &options.key_file) + &journal;
        let commands = [("tune --resume", &both), ("windtunnel report", &journal), ("apply --verdict", &journal)];
        let id = self.id.clone();
        let add = |text: &mut String| {
            for (command, more) in commands {
                let begun = format!("{command} {id}");
                if text.contains(&begun) {
                    *text = text.replace(&begun, &format!("{begun}{more}"));
                }
            }
        };
        let Self { verdict, warnings, next, plan, .. } = self;
        verdict.answer.lines.iter_mut().for_each(add);
        verdict.answer.steps.iter_mut().for_each(|step| add(&mut step.command));
        verdict.details.iter_mut().chain(warnings).chain(next).for_each(add);
        add(&mut verdict.text);
        plan.iter_mut().for_each(|step| add(&mut step.command));
    }
}
