use super::{FileChange, place_of, put_back, put_in_place, without_ours};
use crate::hex::to_hex;
use crate::system::RealSystem;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::os::unix::net::UnixListener;

#[test]
fn only_an_ordinary_file_or_nothing_is_written_over_and_what_came_since_stays() {
    let folder = tempfile::tempdir().unwrap();
    let mut system = RealSystem::open(None).unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("file"), "old").unwrap();
    let _device = UnixListener::bind(at("device")).unwrap();
    for (name, leads_to) in [("good", "file"), ("masked", "device"), ("dangling", "nowhere"), ("folder", ".")] {
        symlink(at(leads_to), at(name)).unwrap();
    }
    let real = |name: &str| Some(std::fs::canonicalize(folder.path()).unwrap().join(name));
    for (name, place) in [
        ("good", real("file")),
        ("new", Some(at("new"))),
        ("masked", None),
        ("dangling", None),
        ("folder", None),
        ("device", None),
    ] {
        assert_eq!(place_of(&mut system, &at(name)).unwrap(), place, "{name}");
        let file = FileChange { path: at(name), old: None, new: Some(to_hex(b"new")), mode: 0o644 };
        assert_eq!(put_in_place(&mut system, std::slice::from_ref(&file)).is_ok(), place.is_some(), "{name}");
        if place.is_none() {
            let notes = put_back(&mut system, &[file]).unwrap();
            assert!(notes[0].contains("isn't a file any more"), "{notes:?}");
        }
    }
    assert!(std::fs::metadata(at("masked")).unwrap().file_type().is_socket());
    assert!(["masked", "dangling", "folder"].iter().all(|name| at(name).is_symlink()));
    assert_eq!(std::fs::read(at("file")).unwrap(), b"new");
}

#[test]
fn of_the_drop_in_the_lines_that_still_have_the_changes_value_go_and_no_others() {
    let old = "net.ipv4.tcp_rmem = 1 2 3\n";
    let new = "net.ipv4.tcp_rmem = 4 5 6\nnet.ipv4.tcp_sack = 0\nnet.ipv4.ip_default_ttl = 100\n";
    let hex = |text: &str| Some(to_hex(text.as_bytes()));
    let file =
        FileChange { path: "/etc/sysctl.d/90-windtunnel.conf".into(), old: hex(old), new: hex(new), mode: 0o644 };
    let back = |now: &str| without_ours(hex(now).as_deref(), &file);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    for (now, left, theirs) in [
        (new.to_owned() + "kernel.x = 1\n", old.to_owned() + "kernel.x = 1\n", &[][..]),
        (
            new.replace("= 100", "= 200"),
            old.to_owned() + "net.ipv4.ip_default_ttl = 200\n",
            &["net.ipv4.ip_default_ttl"],
        ),
        // As ours, in another form.
        (new.replace("4 5 6", "4\t5  6") + "kernel.x=1\n", old.to_owned() + "kernel.x=1\n", &[]),
        // A line that somebody took out doesn't come back as it was before the change.
        ("net.ipv4.tcp_sack=0\nkernel.x=1\n".to_owned(), "kernel.x=1\n".to_owned(), &[]),
    ] {
        assert_eq!(back(&now), (hex(&left), names(theirs)), "{now}");
    }
    assert_eq!(back("net.ipv4.tcp_sack = 0\n"), (None, Vec::new()));
}
