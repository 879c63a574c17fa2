//! A real browser loads a page through the lab.

use crate::common::{binary, ran, run, windtunnel};
use serde_json::Value;

/// Serves a page with two parts.
const NGINX: &str = "mkdir -p www; head -c 20000 /dev/zero | tr '\\0' x > www/a.js; head -c 50000 /dev/zero | tr '\\0' x > www/b.css
    echo '<html><head><link rel=stylesheet href=b.css></head><body><script src=a.js></script></body></html>' > www/index.html
    echo \"user root; master_process off; pid $PWD/pid; error_log $PWD/errors; events {} http { access_log off; \
    types { text/html html; text/css css; text/javascript js; } client_body_temp_path $PWD/1; proxy_temp_path $PWD/2; \
    fastcgi_temp_path $PWD/3; uwsgi_temp_path $PWD/4; scgi_temp_path $PWD/5; server { listen 8080; root $PWD/www; } }\" > conf
    ip netns exec server nginx -c $PWD/conf 2> started || exit 78";

#[test]
fn a_browser_tells_first_byte_load_and_every_request_and_the_window_shows_in_it() {
    let home = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let script = format!(
        "{NGINX}; $WT page http://server:8080/ --browser -n 2 --svg waterfall.svg --json; code=$?; cat waterfall.svg; \
         kill $(cat pid); exit $code"
    );
    let mut command = windtunnel(home.path());
    command.env("WT", binary()).current_dir(home.path()).args(["lab", "run", "cdn-chain", "--", "sh", "-c", &script]);
    let ran = ran(command.output().unwrap_or_else(|error| panic!("{error}")));
    assert_ne!(ran.code, 3, "this test needs chromium: {}", ran.err);
    let (text, picture) = ran.out.split_once("\n}\n").unwrap_or_else(|| panic!("{}{}", ran.out, ran.err));
    let report: Value = serde_json::from_str(&format!("{text}\n}}")).unwrap_or_else(|error| panic!("{error}: {text}"));
    let runs = report["runs"].as_array().unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(runs.len(), 2, "{report:#}");
    for one in runs {
        let ms = |name: &str| one[name].as_f64().unwrap_or_else(|| panic!("{name}: {one:#}"));
        // RTT 100 ms: an answer at least, since a browser connects before it counts; then one more round trip for the parts.
        assert!(ms("first_byte_ms") >= 99.0, "{one:#}");
        assert!(ms("load_ms") >= ms("first_byte_ms") + 95.0, "{one:#}");
        assert!(ms("dom_content_loaded_ms") <= ms("load_ms") + 1.0, "{one:#}");
        let sizes: Vec<f64> =
            one["resources"].as_array().into_iter().flatten().filter_map(|r| r["bytes"].as_f64()).collect();
        assert!(sizes.iter().any(|size| (20_000.0..21_000.0).contains(size)), "{one:#}");
        assert!(sizes.iter().any(|size| (50_000.0..51_000.0).contains(size)), "{one:#}");
    }
    assert!(picture.contains("<svg ") && picture.contains("a.js") && picture.contains("b.css"), "{picture}");
}

#[test]
fn two_first_windows_are_loaded_in_rounds_and_the_routes_are_left_as_they_were() {
    let home = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let script = format!(
        "{NGINX}; ip netns exec server ip route > before; \
         $WT page http://server:8080/ --compare initcwnd=3,30 -n 2 --html p.html --json; code=$?; \
         $WT report last > report; echo $? >> report; $WT report last --json > report.json; $WT tune --resume last 2> resumed; \
         ip netns exec server ip route > after; kill $(cat pid); cmp before after || exit 99; exit $code"
    );
    let mut command = windtunnel(home.path());
    command.env("WT", binary()).current_dir(home.path()).args(["lab", "run", "cdn-chain", "--", "sh", "-c", &script]);
    let ran = ran(command.output().unwrap_or_else(|error| panic!("{error}")));
    assert_ne!(ran.code, 3, "this test needs chromium: {}", ran.err);
    assert_eq!(ran.code, 1, "two rounds show nothing: {}{}", ran.out, ran.err);
    let report: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.out));
    let compare = &report["compare"];
    assert_eq!(report["runs"].as_array().map(Vec::len), Some(4), "{report:#}");
    assert_eq!(
        (&compare["compared"], &compare["rounds"]),
        (&Value::from("initcwnd=3,30"), &Value::from(2)),
        "{compare:#}"
    );
    assert_eq!(compare["arms"][1]["load_ms"].as_array().map(Vec::len), Some(2), "{compare:#}");
    assert!(
        compare["text"].as_str().is_some_and(|text| text.starts_with("Nothing can be shown before")),
        "{compare:#}"
    );
    let page = std::fs::read_to_string(home.path().join("p.html")).unwrap_or_else(|error| panic!("{error}"));
    assert!(["initcwnd=3", "initcwnd=30", "a.js", "<svg"].iter().all(|part| page.contains(part)), "{page}");
    // Both were filmed; at the end of the longer one each has a picture.
    let last: Vec<&str> = page.lines().filter(|line| line.contains("<img src=\"data:image/jpeg;base64,/9j/")).collect();
    assert!(last.len() == 2 && last.iter().all(|row| row.contains("ms\"></td></tr>")), "{page}");
    // The journal has all four loads, and the report is made of them.
    let read = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap_or_else(|error| panic!("{error}"));
    let (told, resumed) = (read("report"), read("resumed"));
    assert!(told.contains("2 rounds") && told.ends_with("1\n"), "{told}");
    assert!(told.contains("windtunnel page http://server:8080/ --compare initcwnd=3,30"), "{told}");
    // What it says to do can show something, in a lab as this one, and its path is the lab's.
    let again =
        "Do: windtunnel lab run cdn-chain -- windtunnel page http://server:8080/ --compare initcwnd=3,30 --runs ";
    let kept: Value = serde_json::from_str(&read("report.json")).unwrap_or_else(|error| panic!("{error}"));
    let runs = kept["verdict"]["answer"]["lines"][2].as_str().and_then(|line| line.strip_prefix(again));
    assert!(runs.and_then(|runs| runs.parse::<u32>().ok()) >= Some(10), "{kept:#}");
    assert_eq!(
        (&kept["current"]["initcwnd"], &kept["path"]["pmtu"]),
        (&Value::from(3), &Value::from(1500)),
        "{kept:#}"
    );
    assert!(kept["path"]["rtt_us"].as_u64() >= Some(99_000), "{kept:#}");
    for arm in [0, 1] {
        let (told, kept) = (&compare["arms"][arm]["median_ms"], &kept["arms"][arm]["figure"]);
        let (told, kept) = (told.as_f64().unwrap_or(0.0), kept.as_f64().unwrap_or(0.0) * 1e3);
        assert!((told - kept).abs() < 0.01, "{told} {kept}");
    }
    assert!(report["id"].as_str().is_some_and(|id| told.contains(id)), "{told}");
    assert!(resumed.contains("a comparison of page loads in a browser"), "{resumed}");
}

