//! A server of one's own in the lab.

use crate::common::{run, shared};

#[test]
fn a_server_of_ones_own_may_have_port_80_and_ours_answers_where_there_is_none() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().display();
    let conf = folder.path().join("nginx.conf");
    let text = format!(
        "user root; daemon off; master_process off; pid {dir}/pid; error_log {dir}/log; events {{}}\n\
         http {{ access_log off; client_body_temp_path {dir}/a; \
         proxy_temp_path {dir}/b; fastcgi_temp_path {dir}/c; uwsgi_temp_path {dir}/d; scgi_temp_path {dir}/e; \
         server {{ listen 80; listen [::]:80; location / {{ return 200 \"mine\"; }} }} }}"
    );
    std::fs::write(&conf, text).unwrap();
    let server = format!("PATH=$PATH:/usr/sbin exec nginx -c {}", conf.display());
    let script = "ip netns exec server timeout 60 sh -c \"until ss -tlnH 'sport = :80' | grep -q .; do :; done\"; \
                  exec curl -sS -m 20 http://server/";
    let ran = run(&["lab", "run", "lan", "--server", &server, "--", "sh", "-c", script]);
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    assert_eq!((ran.code, ran.out.trim()), (0, "mine"), "{}{log}", ran.err);
    let ran = run(&["lab", "run", "lan", "--", "sh", "-c", "curl -sS -m 20 http://server/bytes/4 | wc -c"]);
    assert_eq!((ran.code, ran.out.trim()), (0, "4"), "{}", ran.err);
}
