//! The servers of a chain: nginx at the backend, and a caching proxy at the edge.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wt_lab::Host;
use wt_problem::Problem;
use wt_sys::clock::monotonic_ns;
use wt_sys::process;

/// How long a server may take to start.
pub(super) const STARTING: Duration = Duration::from_secs(10);

/// A running server.
pub(super) struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = process::signal_group(self.0.id(), 9);
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// nginx that serves the folder `www` of `place`.
pub(super) fn origin(host: &Host, place: &Path) -> Result<Server, Problem> {
    start_nginx(host, place, "backend", "location / { root www; }")
}

/// nginx that keeps what the backend has answered.
pub(super) fn nginx(host: &Host, place: &Path, backend: Ipv4Addr) -> Result<Server, Problem> {
    let proxy = format!(
        "location / {{ proxy_pass http://{backend}; proxy_cache chain; proxy_cache_key $request_uri; \
         proxy_cache_valid 200 1h; proxy_http_version 1.0; proxy_set_header Connection close; \
         add_header X-Cache $upstream_cache_status always; }}"
    );
    start_nginx(host, place, "edge", &proxy)
}

/// Varnish that keeps what the backend has answered; like nginx it opens a connection for each miss.
///
/// # Source
/// varnishd(1), vcl(7).
pub(super) fn varnish(host: &Host, place: &Path, backend: Ipv4Addr) -> Result<Server, Problem> {
    let program = find("varnishd").ok_or_else(|| {
        Problem::environment("there is no varnishd")
            .hint("sudo apt-get install varnish, or leave --proxy out for nginx")
    })?;
    let failed =
        |error: &dyn std::fmt::Display| Problem::environment(format!("can't start Varnish in the edge: {error}"));
    let folder = place.join("edge");
    let rules = format!(
        "vcl 4.1;\nbackend default {{ .host = \"{backend}\"; .port = \"80\"; }}\n\
         sub vcl_backend_fetch {{ set bereq.http.Connection = \"close\"; }}\n\
         sub vcl_backend_response {{ set beresp.ttl = 1h; }}\n\
         sub vcl_deliver {{ if (obj.hits > 0) {{ set resp.http.X-Cache = \"HIT\"; }} \
         else {{ set resp.http.X-Cache = \"MISS\"; }} }}\n"
    );
    let made = std::fs::create_dir(&folder).and_then(|()| std::fs::write(folder.join("rules.vcl"), rules));
    made.map_err(|error| failed(&error))?;
    let log = File::create(folder.join("errors")).map_err(|error| failed(&error))?;
    let mut command = Command::new(program);
    command.args(["-F", "-j", "none", "-T", "none", "-s", "malloc,500m", "-a"]).arg(format!("{}:80", host.v4));
    command.arg("-n").arg(folder.join("work")).arg("-f").arg(folder.join("rules.vcl")).stderr(log);
    run(command, host, &folder, "Varnish in the edge")
}

/// Where a daemon is: these lie in folders that ordinary users don't look into.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Starts nginx in a host and waits until it listens.
fn start_nginx(host: &Host, place: &Path, name: &str, location: &str) -> Result<Server, Problem> {
    let program = find("nginx").ok_or_else(|| {
        Problem::environment("there is no nginx, which serves the backend").hint("sudo apt-get install nginx-light")
    })?;
    let failed =
        |error: &dyn std::fmt::Display| Problem::environment(format!("can't start nginx in the {name}: {error}"));
    let folder = place.join(name);
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {name}/{kind};\n"))
        .concat();
    // Its whole path is written out where nginx would look below its prefix otherwise.
    let text = format!(
        "user root;\nworker_processes 1;\nmaster_process off;\ndaemon off;\npid {name}/pid;\nerror_log {name}/errors;\n\
         events {{ worker_connections 256; }}\nhttp {{ access_log off;\n{temporary}\
         proxy_cache_path {name}/cache levels=1 keys_zone=chain:1m max_size=500m inactive=1h;\n\
         server {{ listen {}:80; {location} }} }}\n",
        host.v4
    );
    std::fs::create_dir(&folder).and_then(|()| std::fs::write(folder.join("conf"), text)).map_err(|e| failed(&e))?;
    let mut command = Command::new(program);
    command.arg("-p").arg(place).arg("-c").arg(folder.join("conf")).arg("-e").arg(folder.join("errors"));
    command.stderr(Stdio::null());
    run(command, host, &folder, &format!("nginx in the {name}"))
}

/// Runs a server in a host and waits until it listens; `folder` has the file `errors`.
fn run(mut command: Command, host: &Host, folder: &Path, what: &str) -> Result<Server, Problem> {
    let failed = |error: &dyn std::fmt::Display| Problem::environment(format!("can't start {what}: {error}"));
    let namespace = File::open(format!("/proc/self/fd/{}", host.ns.as_fd().as_raw_fd())).map_err(|e| failed(&e))?;
    command.stdin(Stdio::null()).stdout(Stdio::null());
    // Ctrl-C at the terminal is for us: they are asked until the end of the round.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    process::die_with_parent(&mut command);
    process::in_network(&mut command, namespace);
    let mut server = Server(command.spawn().map_err(|error| failed(&error))?);
    let peer = SocketAddr::new(host.v4.into(), 80);
    let end = monotonic_ns() + STARTING.as_nanos() as u64;
    loop {
        if host.run(|| TcpStream::connect_timeout(&peer, STARTING)).map_err(|error| failed(&error))?.is_ok() {
            return Ok(server);
        }
        let ended = server.0.try_wait().map_err(|error| failed(&error))?;
        if ended.is_some() || monotonic_ns() > end {
            let errors = std::fs::read_to_string(folder.join("errors")).unwrap_or_default();
            let last = errors.lines().last().unwrap_or("it doesn't listen").to_owned();
            return Err(failed(&last));
        }
        let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_millis(10)));
    }
}
