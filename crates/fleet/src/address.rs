//! `postgresql://USER@HOST:PORT/DATABASE`: as libpq writes it, with the same names of parameters, but stricter about TLS.

use crate::client::{Client, Patience};
use crate::dial;
use crate::tls;
use postgres::Config;
use postgres::config::{Host, SslMode};
use std::ffi::OsString;
use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// How long to wait for a server that doesn't let one in.
const CONNECT: Duration = Duration::from_secs(10);
/// A connection on which nothing is acknowledged for so long is dead, and so is a server that says nothing for so long where it was asked.
const SILENCE: Duration = Duration::from_secs(30);

/// Why a text isn't the address of a journal; it repeats no part of a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressError(&'static str);

impl Display for AddressError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for AddressError {}

/// How the server's identity is ensured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Security {
    /// Its certificate, for the name that was asked for.
    VerifyFull,
    /// Not at all: a socket of this host, or somebody said so.
    Disable,
}

/// Where a journal in PostgreSQL is, with what is needed to get in.
///
/// Printed, it has no password. Over TCP to another host TLS is a must, and the certificate is checked against the name
/// (`sslmode=verify-full`, the default); `sslmode=disable` has to be written.
#[derive(Clone)]
pub struct StoreAddress {
    config: Config,
    security: Security,
    root: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    /// How long the server has to answer.
    patience: Duration,
    shown: String,
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoreAddress").field(&self.shown).finish()
    }
}

impl Display for StoreAddress {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl FromStr for StoreAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let rest = after_scheme(text).ok_or(AddressError("it doesn't begin with postgresql://"))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        if place.matches('@').count() > 1 {
            return Err(AddressError("a @ within a user or a password is written %40"));
        }
        if place.split_once('@').is_some_and(|(login, _)| login.contains('/')) {
            return Err(AddressError("a / within a user or a password is written %2F"));
        }
        let mut mode = None;
        let (mut root, mut certificate, mut key) = (None, None, None);
        let (mut passed, mut told): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or(AddressError("a parameter has no value"))?;
            let file = || decoded(value).map(|path| Some(PathBuf::from(path)));
            match name {
                "sslmode" => mode = Some(value),
                "sslrootcert" => root = file()?,
                "sslcert" => certificate = file()?,
                "sslkey" => key = file()?,
                _ => passed.push(pair),
            }
            if name != "password" {
                told.push(pair);
            }
        }
        if certificate.is_some() != key.is_some() {
            return Err(AddressError("sslcert and sslkey come together"));
        }
        let joined = |pairs: &[&str]| if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
        let mut config: Config = format!("postgresql://{place}{}", joined(&passed))
            .parse()
            .map_err(|_| AddressError("it isn't postgresql://USER@HOST:PORT/DATABASE with libpq's parameters"))?;
        // Where there is a hostaddr, that is connected to, whatever the host's name is.
        let local = config.get_hosts().iter().all(is_local) && config.get_hostaddrs().iter().all(IpAddr::is_loopback);
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            config.host_path("/run/postgresql");
        }
        let security = match mode {
            Some("verify-full") => Security::VerifyFull,
            Some("disable") => Security::Disable,
            None if local && root.is_none() => Security::Disable,
            None => Security::VerifyFull,
            Some(_) => return Err(AddressError("sslmode is verify-full (the default) or disable")),
        };
        let named = |host: &Host| matches!(host, Host::Tcp(name) if !name.is_empty());
        let nameless = config.get_hosts().is_empty() || !config.get_hosts().iter().all(named);
        if security == Security::VerifyFull && !config.get_hostaddrs().is_empty() && nameless {
            return Err(AddressError(
                "a hostaddr alone has no name to check the server's certificate against: write \
                 postgresql://USER@NAME/DATABASE?hostaddr=ADDRESS with the name in its certificate, or sslmode=disable",
            ));
        }
        config.ssl_mode(if security == Security::Disable { SslMode::Disable } else { SslMode::Require });
        config.connect_timeout(CONNECT).tcp_user_timeout(SILENCE).application_name("windtunnel");
        let (login, place) = place.split_once('@').map_or((None, place), |(login, place)| (Some(login), place));
        let user = login.map(|login| login.split(':').next().unwrap_or_default());
        let user = user.map(|user| format!("{user}@")).unwrap_or_default();
        let shown = format!("postgresql://{user}{place}{}", joined(&told));
        Ok(Self { config, security, root, certificate, key, patience: SILENCE, shown })
    }
}

