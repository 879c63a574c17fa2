//! `windtunnel web`: the page, and the API that it uses.

use crate::edge::{Exit, Failure, Outcome, say};
use clap::Args;
use serde_json::json;
use wt_web::{Config, Ready, ServeError};

/// The page: this host's settings, the calculator, experiments as they run
///
/// Listens on loopback only. Looking needs nothing more; changing this host needs the token that is printed here.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel web
  windtunnel web --listen 127.0.0.1:0 --json")]
pub(crate) struct WebArgs {
    /// Where to listen: a loopback address and a port; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7878")]
    listen: String,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Print where the page is and its token as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(args: &WebArgs) -> Outcome {
    let exe = std::env::current_exe().map_err(|error| {
        Failure::environment(format!("this program's own file can't be found: {error}")).hint("is /proc mounted?")
    })?;
    let config = Config { listen: args.listen.clone(), exe };
    wt_web::serve(config, |ready| tell(args, ready)).map(|()| Exit::Done).map_err(|error| failure(&error))
}

/// Says where the page is.
fn tell(args: &WebArgs, ready: &Ready) {
    let url = format!("http://{}/", ready.address);
    if args.json {
        say!("{}", json!({"schema_version": 1, "url": url, "token": ready.token}));
    } else {
        say!("The page:                      {url}");
        say!("Token, for changing this host: {}", ready.token);
        say!("Both in one address:           {url}#token={}", ready.token);
        say!("Ctrl-C ends it, and every experiment that it started.");
    }
    if args.open {
        open(&url);
    }
}

/// Opens the browser, without the token: other users can read the arguments of programs.
fn open(url: &str) {
    use std::process::{Command, Stdio};
    let mut command = Command::new("xdg-open");
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr().lock(), "windtunnel: can't open a browser: xdg-open: {error}");
    }
}

fn failure(error: &ServeError) -> Failure {
    match error {
        ServeError::Address { .. } => Failure::usage(error.to_string()),
        ServeError::NotLoopback(_) => Failure::usage(error.to_string()).hint(
            "listen on loopback, and come through SSH: ssh -L 7878:127.0.0.1:7878 this-host, then http://127.0.0.1:7878/",
        ),
        ServeError::Bind { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
            Failure::environment(error.to_string())
                .because("another program listens there, perhaps another windtunnel web")
                .hint("--listen 127.0.0.1:0 takes a free port")
        }
        ServeError::Bind { .. } => Failure::environment(error.to_string()).hint("--listen 127.0.0.1:7878"),
        ServeError::System(_) => Failure::environment(error.to_string()),
    }
}
