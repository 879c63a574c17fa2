//! A server of PostgreSQL for one test: in a folder of its own, on a socket in it, as an ordinary user.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

/// A server that goes with the test.
#[derive(Debug)]
pub struct PostgresServer {
    server: Child,
    /// Ends once nothing of it is left: its children write to the same pipe.
    reader: Option<JoinHandle<()>>,
    folder: PathBuf,
    programs: PathBuf,
    arguments: Vec<String>,
}

impl PostgresServer {
    /// Starts one from the newest package that is installed; `folder` is the test's own, and is emptied by it. As root it runs as the
    /// user postgres.
    ///
    /// # Errors
    /// What is lacking, or what the server says.
    pub fn start(folder: &Path) -> Result<Self, String> {
        Self::start_with(folder, &[])
    }

    /// The same with settings of its own: `max_connections=200`.
    ///
    /// # Errors
    /// What is lacking, or what the server says.
    pub fn start_with(folder: &Path, settings: &[&str]) -> Result<Self, String> {
        let programs = programs().ok_or("no initdb below /usr/lib/postgresql (package postgresql)")?;
        let folder = folder.join("postgres");
        let told = |error: std::io::Error| format!("{}: {error}", folder.display());
        std::fs::create_dir(&folder).map_err(told)?;
        if let Some((user, group)) = other_user()? {
            // The user has to get there, too.
            let above = folder.parent().ok_or("the folder has none above it")?;
            std::fs::set_permissions(above, std::fs::Permissions::from_mode(0o755)).map_err(told)?;
            chown(&folder, Some(user), Some(group)).map_err(told)?;
        }
        let data = folder.join("data").display().to_string();
        let made = as_user(&programs.join("initdb"))?
            .args(["-D", &data, "-U", "wt", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"])
            .current_dir(&folder)
            .output()
            .map_err(told)?;
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).into_owned());
        }
        let socket = folder.display().to_string();
        let mut arguments: Vec<String> = vec!["-D".into(), data, "-k".into(), socket];
        for setting in ["listen_addresses=", "fsync=off", "max_connections=100"].iter().chain(settings) {
            arguments.extend(["-c".to_owned(), (*setting).to_owned()]);
        }
        let (server, reader) = run(&programs, &arguments, &folder)?;
        Ok(Self { server, reader: Some(reader), folder, programs, arguments })
    }

    /// The address of a database, which is made if need be.
    ///
    /// # Errors
    /// What the server says.
    pub fn database(&self, name: &str) -> Result<String, String> {
        self.sql("postgres", &format!("CREATE DATABASE {name}"))?;
        Ok(self.address(name))
    }

    /// The address of a database.
    #[must_use]
    pub fn address(&self, name: &str) -> String {
        let socket = self.folder.display().to_string().replace('/', "%2F");
        let port = self.arguments.iter().find_map(|setting| setting.strip_prefix("port="));
        let port = port.map(|port| format!("&port={port}")).unwrap_or_default();
        format!("postgresql://wt@/{name}?host={socket}{port}")
    }

    /// The number of its process, whose children serve connections.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.server.id()
    }

    /// What psql prints, without headings.
    ///
    /// # Errors
    /// What psql says.
    pub fn sql(&self, database: &str, sql: &str) -> Result<String, String> {
        self.sql_as("wt", database, sql)
    }

    /// The same as another role.
    ///
    /// # Errors
    /// What psql says.
    pub fn sql_as(&self, role: &str, database: &str, sql: &str) -> Result<String, String> {
        let port = self.arguments.iter().find_map(|setting| setting.strip_prefix("port=")).unwrap_or("5432");
        let done = Command::new(self.programs.join("psql"))
            .args([
                "-X",
                "-q",
                "-A",
                "-t",
                "-v",
                "ON_ERROR_STOP=1",
                "-U",
                role,
                "-d",
                database,
                "-c",
                sql,
                "-p",
                port,
                "-h",
            ])
            .arg(&self.folder)
            .output()
            .map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
    }

    /// Ends it by SIGKILL, as a power failure would, and starts it again.
    ///
    /// # Errors
    /// What the server says.
    pub fn kill_and_restart(&mut self) -> Result<(), String> {
        self.kill();
        let (server, reader) = run(&self.programs, &self.arguments, &self.folder)?;
        (self.server, self.reader) = (server, Some(reader));
        Ok(())
    }

    fn kill(&mut self) {
        // setpriv has become the server: it has its number. Its children see that it is gone.
        let _ = self.server.kill();
        let _ = self.server.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts the server and waits until it says that it is ready.
fn run(programs: &Path, arguments: &[String], folder: &Path) -> Result<(Child, JoinHandle<()>), String> {
    let mut command = as_user(&programs.join("postgres"))?;
    command.args(arguments).env("LC_ALL", "C").current_dir(folder);
    let mut server = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut lines = BufReader::new(server.stderr.take().ok_or("it has no standard error")?).lines();
    let mut said = Vec::new();
    for line in lines.by_ref().map_while(Result::ok) {
        if line.contains("is ready to accept connections") {
            // Read on, so that it never waits for us.
            let reader = std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
            return Ok((server, reader));
        }
        said.push(line);
    }
    let _ = server.wait();
    Err(said.join("\n"))
}

/// Where the newest version's programs are.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(_, folder): &(u32, PathBuf)| folder.join("initdb").is_file())
        .collect();
    found.sort();
    found.pop().map(|(_, folder)| folder)
}

/// A command that ends with us, as an ordinary user.
fn as_user(program: &Path) -> Result<Command, String> {
    let mut command = Command::new("setpriv");
    command.arg("--pdeathsig=KILL");
    if let Some((user, group)) = other_user()? {
        command.arg(format!("--reuid={user}")).arg(format!("--regid={group}")).arg("--clear-groups");
    }
    command.arg(program);
    Ok(command)
}

/// The user postgres, if we are root, whom the server refuses.
fn other_user() -> Result<Option<(u32, u32)>, String> {
    use std::os::unix::fs::MetadataExt as _;
    let own = std::fs::metadata("/proc/self").map_err(|error| error.to_string())?.uid();
    if own != 0 {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd").map_err(|error| error.to_string())?;
    let line = users.lines().find_map(|line| line.strip_prefix("postgres:")).ok_or("there is no user postgres")?;
    let mut numbers = line.split(':').skip(1).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(user)), Some(Ok(group))) => Ok(Some((user, group))),
        _ => Err("the user postgres has no numbers".to_owned()),
    }
}