impl StoreAddress {
    /// Whether a text means a journal in PostgreSQL and not a file.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        after_scheme(text).is_some()
    }

    /// Who asks there.
    #[must_use]
    pub fn user(&self) -> &str {
        self.config.get_user().unwrap_or_default()
    }

    /// The server as it stands in addresses, and the database.
    #[must_use]
    pub fn place(&self) -> (String, &str) {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            _ => "HOST".to_owned(),
        };
        let port = self.config.get_ports().first().filter(|port| **port != 5432).map(|port| format!(":{port}"));
        (host + &port.unwrap_or_default(), self.config.get_dbname().unwrap_or(self.user()))
    }

    /// The same with the password that the environment has, where the address has none: `PGPASSWORD`, or the line of the password
    /// file that fits. `variable` looks up the environment.
    ///
    /// # Source
    /// PostgreSQL 15, libpq, "The Password File".
    #[must_use]
    pub fn with_password_of(mut self, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        if self.config.get_password().is_some() {
            return self;
        }
        if let Some(password) = variable("PGPASSWORD").and_then(|word| word.into_string().ok()) {
            self.config.password(password);
            return self;
        }
        let home = || Some(PathBuf::from(variable("HOME")?).join(".pgpass"));
        let file = variable("PGPASSFILE").map(PathBuf::from).or_else(home);
        if let Some(password) = file.as_deref().and_then(private_text).and_then(|text| self.password_of(&text)) {
            self.config.password(password);
        }
        self
    }

    /// The password of the first line of a password file that fits.
    fn password_of(&self, file: &str) -> Option<String> {
        let host = match self.config.get_hosts().first()? {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(_) => "localhost".to_owned(),
        };
        let user = self.config.get_user().unwrap_or_default();
        let port = self.config.get_ports().first().copied().unwrap_or(5432).to_string();
        let wanted = [host.as_str(), &port, self.config.get_dbname().unwrap_or(user), user];
        file.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
            let fields = fields_of(line);
            let [pattern @ .., password] = fields.as_slice() else { return None };
            let fits = pattern.len() == 4 && pattern.iter().zip(wanted).all(|(own, other)| own == "*" || own == other);
            fits.then(|| password.clone())
        })
    }

    /// The same, for whoever waits so long for each answer of a server, and no longer until it lets one in. Usually the one is half a
    /// minute, the other ten seconds.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The same with so much patience at most.
    pub(crate) fn with_patience_of_at_most(&self, most: Duration) -> Self {
        Self { patience: self.patience.min(most), ..self.clone() }
    }

    /// Connects.
    ///
    /// # Errors
    /// What the system, TLS or the server says, or that it says nothing.
    pub(crate) fn connect(&self) -> Result<Client, String> {
        let connector = match self.security {
            Security::Disable => None,
            Security::VerifyFull => Some(self.connector()?),
        };
        let patience = Patience { entry: CONNECT.min(self.patience), answer: self.patience };
        dial::connect(&self.config, connector.as_ref(), patience)
    }

    fn connector(&self) -> Result<tls::Connector, String> {
        let pair = self.certificate.as_deref().zip(self.key.as_deref());
        tls::Connector::new(self.root.as_deref(), pair)
    }

    /// Reads the files that it names for TLS, if it takes that; nobody is connected to.
    ///
    /// # Errors
    /// Which file can't be read, or whose key is another's, and why.
    pub fn check_files(&self) -> Result<(), String> {
        if self.security == Security::Disable { Ok(()) } else { self.connector().map(drop) }
    }
}

fn after_scheme(text: &str) -> Option<&str> {
    text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://"))
}

/// Whether nothing leaves this host on the way there.
fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

/// A text of a URL with what stands as %41.
fn decoded(text: &str) -> Result<String, AddressError> {
    let wrong = AddressError("a % in it isn't followed by two hexadecimal digits");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first == b'%' {
            let digits = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok()).ok_or(wrong.clone())?;
            bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong.clone())?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).map_err(|_| wrong)
}

/// A file that nobody else may read, as libpq demands; any other isn't read.
fn private_text(path: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?.permissions().mode();
    (mode & 0o077 == 0).then(|| std::fs::read_to_string(path).ok())?
}

