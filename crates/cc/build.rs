//! Compiles each congestion control of `bpf/` twice: natively, and for the kernel where clang is there.

use std::path::{Path, PathBuf};
use std::process::Command;

const NAMES: [&str; 8] = ["newreno", "hd", "chd", "cdg", "vegas", "htcp", "illinois", "westwood"];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    println!("cargo:rerun-if-changed={}", root.display());
    println!("cargo:rerun-if-env-changed=WINDTUNNEL_CLANG");
    println!("cargo:rerun-if-env-changed=PATH");
    let mut native = cc::Build::new();
    native.define("WT_NATIVE", None).opt_level(2).warnings(true).extra_warnings(true);
    for name in NAMES {
        native.file(root.join(format!("{name}.c")));
    }
    native.compile("wt_congestion_controls");

    let clang = std::env::var("WINDTUNNEL_CLANG").unwrap_or_else(|_| "clang".to_owned());
    let mut table = String::from("/// The objects for the kernel, by name; none where clang was missing.\n");
    table.push_str("pub(crate) const OBJECTS: &[(&str, &[u8])] = &[\n");
    for name in NAMES {
        let object = out.join(format!("{name}.bpf.o"));
        match compile(&clang, &root.join(format!("{name}.c")), &object) {
            Ok(()) => table.push_str(&format!("    ({name:?}, include_bytes!({object:?})),\n")),
            Err(why) => {
                println!("cargo:warning=no BPF congestion controls in this build: {why}");
                break;
            }
        }
    }
    table.push_str("];\n");
    let table_file = out.join("objects.rs");
    if let Err(error) = std::fs::write(&table_file, table) {
        println!("cargo:warning=can't write {}: {error}", table_file.display());
        std::process::exit(1);
    }
}

/// Compiles one for the kernel. The CPU's version 3 is of Linux 5.1; the debug information carries the BTF. Nothing in it tells in which
/// folder it was compiled.
fn compile(clang: &str, source: &Path, object: &Path) -> Result<(), String> {
    let endian = std::env::var("CARGO_CFG_TARGET_ENDIAN").unwrap_or_default();
    let target = if endian == "big" { "bpfeb" } else { "bpfel" };
    let mut command = Command::new(clang);
    command.args(["-O2", "-g", "-target", target, "-mcpu=v3", "-Wall", "-Wextra", "-Werror", "-c"]);
    command.arg(concat!("-ffile-prefix-map=", env!("CARGO_MANIFEST_DIR"), "=."));
    command.arg(source).arg("-o").arg(object);
    match command.output() {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(format!(
            "{clang} can't compile {}: {}",
            source.display(),
            String::from_utf8_lossy(&done.stderr).lines().next().unwrap_or("no reason given")
        )),
        Err(error) => Err(format!("{clang} doesn't run ({error}); install clang, for example: apt-get install clang")),
    }
}
