//! Embeds the built page, if there is one: `ui/dist`, where the page's own build leaves every file compressed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let dist = root.join("../../ui/dist");
    println!("cargo::rerun-if-changed=build.rs");
    // The folder is in the repository, so that cargo sees when something appears in it.
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut files = Vec::new();
    collect(&dist, "", &mut files);
    files.sort();
    let mut code = String::from("static FILES: &[File] = &[\n");
    for (name, file) in files {
        let _ = writeln!(code, "    File {{ path: {name:?}, gzip: include_bytes!({file:?}) }},");
    }
    code.push_str("];\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("page.rs");
    if let Err(error) = std::fs::write(&out, code) {
        println!("cargo::error=can't write {}: {error}", out.display());
    }
}

/// Every compressed file below a folder, by its name without the `.gz`.
fn collect(folder: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if path.is_dir() {
            collect(&path, &format!("{prefix}{name}/"), files);
        } else if let (Some(name), Ok(path)) = (name.strip_suffix(".gz"), path.canonicalize()) {
            files.push((format!("{prefix}{name}"), path));
        }
    }
}
