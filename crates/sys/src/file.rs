//! Files that people name, which may be a device without an end.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The longest file of settings, certificates or keys that is read, bytes.
pub const LONGEST: u64 = 1 << 20;

/// What is in a file of [`LONGEST`] bytes at most.
///
/// # Errors
/// Those of reading; `InvalidData` for a longer one, of which no more is read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is longer than 1 MiB"));
    }
    Ok(bytes)
}

/// The text in a file of [`LONGEST`] bytes at most.
///
/// # Errors
/// As [`read`]; `InvalidData` for what isn't UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read(path)?);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_read_to_its_limit() {
        let error = read_text(Path::new("/dev/zero")).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::InvalidData, "it is longer than 1 MiB"));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, vec![b'x'; LONGEST as usize]).unwrap();
        assert_eq!(read_text(&file).unwrap().len() as u64, LONGEST);
        std::fs::write(&file, [0xff]).unwrap();
        assert!(read(&file).is_ok() && read_text(&file).is_err());
    }
}
