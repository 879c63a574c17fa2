use super::*;
use proptest::prelude::*;

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

#[test]
fn addresses_are_taken_apart() {
    for (text, scheme, host, port, path) in [
        ("http://example.org", Scheme::Http, "example.org", 80, "/"),
        ("HTTPS://example.org:8443/a/b?c=d#e", Scheme::Https, "example.org", 8443, "/a/b?c=d"),
        ("http://[2001:db8::1]:81?x", Scheme::Http, "2001:db8::1", 81, "/?x"),
        ("http://[fe80::1%eth0]/x", Scheme::Http, "fe80::1%eth0", 80, "/x"),
        ("iperf3://192.0.2.1", Scheme::Iperf3, "192.0.2.1", 5201, "/"),
        ("ftp://host/pub/file.iso", Scheme::Ftp, "host", 21, "/pub/file.iso"),
    ] {
        let expected = Url { scheme, host: host.to_owned(), port, path: path.to_owned(), login: None };
        assert_eq!(url(text), expected, "{text}");
    }
    let with_user = url("ftp://me:p%40ss@host/a%20b");
    let login = Login { user: "me".to_owned(), password: "p@ss".to_owned() };
    assert_eq!(with_user.login, Some(login));
    assert_eq!(with_user.ftp_path().as_deref(), Some("a b"));
    assert_eq!(with_user.to_string(), "ftp://host/a%20b");
}

#[test]
fn what_is_no_address_says_which_part() {
    for (text, wanted) in [
        ("example.org", "write http://"),
        ("gopher://x", "write http://"),
        ("http://", "host"),
        ("http://a b/", "blank"),
        ("http://x:0/", "port"),
        ("http://x:99999/", "port"),
        ("http://2001:db8::1/", "without [ ]"),
        ("http://[::1/", "without a ]"),
        ("http://[host]/", "no IPv6"),
        ("http://bücher.example/", "xn--"),
        ("http://x/bücher", "%XX"),
        ("http://u:p@x/", "only taken for FTP"),
        ("ftp://u%zz@x/", "no %XX"),
        ("iperf3://x/file", "means nothing"),
    ] {
        let error = text.parse::<Url>().unwrap_err().to_string();
        assert!(error.contains(wanted), "{text}: {error}");
    }
}

#[test]
fn errors_show_no_password_and_nothing_that_a_terminal_obeys() {
    let long = format!("ftp://me:{}@ho st/", "secret".repeat(100));
    for text in [
        "ftp://me:secret%0a@host\u{1b}[2J/",
        "me:secret@host",
        "wt:/secret@host",
        "wt:secret@host/",
        "gopher://me:secret@host",
        &long,
    ] {
        let error = text.parse::<Url>().unwrap_err().to_string();
        assert!(!error.contains("secret") && !error.contains('\u{1b}'), "{error}");
    }
    let error = "me:secret@host".parse::<HostPort>().unwrap_err().to_string();
    assert!(!error.contains("secret"), "{error}");
}

#[test]
fn neither_user_nor_password_nor_key_is_shown() {
    for text in ["ftp://secret:secret@host/", "ftps://secret@host/x", "wt://secret@host"] {
        let url = url(text);
        let shown = format!("{url} {url:?} {}", url.authority());
        assert!(!shown.contains("secret") && url.login.is_some(), "{shown}");
    }
}

#[test]
fn a_web_server_needs_no_scheme_and_takes_no_other_one() {
    for (text, wanted) in [
        ("example.org", "http://example.org/"),
        ("example.org:8080/a?b#c", "http://example.org:8080/a?b"),
        ("HTTPS://example.org", "https://example.org/"),
        ("2001:db8::1", "http://[2001:db8::1]/"),
        ("[2001:db8::1]:81", "http://[2001:db8::1]:81/"),
    ] {
        assert_eq!(Url::of_web(text).unwrap().to_string(), wanted);
    }
    for text in ["", "ftp://x", "wt://key@x", "a:b:c", "http://u@x/", "u@x", "http://x/a b", "http://"] {
        assert!(Url::of_web(text).is_err(), "{text}");
    }
}

#[test]
fn ftp_commands_cannot_be_smuggled_in() {
    assert_eq!(url("ftp://host/a%0d%0aDELE%20b").ftp_path(), None);
    assert!("ftp://a%0d%0aDELE:x@host/".parse::<Url>().is_err());
}

#[test]
fn redirections_lead_where_browsers_go_too() {
    let here = url("https://example.org:8443/a/b?q=1");
    for (location, wanted) in [
        ("https://other.example/x", "https://other.example/x"),
        ("//other.example/x", "https://other.example/x"),
        ("/x", "https://example.org:8443/x"),
        ("x", "https://example.org:8443/a/x"),
        ("?y", "https://example.org:8443/a/b?y"),
        ("../x?../y", "https://example.org:8443/x?../y"),
        ("./x/../y/.", "https://example.org:8443/a/y/"),
        ("../../..", "https://example.org:8443/"),
        ("/x//./..z/", "https://example.org:8443/x//..z/"),
        ("https://other.example/x/../", "https://other.example/"),
    ] {
        assert_eq!(here.join(location).unwrap().to_string(), wanted);
    }
    for location in ["http://example.org/", "ftp://example.org/", "file:///etc/passwd", "/a b"] {
        assert!(here.join(location).is_err(), "{location}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic_and_what_is_taken_reads_back(text in "(http|https|ftp|iperf3)://\\PC{0,40}") {
        if let Ok(url) = text.parse::<Url>() {
            let again: Url = url.to_string().parse().unwrap();
            prop_assert_eq!((again.host, again.port, again.path), (url.host.clone(), url.port, url.path.clone()));
            let _ = url.join(&text);
            let _ = url.ftp_path();
        }
    }

    #[test]
    fn no_location_makes_it_panic(location in "\\PC{0,60}") {
        let _ = url("http://x/a/b").join(&location);
    }
}
