use super::*;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

/// A server without SIZE that takes one upload, or brings 50 kB, and says this of it; afterwards, the commands that it heard.
fn server(word: &'static str) -> (SocketAddr, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let served = std::thread::spawn(move || {
        let data = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = data.local_addr().unwrap().port();
        let mut control = listener.accept().unwrap().0;
        let lines = BufReader::new(control.try_clone().unwrap()).lines();
        let mut heard = Vec::new();
        let answer = |control: &mut TcpStream, text: &str| write!(control, "{text}\r\n").unwrap();
        answer(&mut control, "220 ready");
        for line in lines.map_while(Result::ok) {
            let command = line.split(' ').next().unwrap_or_default().to_owned();
            match command.as_str() {
                "USER" => answer(&mut control, "230 welcome"),
                "EPSV" => answer(&mut control, &format!("229 here (|||{port}|)")),
                "STOR" => {
                    answer(&mut control, "150 go on");
                    let mut stored = Vec::new();
                    let _ = data.accept().unwrap().0.read_to_end(&mut stored);
                    answer(&mut control, word);
                }
                "SIZE" => answer(&mut control, "500 what"),
                "RETR" => {
                    answer(&mut control, "150 it comes");
                    // Who has enough leaves.
                    let _ = data.accept().unwrap().0.write_all(&[7; 50_000]);
                    answer(&mut control, word);
                }
                "DELE" => answer(&mut control, "250 deleted"),
                "QUIT" => answer(&mut control, "221 bye"),
                _ => answer(&mut control, "200 well"),
            }
            heard.push(command);
        }
        heard
    });
    (address, served)
}

/// Does something with a few bytes; what came of it, and what the server heard.
fn tried<T>(word: &'static str, wanted: u64, act: impl FnOnce(&Fetch<'_>) -> T) -> (T, Vec<String>) {
    let (peer, served) = server(word);
    let url: Url = format!("ftp://{peer}/folder/file").parse().unwrap();
    let (settings, tls) = (Settings::new(), Tls::nobody().unwrap());
    let (amount, deadline) = (Amount::Size(Bytes(wanted)), Duration::from_secs(20));
    let job = Fetch { url: &url, peer, settings: &settings, amount, deadline, tls: &tls };
    (act(&job), served.join().unwrap())
}

/// Uploads.
fn brought(word: &'static str) -> (Result<FetchOutcome, FetchError>, Vec<String>) {
    tried(word, 10_000, |job| bring(job, &Cancel::new()))
}

#[test]
fn of_a_file_whose_length_is_unknown_the_server_says_whether_it_was_all() {
    let fetched = |word, wanted| {
        let fetch = |job: &Fetch<'_>| fetch(job, &mut Reference::default(), &Cancel::new()).map(|done| done.report);
        let (report, _) = tried(word, wanted, fetch);
        report.unwrap()
    };
    assert_eq!(fetched("226 sent", 90_000).finish, Finish::Done);
    let cut = fetched("426 aborted: disk error", 90_000);
    assert!(matches!(&cut.finish, Finish::PeerLeft(why) if why.contains("disk error")), "{cut:?}");
    assert_eq!(cut.bytes, 50_000);
    assert_eq!(fetched("426 you left", 20_000).finish, Finish::Done, "we have what we wanted");
}

#[test]
fn an_upload_is_deleted_whatever_the_server_says_of_it() {
    let (done, heard) = brought("226 stored");
    assert_eq!(done.unwrap().report.finish, Finish::Done);
    assert!(heard.ends_with(&["STOR".to_owned(), "DELE".to_owned(), "QUIT".to_owned()]), "{heard:?}");
    let (full, heard) = brought("452 the disk is full");
    assert!(matches!(&full, Err(FetchError::Refused { why, .. }) if why.contains("452")), "{full:?}");
    assert!(heard.ends_with(&["STOR".to_owned(), "DELE".to_owned(), "QUIT".to_owned()]), "{heard:?}");
}