/// The fields between colons; a backslash takes the next sign as it is.
fn fields_of(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut signs = line.chars();
    while let Some(sign) = signs.next() {
        match (sign, fields.last_mut()) {
            (':', _) => fields.push(String::new()),
            ('\\', Some(field)) => field.extend(signs.next()),
            (sign, Some(field)) => field.push(sign),
            (_, None) => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> StoreAddress {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn no_password_is_shown() {
        for text in [
            "postgresql://ann:se%40cret@db.example:5433/wt?sslrootcert=%2Fetc%2Fca.pem",
            "postgres://ann@db.example:5433/wt?password=secret&sslrootcert=%2Fetc%2Fca.pem",
        ] {
            let address = address(text);
            assert_eq!(address.to_string(), "postgresql://ann@db.example:5433/wt?sslrootcert=%2Fetc%2Fca.pem");
            assert!(!format!("{address:?}").contains("cret"), "{address:?}");
            assert_eq!(address.root.as_deref(), Some(Path::new("/etc/ca.pem")));
            assert!(address.config.get_password().is_some());
        }
        for text in
            ["postgresql://ann:se@cret@h/d", "postgresql://ann:se/cret@h/d", "postgresql://a:secret@h/d?x=1", "ann"]
        {
            let error = text.parse::<StoreAddress>().expect_err(text).to_string();
            assert!(!error.contains("cret"), "{error}");
        }
    }

    #[test]
    fn another_host_takes_tls_unless_somebody_says_otherwise() {
        for (text, security) in [
            ("postgresql://h/d", Security::VerifyFull),
            ("postgresql://h/d?sslmode=disable", Security::Disable),
            ("postgresql://h/d?sslmode=verify-full", Security::VerifyFull),
            ("postgresql://localhost,h/d", Security::VerifyFull),
            ("postgresql://localhost/d", Security::Disable),
            ("postgresql://127.0.0.1/d?sslrootcert=/x", Security::VerifyFull),
            ("postgresql:///d", Security::Disable),
            ("postgresql:///d?host=/run/x", Security::Disable),
        ] {
            assert_eq!(address(text).security, security, "{text}");
        }
        for mode in ["prefer", "allow", "require", "verify-ca", ""] {
            let text = format!("postgresql://h/d?sslmode={mode}");
            assert!(text.parse::<StoreAddress>().is_err(), "{text}");
        }
        assert!("postgresql://h/d?sslcert=/x".parse::<StoreAddress>().is_err());
    }

    #[test]
    fn an_address_beside_the_name_counts_for_tls_like_the_name() {
        for (text, security) in [
            ("postgresql://me:secret@localhost/d?hostaddr=203.0.113.5", Security::VerifyFull),
            ("postgresql://localhost/d?hostaddr=203.0.113.5&sslmode=disable", Security::Disable),
            ("postgresql://localhost,localhost/d?hostaddr=127.0.0.1,203.0.113.5", Security::VerifyFull),
            ("postgresql://h/d?hostaddr=127.0.0.1", Security::VerifyFull),
            ("postgresql://localhost/d?hostaddr=127.0.0.1", Security::Disable),
            ("postgresql:///d?hostaddr=::1", Security::Disable),
            ("postgresql:///d?hostaddr=203.0.113.5&sslmode=disable", Security::Disable),
        ] {
            assert_eq!(address(text).security, security, "{text}");
        }
        for text in [
            "postgresql:///d?hostaddr=203.0.113.5",
            "postgresql://me:secret@/d?hostaddr=203.0.113.5",
            "postgresql://:5433/d?hostaddr=203.0.113.5",
            "postgresql:///d?host=/run/x&hostaddr=203.0.113.5",
            "postgresql:///d?hostaddr=127.0.0.1&sslmode=verify-full",
        ] {
            let error = text.parse::<StoreAddress>().expect_err(text).to_string();
            assert!(error.contains("USER@NAME"), "{text}: {error}");
        }
    }

    #[test]
    fn the_password_comes_from_the_environment_or_a_file_that_nobody_else_reads() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".pgpass");
        std::fs::write(&file, "# h:*:*:*:no\nother:*:*:ann:no\nh:5432:d:ann:a\\:b\n*:*:*:*:last\n").unwrap();
        let with = |text: &str, variables: &[(&str, &Path)]| {
            let found = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| v.as_os_str().to_owned());
            let address = address(text).with_password_of(found);
            address.config.get_password().map(|word| String::from_utf8_lossy(word).into_owned())
        };
        let home = [("HOME", folder.path())];
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(with("postgresql://ann@h/d", &home), None, "others can read it");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(with("postgresql://ann@h/d", &home).as_deref(), Some("a:b"));
        assert_eq!(with("postgresql://bob@h/d", &[("PGPASSFILE", &file)]).as_deref(), Some("last"));
        assert_eq!(with("postgresql://ann:own@h/d", &home).as_deref(), Some("own"));
        assert_eq!(with("postgresql://ann@h/d", &[("PGPASSWORD", Path::new("x"))]).as_deref(), Some("x"));
    }
}
