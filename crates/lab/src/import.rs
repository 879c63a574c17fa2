//! Traces of mahimahi as a scenario.

use crate::Scenario;
use crate::scenario::ScenarioError;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wt_link::{MAX_TRACE_BYTES, Trace, TraceError};
use wt_units::format_duration;

/// What is asked: two traces of delivery opportunities, and what they leave open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportRequest {
    /// Trace towards the client.
    pub down: PathBuf,
    /// Trace towards the server.
    pub up: PathBuf,
    /// Propagation, one way, as mm-delay has it.
    pub delay: Duration,
    /// Bound of each queue, in packets.
    pub queue_packets: u32,
    /// The scenario's file, if it will have one: traces beside it are named relative to it. Nothing is written.
    pub output: Option<PathBuf>,
}

/// A scenario made of traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedScenario {
    /// The scenario as TOML.
    pub text: String,
    /// Opportunities towards the client.
    pub down: usize,
    /// Opportunities towards the server.
    pub up: usize,
}

/// Why traces can't be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// It can't be read.
    #[error("{}: {source}", .file.display())]
    Unreadable {
        /// The trace.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is a folder, a device or the like.
    #[error("{}: is not a file", .file.display())]
    NotAFile {
        /// The trace.
        file: PathBuf,
    },
    /// It is too long to be read to its end.
    #[error("{}: has {bytes} bytes; allowed are {MAX_TRACE_BYTES}", .file.display())]
    TooLarge {
        /// The trace.
        file: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// It is no trace.
    #[error("{}: {source}", .file.display())]
    Trace {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        source: TraceError,
    },
    /// A scenario can't name it.
    #[error("{}: its name isn't UTF-8", .file.display())]
    Name {
        /// The trace.
        file: PathBuf,
    },
    /// The scenario's folder isn't there.
    #[error("can't write into {}: {source}", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What was made is no scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

/// Makes a scenario of traces of mahimahi.
///
/// # Errors
/// [`ImportError`], which names the trace and its line.
pub fn import_mahimahi(request: &ImportRequest) -> Result<ImportedScenario, ImportError> {
    let (down, up) = (read(&request.down)?, read(&request.up)?);
    let text = scenario(request)?;
    let name = request.output.as_ref().map_or_else(|| "imported.toml".to_owned(), |file| file.display().to_string());
    // What we write is what we read.
    Scenario::parse(&name, &text)?;
    Ok(ImportedScenario { text, down: down.len(), up: up.len() })
}

/// Reads a trace; one that is too large isn't read to its end.
fn read(path: &Path) -> Result<Trace, ImportError> {
    let file = || path.to_owned();
    let unreadable = |source| ImportError::Unreadable { file: file(), source };
    let known = path.metadata().map_err(unreadable)?;
    if !known.is_file() {
        return Err(ImportError::NotAFile { file: file() });
    }
    if known.len() > MAX_TRACE_BYTES as u64 {
        return Err(ImportError::TooLarge { file: file(), bytes: known.len() });
    }
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(path).map_err(unreadable)?;
    opened.take(MAX_TRACE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    Trace::parse(&bytes).map_err(|source| ImportError::Trace { file: file(), source })
}

fn scenario(request: &ImportRequest) -> Result<String, ImportError> {
    let folder = request.output.as_deref().and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    let mut text = format!(
        "title = \"Imported traces of mahimahi\"\nsource = {}\n\n[[link]]\nname = \"trace\"\nmtu = 1500\n",
        quoted(&format!("{} and {}", file_name(&request.down), file_name(&request.up))),
    );
    for (name, file) in [("down", &request.down), ("up", &request.up)] {
        let place = relative(file, folder)?;
        text += &format!(
            "\n[link.{name}]\ndelay = \"{}\"\nqueue_packets = {}\ntrace = {{ file = {} }}\n",
            format_duration(request.delay),
            request.queue_packets,
            quoted(&place)
        );
    }
    Ok(text)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The trace as the scenario names it: relative to the scenario's folder where both lie in one, or else from the root.
fn relative(file: &Path, folder: Option<&Path>) -> Result<String, ImportError> {
    let unreadable = |source| ImportError::Unreadable { file: file.to_owned(), source };
    let whole = file.canonicalize().map_err(unreadable)?;
    let folder = folder.unwrap_or(Path::new("."));
    let missing = |source| ImportError::Folder { folder: folder.to_owned(), source };
    let folder = folder.canonicalize().map_err(missing)?;
    let place = whole.strip_prefix(&folder).unwrap_or(&whole);
    place.to_str().map(str::to_owned).ok_or_else(|| ImportError::Name { file: file.to_owned() })
}

/// As TOML writes a string; JSON's escapes are among its own.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_become_a_scenario_that_names_them_relative_to_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).unwrap();
            folder.path().join(name)
        };
        let request = ImportRequest {
            down: file("a.down", "1\n2\n5\n"),
            up: file("a.up", "3\n"),
            delay: Duration::from_millis(20),
            queue_packets: 100,
            output: Some(folder.path().join("a.toml")),
        };
        let made = import_mahimahi(&request).unwrap();
        assert_eq!((made.down, made.up), (3, 1));
        assert!(made.text.contains("trace = { file = \"a.down\" }"), "{}", made.text);
        let bad = ImportRequest { up: file("b.up", "3\n2\n"), ..request.clone() };
        assert!(matches!(import_mahimahi(&bad), Err(ImportError::Trace { source: TraceError::OutOfOrder { .. }, .. })));
        let nowhere = ImportRequest { output: Some(folder.path().join("none/a.toml")), ..request.clone() };
        assert!(matches!(import_mahimahi(&nowhere), Err(ImportError::Folder { .. })));
        let folder_as_trace = ImportRequest { down: folder.path().to_owned(), ..request };
        assert!(matches!(import_mahimahi(&folder_as_trace), Err(ImportError::NotAFile { .. })));
    }
}
