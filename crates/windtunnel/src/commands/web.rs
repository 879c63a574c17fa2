//! `windtunnel web`: the page, and the API that it uses.

use crate::edge::{Exit, Outcome, Problem, emit, note, say};
use clap::Args;
use serde_json::json;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use wt_web::{Config, Ready, Secret, ServeError};

/// Serves the web page and its HTTP API
///
/// Listens on loopback only, unless it is given TLS and a password. On loopback your account starts and stops experiments in the lab;
/// other accounts of this host may look, and need the token for more, unless there is a password. Changing this host and measuring real
/// paths always need the token that is printed here.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel web
  windtunnel web --listen 127.0.0.1:0 --json
  windtunnel web --journal postgresql://owner@db.example/windtunnel
  windtunnel web --listen 0.0.0.0:7878 --tls-cert cert.pem --tls-key key.pem --password-file password")]
pub(crate) struct WebArgs {
    /// Where to listen: an address and a port; port 0 takes a free one. Others than loopback need TLS and a password
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7878")]
    listen: String,
    /// The certificate, and those that lead to its authority: PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key: PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A file whose first line is the password [default elsewhere than on loopback: ask for it in the terminal]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Read the journal of many hosts, and show its fleet; what is started here is kept by this host until it is pushed
    #[arg(long, value_name = "URL")]
    journal: Option<String>,
    /// A name under which it may be asked for, beside addresses; may be repeated
    #[arg(long, value_name = "HOST", value_parser = name)]
    name: Vec<String>,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Print where the page is and its token as one JSON object
    #[arg(long)]
    json: bool,
}

/// A host's name; an address is allowed anyway.
fn name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    if (1..=253).contains(&text.len()) && text.chars().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("write a host's name without a port, such as lab.example.org".to_owned())
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(crate) fn run(args: &WebArgs) -> Outcome {
    let exe = std::env::current_exe().map_err(|error| {
        Problem::environment(format!("this program's own file can't be found: {error}")).hint("is /proc mounted?")
    })?;
    let tls = args.tls_cert.clone().zip(args.tls_key.clone());
    let open = wt_web::is_open(&args.listen).map_err(|error| failure(&error))?;
    let config = Config {
        password: password(args, open && tls.is_some())?,
        listen: args.listen.clone(),
        names: args.name.clone(),
        journal: args
            .journal
            .as_ref()
            .map(|url| wt_setup::journal::store_address(url).map(|_| url.into()))
            .transpose()?,
        exe,
        tls,
    };
    wt_web::serve(config, |ready| tell(args, ready)).map(|()| Exit::Done).map_err(|error| failure(&error))
}

/// The password, from its file or, if it must have one, from whoever sits at the terminal.
fn password(args: &WebArgs, needed: bool) -> Result<Option<Secret>, Problem> {
    let text = match &args.password_file {
        Some(file) => read(file)?,
        None if needed && std::io::stdin().is_terminal() => {
            let asked = rpassword::prompt_password("Password for the page: ");
            asked.map_err(|error| Problem::environment(format!("can't ask for the password: {error}")))?
        }
        None => return Ok(None),
    };
    if text.is_empty() {
        return Err(Problem::usage("the password is empty").hint("write it into the first line of the file"));
    }
    Secret::new(&text).map(Some).map_err(|error| Problem::environment(error.to_string()))
}

/// The most bytes of a password file that are looked at.
const LONGEST: u64 = 4096;

/// The first line of a password file.
fn read(file: &Path) -> Result<String, Problem> {
    use std::io::Read as _;
    use std::os::unix::fs::PermissionsExt as _;
    let failed =
        |error: std::io::Error| Problem::usage(format!("can't read the password from {}: {error}", file.display()));
    let opened = std::fs::File::open(file).map_err(failed)?;
    if opened.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o077 != 0) {
        note(&format!("others can read {}: chmod 600 it", file.display()));
    }
    let mut text = String::new();
    opened.take(LONGEST).read_to_string(&mut text).map_err(failed)?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Says where the page is.
fn tell(args: &WebArgs, ready: &Ready) {
    let url = &ready.url;
    if args.json {
        emit!("{}", json!({"schema_version": 1, "url": url, "token": ready.token}));
    } else {
        say!("The page:                      {url}");
        say!("Token, for changing this host: {}", ready.token);
        say!("Both in one address:           {url}#token={}", ready.token);
        say!("Ctrl-C ends it, and all that it started.");
    }
    if args.open {
        open(url);
    }
}

/// Opens the browser, without the token: other users can read the arguments of programs.
fn open(url: &str) {
    use std::process::{Command, Stdio};
    let mut command = Command::new("xdg-open");
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        note(&format!("can't open a browser: xdg-open: {error}"));
    }
}

fn failure(error: &ServeError) -> Problem {
    match error {
        ServeError::Address { .. } => Problem::usage(error.to_string()),
        ServeError::Open { .. } => Problem::usage(error.to_string()).hint(
            "--tls-cert, --tls-key and --password-file; or listen on loopback, and come through SSH: \
             ssh -L 7878:127.0.0.1:7878 this-host, then http://127.0.0.1:7878/",
        ),
        ServeError::Tls(_) => {
            Problem::usage(error.to_string()).hint("both files in PEM form, the key without a passphrase")
        }
        ServeError::Bind { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
            Problem::environment(error.to_string())
                .because("another program listens there, perhaps another windtunnel web")
                .hint("--listen 127.0.0.1:0 takes a free port")
        }
        ServeError::Bind { .. } => Problem::environment(error.to_string()).hint("--listen 127.0.0.1:7878"),
        ServeError::System(_) | ServeError::Random(_) => Problem::environment(error.to_string()),
    }
}
