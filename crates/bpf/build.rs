//! Compiles the program that assigns connections for the kernel, where clang is there.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/traffic.c");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    println!("cargo:rerun-if-changed={}", source.display());
    println!("cargo:rerun-if-changed={}", source.with_extension("h").display());
    for beside in ["notes.h", "responses.h"] {
        println!("cargo:rerun-if-changed={}", source.with_file_name(beside).display());
    }
    println!("cargo:rerun-if-env-changed=WINDTUNNEL_CLANG");
    println!("cargo:rerun-if-env-changed=PATH");
    let clang = std::env::var("WINDTUNNEL_CLANG").unwrap_or_else(|_| "clang".to_owned());
    let mut constants = String::new();
    for (name, what, options) in [
        ("OBJECT", "The program for the kernel; none where clang was missing.", [].as_slice()),
        (
            "IDLE_OBJECT",
            "The same with idle times and a walk over what is open, which takes BTF and CAP_PERFMON.",
            &["-g", "-DIDLE"],
        ),
        (
            "RESPONSES_OBJECT",
            "The same with responses timed by themselves, which takes Linux 6.15.",
            &["-g", "-DIDLE", "-DRESPONSES"],
        ),
    ] {
        let object = out.join(format!("{}.bpf.o", name.to_lowercase()));
        let included = match compile(&clang, &source, &object, options) {
            Ok(()) => format!("Some(include_bytes!({object:?}))"),
            Err(why) => {
                println!("cargo:warning=no experiments on a server's connections in this build: {why}");
                "None".to_owned()
            }
        };
        constants.push_str(&format!("/// {what}\npub(super) const {name}: Option<&[u8]> = {included};\n"));
    }
    let file = out.join("traffic_object.rs");
    if let Err(error) = std::fs::write(&file, constants) {
        println!("cargo:warning=can't write {}: {error}", file.display());
        std::process::exit(1);
    }
}

/// The CPU's version 3 is of Linux 5.1. Nothing in it tells in which folder it was compiled.
fn compile(clang: &str, source: &Path, object: &Path, options: &[&str]) -> Result<(), String> {
    let endian = std::env::var("CARGO_CFG_TARGET_ENDIAN").unwrap_or_default();
    let target = if endian == "big" { "bpfeb" } else { "bpfel" };
    let mut command = Command::new(clang);
    command.args(["-O2", "-target", target, "-mcpu=v3", "-Wall", "-Wextra", "-Werror", "-c"]).args(options);
    command.arg(concat!("-ffile-prefix-map=", env!("CARGO_MANIFEST_DIR"), "=."));
    command.arg(source).arg("-o").arg(object);
    match command.output() {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr).lines().next().unwrap_or("no reason given").to_owned();
            Err(format!("{clang} can't compile {}: {said}", source.display()))
        }
        Err(error) => Err(format!("{clang} doesn't run ({error}); install clang, for example: apt-get install clang")),
    }
}
