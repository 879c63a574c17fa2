//! FTP servers that aren't ours, in the lab's far host.

use super::live::{AUTHORITY, NEAR, json_of, shell};
use crate::common::shared;
use wt_testing::require;

/// Whether there are the users that vsftpd steps down to: only in root's lab.
fn root_for_vsftpd() -> Result<(), &'static str> {
    let root = wt_sys::process::effective_uid() == 0;
    root.then_some(()).ok_or("vsftpd steps down to users that only root's lab has")
}

/// Starts vsftpd in the far host, on the ports 2121 (plain) and 2122 (TLS only, and it wants sessions to be resumed).
const VSFTPD: &str = r#"
PATH=$PATH:/usr/sbin:/sbin
mkdir -p ftp/incoming empty
head -c 4000000 /dev/urandom > ftp/file
common() { cat <<END
anonymous_enable=YES
anon_root=$PWD/ftp
anon_upload_enable=YES
anon_other_write_enable=YES
write_enable=YES
no_anon_password=YES
run_as_launching_user=YES
allow_writeable_chroot=YES
secure_chroot_dir=$PWD/empty
background=NO
seccomp_sandbox=NO
isolate=NO
isolate_network=NO
xferlog_enable=YES
vsftpd_log_file=$PWD/ftp.log
dual_log_enable=YES
listen_ipv6=YES
END
}
{ common; echo listen_port=2121; } > plain.conf
{ common; echo listen_port=2122; echo ssl_enable=YES; echo allow_anon_ssl=YES; echo force_anon_data_ssl=YES
  echo force_anon_logins_ssl=YES; echo rsa_cert_file=$PWD/s.pem; echo rsa_private_key_file=$PWD/s.key; } > tls.conf
ip netns exec server vsftpd $PWD/plain.conf &
ip netns exec server vsftpd $PWD/tls.conf &
until curl -s -o /dev/null ftp://server:2121/; do :; done
"#;

#[test]
fn files_of_an_ftp_server_are_fetched_over_both_versions_of_ip_and_through_tls() {
    require!("root", root_for_vsftpd());
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    // Long enough for a byte to come on a machine that computes something else meanwhile.
    let tune = "--levels mss=1000 --trial 2s --budget '4 trials' --json --pause 20ms";
    let script = format!(
        "{AUTHORITY}{VSFTPD}\n$WT tune ftp://server:2121/file {tune}; echo four $? >&2; \
         $WT tune ftp://server6:2121/file --ip 6 {tune} > /dev/null; echo six $? >&2; \
         $WT tune ftps://server:2122/file --ca ca.pem {tune} > /dev/null; echo tls $? >&2; \
         $WT tune ftp://server:2121/missing {tune}; echo missing $? >&2; \
         $WT tune ftp://server:2122/file {tune}; echo plain $? >&2; cat ftp.log"
    );
    let ran = shell(home.path(), NEAR, &script);
    let report = json_of(&ran);
    assert!(report["trial_table"].as_array().unwrap().iter().all(|row| row["status"] == "completed"), "{report:#}");
    assert_eq!(report["granted"][0]["differs"], false, "{report:#}");
    for wanted in ["four 1", "six 1", "tls 1", "missing 4", "plain 4", "550"] {
        assert!(ran.err.contains(wanted), "{wanted}: {}{}", ran.err, ran.out);
    }
}

