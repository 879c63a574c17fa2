use super::{FileChange, place_of, put_back, put_in_place};
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