#[test]
fn a_first_window_is_compared_in_a_lab_only() {
    for (pair, part) in
        [("initcwnd=3,10", "windtunnel lab run"), ("initcwnd=3", "initcwnd=3,10"), ("initcwnd=0,10", "1 to 1000")]
    {
        let refused = run(&["page", "http://192.0.2.1/", "--compare", pair, "--browser", "/nonexistent"]);
        assert_eq!(refused.code, 2, "{pair}: {}", refused.err);
        assert!(refused.err.contains(part), "{pair}: {}", refused.err);
    }
}

#[test]
fn what_is_no_page_is_usage_and_what_is_not_there_is_told() {
    for args in [&["page", "ftp://x/"][..], &["page", "http://x/ y"], &["page", "http://x/", "--runs", "0"]] {
        assert_eq!(run(args).code, 2, "{args:?}");
    }
    let nobody = run(&["page", "http://x/", "--browser", "/nonexistent"]);
    assert_eq!(nobody.code, 3, "{}", nobody.err);
    assert!(nobody.err.contains("there is no program /nonexistent"), "{}", nobody.err);
}

/// Serves what is below its folder on 127.0.0.1, and says first on which port. What is late is answered once the worker has what it fetches.
const SERVER: &str = "import http.server, threading
fetched = threading.Event()
class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self):
        if self.path == '/late.js': fetched.wait(30)
        super().do_GET()
        if self.path == '/a.bin?worker': fetched.set()
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()";

#[test]
fn frames_of_other_sites_and_workers_count_and_a_dialog_keeps_no_page_from_loading() {
    use std::io::BufRead as _;
    let home = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let write = |name: &str, text: &[u8]| {
        std::fs::write(home.path().join(name), text).unwrap_or_else(|error| panic!("{name}: {error}"));
    };
    let mut server = std::process::Command::new("python3")
        .args(["-c", SERVER])
        .current_dir(home.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("python3: {error}"));
    let mut lines = std::io::BufReader::new(server.stdout.take().unwrap_or_else(|| panic!("its lines"))).lines();
    let port = lines.next().and_then(Result::ok).unwrap_or_default();
    write("late.js", b"var y = 1");
    write("a.bin", &[b'x'; 100_000]);
    write("b.js", b"var x = 1");
    write("wk.js", b"importScripts('/b.js?worker'); fetch('/a.bin?worker')");
    write(
        "frame.html",
        b"<html><body><img src='/a.bin?frame'><script src='/b.js?frame'></script><img src='/none?frame'></body></html>",
    );
    let page = format!(
        "<html><script>alert(1)</script><body><iframe src='http://localhost:{port}/frame.html'></iframe>\
         <script>new Worker('/wk.js')</script><script async src='/late.js'></script><script>onload = () => confirm('x')</script></body></html>"
    );
    write("index.html", page.as_bytes());
    let ran = ran(windtunnel(home.path())
        .current_dir(home.path())
        .args(["page", &format!("http://127.0.0.1:{port}/"), "--runs", "1", "--json", "--svg", "index.html/x.svg"])
        .output()
        .unwrap_or_else(|error| panic!("{error}")));
    let _ = server.kill();
    let _ = server.wait();
    assert!(!ran.err.contains("Chromium"), "this test needs chromium: {}", ran.err);
    let report: Value =
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {} {}", ran.out, ran.err));
    let load = &report["runs"][0];
    let of = |end: &str| {
        let all = load["resources"].as_array().into_iter().flatten();
        let found: Vec<&Value> = all.filter(|one| one["url"].as_str().is_some_and(|url| url.ends_with(end))).collect();
        assert_eq!(found.len(), 1, "{end}: {load:#}");
        found[0].clone()
    };
    // What the load event waits for is there whole.
    for (end, least) in [("/frame.html", 100.0), ("a.bin?frame", 100_000.0), ("b.js?frame", 9.0)] {
        let one = of(end);
        assert!(one["bytes"].as_f64() >= Some(least) && one["end_ms"].is_number(), "{one:#}");
    }
    assert_eq!((&of("none?frame")["status"], &load["failed"]), (&Value::from(404), &Value::from(1)), "{load:#}");
    for end in ["/wk.js", "b.js?worker", "a.bin?worker"] {
        assert!(of(end)["start_ms"].is_number(), "{load:#}");
    }
    // Nothing of it is in the journal.
    assert!(ran.code == 3 && ran.err.contains("without --compare nothing is kept"), "{} {}", ran.code, ran.err);
}
