include!(concat!(env!("OUT_DIR"), "/objects.rs"));
