//! The adapters that are built in. They run as processes of their own: this very binary, started anew with [`ADAPTER`] as
//! its first argument, so that what they use can be counted, and that one that breaks breaks nobody else.

/// Faults that can be switched on.
mod fault;
/// The kernel of this machine.
mod linux;
/// What both sides of a carried connection share.
mod local;
/// smoltcp.
mod smol;
/// An older Linux as a process.
mod uml;

use crate::protocol::{Arguments, DESCRIBE, Description, VERSION};
use fault::Faults;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;

/// The first argument that makes this binary an adapter; the second is the stack's name.
pub const ADAPTER: &str = "__stack-adapter";

/// The stacks whose adapters are built in, with the options that each has.
pub(crate) const BUILT_IN: [(&str, &[&str]); 3] = [
    ("linux", &["cc", "late-acks", "fast-loss", "corrupt-at", "crash-at", "hang-at"]),
    ("smoltcp", &["cc", "ack-delay", "nagle", "late-acks", "fast-loss", "corrupt-at", "crash-at", "hang-at"]),
    ("uml", &["cc"]),
];

/// The options of one that is built in.
fn options(name: &str) -> &'static [&'static str] {
    BUILT_IN.iter().find(|(known, _)| *known == name).map_or(&[], |(_, options)| *options)
}

/// Whether an adapter that is built in can do what these options say, before it is started.
///
/// # Errors
/// What it has instead.
pub(crate) fn check(name: &str, options: &BTreeMap<String, String>) -> Result<(), String> {
    match name {
        "linux" => Faults::of(options).map(drop),
        "smoltcp" => Faults::of(options).and_then(|_| smol::check(options)),
        "uml" => uml::check(options),
        _ => Ok(()),
    }
}

/// What an adapter ends with when it can't do what it was told.
const REFUSED: u8 = 3;

/// What this process does as an adapter; the exit code.
#[must_use]
pub fn adapter(mut args: impl Iterator<Item = OsString>) -> u8 {
    let name = args.next().unwrap_or_default().to_string_lossy().into_owned();
    let mut args = args.take_while(|one| one != uml::END).peekable();
    if args.peek().is_some_and(|first| first == DESCRIBE) {
        return match describe(&name) {
            Some(description) => say(&description),
            None => complain(&format!("there is no stack {name} in here")),
        };
    }
    let arguments = match Arguments::parse(args) {
        Ok(arguments) => arguments,
        Err(error) => return complain(&error.to_string()),
    };
    let faults = match Faults::of(&arguments.options) {
        Ok(faults) => faults,
        Err(why) => return complain(&why),
    };
    let ran = match name.as_str() {
        "linux" => linux::run(&arguments, &faults),
        "smoltcp" => smol::run(&arguments, &faults),
        "uml" => uml::run(&arguments),
        uml::GUEST => uml::guest(&arguments),
        _ => Err(format!("there is no stack {name} in here")),
    };
    match ran {
        Ok(done) => say(&done),
        Err(why) => complain(&why),
    }
}

/// What a built-in adapter says of itself; `None` if there is none, or what it needs isn't installed.
pub(crate) fn describe(name: &str) -> Option<Description> {
    let (name, options) = BUILT_IN.into_iter().find(|(known, _)| *known == name)?;
    let version = match name {
        "linux" => linux::version(),
        "smoltcp" => smol::VERSION.to_owned(),
        // Where its kernel is installed.
        _ => uml::version()?,
    };
    let options = options.iter().map(|option| (*option).to_owned()).collect();
    Some(Description { protocol: VERSION, name: name.to_owned(), version, options, far_end: false })
}

/// One line of JSON for whoever started us.
fn say(line: &impl serde::Serialize) -> u8 {
    let mut text = serde_json::to_string(line).unwrap_or_default();
    text.push('\n');
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok() { 0 } else { 1 }
}

fn complain(why: &str) -> u8 {
    let _ = writeln!(std::io::stderr().lock(), "{why}");
    REFUSED
}