#[test]
fn an_upload_by_ftp_leaves_nothing_behind_and_a_budget_of_bytes_is_kept() {
    require!("root", root_for_vsftpd());
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    let script = format!(
        "{AUTHORITY}{VSFTPD}\n$WT tune ftp://server:2121/incoming/x --direction up --levels mss=1000 --trial 200ms \
         --budget '6 trials' --json --pause 20ms; echo up $? >&2; ls ftp/incoming | wc -l >&2; \
         $WT tune ftp://server:2121/file --levels mss=1000 --budget 5MB --json --pause 20ms > second; echo down $? >&2"
    );
    let ran = shell(home.path(), NEAR, &script);
    assert!(ran.err.contains("up 1\n0\n") && ran.err.contains("down 1"), "{}{}", ran.err, ran.out);
    let report = json_of(&ran);
    assert!(report["trial_table"].as_array().unwrap().iter().all(|row| row["status"] == "completed"), "{report:#}");
    let log = std::fs::read_to_string(home.path().join("ftp.log")).unwrap();
    let bytes = |line: &str| line.split(", ").find_map(|part| part.strip_suffix(" bytes")?.parse::<u64>().ok());
    let down: u64 =
        log.lines().filter(|line| line.contains("DOWNLOAD") && line.contains("/file")).filter_map(bytes).sum();
    assert!((1..=5_000_000).contains(&down), "{down}: {log}");
    assert!(!log.contains("FAIL DOWNLOAD"), "{log}");
}

#[test]
fn an_upload_that_an_ftp_server_keeps_is_told_once_and_explains_why_the_next_is_refused() {
    require!("root", root_for_vsftpd());
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    // Neither DELE nor a file that is there already.
    let keeping = VSFTPD.replace("anon_other_write_enable=YES", "anon_other_write_enable=NO");
    let script = format!(
        "{AUTHORITY}{keeping}\n$WT tune ftp://server:2121/incoming/x --direction up --levels mss=1000 --trial 200ms \
         --budget '6 trials' --pause 20ms; echo up $? >&2; ls ftp/incoming >&2"
    );
    let ran = shell(home.path(), NEAR, &script);
    assert!(ran.err.contains("up 4\nx.windtunnel-test\n"), "{}{}", ran.err, ran.out);
    assert_eq!(ran.err.matches("incoming/x.windtunnel-test stays on the server").count(), 1, "{}", ran.err);
    let explained =
        ran.err.contains("is there already, from an earlier upload") && ran.err.contains("delete or overwrite");
    assert!(explained, "{}", ran.err);
}

/// Starts pyftpdlib in the far host, on port 2123: only PASV, and the address in its answer is `$FOREIGN`'s.
const PYFTPD: &str = r#"
mkdir -p ftp; head -c 4000000 /dev/urandom > ftp/file
cat > ftpd.py <<END
from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import FTPServer
authorizer = DummyAuthorizer()
authorizer.add_user('me', 'p@ss word', '$PWD/ftp', perm='elradfmw')
handler = FTPHandler
handler.authorizer = authorizer
handler.masquerade_address = '$FOREIGN' or None
handler.proto_cmds = {k: v for k, v in FTPHandler.proto_cmds.items() if k != 'EPSV'}
FTPServer(('198.19.0.1', 2123), handler).serve_forever()
END
ip netns exec server /usr/bin/python3 ftpd.py > /dev/null 2>&1 &
until curl -s -o /dev/null --disable-epsv --ftp-skip-pasv-ip 'ftp://me:p%40ss%20word@server:2123/'; do :; done
"#;

#[test]
fn another_ftp_server_without_extended_passive_mode_works_and_a_foreign_address_is_refused() {
    let _machine = shared();
    let url = "'ftp://me:p%40ss%20word@server:2123/file'";
    for (foreign, code, wanted) in [("", 1, "\"rounds\":3"), ("192.0.2.7", 4, "192.0.2.7, which isn't itself")] {
        let home = tempfile::tempdir().unwrap();
        let script = format!(
            "FOREIGN='{foreign}'\n{PYFTPD}\n$WT tune {url} --levels mss=1000 --trial 200ms --budget '6 trials' --json --pause 20ms"
        );
        let ran = shell(home.path(), NEAR, &script);
        assert_eq!(ran.code, code, "{}{}", ran.err, ran.out);
        assert!(ran.out.contains(wanted) || ran.err.contains(wanted), "{wanted}: {}{}", ran.err, ran.out);
        let told = [&ran.out, &ran.err].map(|text| text.contains("p@ss") || text.contains("p%40ss"));
        assert_eq!(told, [false, false], "no password is shown or kept: {}", ran.out);
    }
}
