use super::*;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

/// A server that takes one upload and says this of it; afterwards, the commands that it heard.
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

/// Uploads a few bytes; what came of it, and what the server heard.
fn brought(word: &'static str) -> (Result<Fetched, FetchError>, Vec<String>) {
    let (peer, served) = server(word);
    let url: Url = format!("ftp://{peer}/folder/file").parse().unwrap();
    let (settings, tls) = (Settings::new(), Tls::nobody().unwrap());
    let (amount, deadline) = (Amount::Size(Bytes(10_000)), Duration::from_secs(20));
    let job = Fetch { url: &url, peer, settings: &settings, amount, deadline, tls: &tls };
    let brought = bring(&job, &Cancel::new());
    (brought, served.join().unwrap())
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
