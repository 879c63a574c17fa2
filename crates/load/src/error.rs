use crate::proto::RequestError;
use crate::wire::WireError;
use std::time::Duration;
use wt_units::Knob;

/// Why a transfer couldn't begin, or not go on.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A setting was refused by this end's kernel.
    #[error("{knob} can't be set on this connection: {source}")]
    Refused {
        /// The knob.
        knob: Knob,
        /// What the kernel said.
        source: wt_sys::SysError,
    },
    /// No connection.
    #[error(transparent)]
    Connect(wt_sys::SysError),
    /// The request can't be written.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(#[from] std::io::Error),
}

/// Why nothing was fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// A setting was refused by this end's kernel, or there is no connection.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The server doesn't want to, now.
    #[error("the server refuses: {why}")]
    Refused {
        /// What it said, or did.
        why: String,
        /// For how long it wants to be left alone.
        pause: Option<Duration>,
    },
    /// It is elsewhere.
    #[error("the server sends us to {0}")]
    Elsewhere(String),
    /// There is nothing of the kind, or not for us; trying again helps nobody.
    #[error("{0}")]
    Never(String),
    /// No connection through TLS, for a reason that is known; trying again helps nobody.
    #[error("TLS: {why}")]
    Distrusted {
        /// What is wrong.
        why: String,
        /// Why that is so.
        cause: &'static str,
        /// What to try.
        remedy: &'static str,
    },
    /// It keeps what was uploaded, and takes no other under that name; trying again helps nobody.
    #[error("{why}")]
    Kept {
        /// What it says, of which file.
        why: String,
        /// Why that is so.
        cause: &'static str,
        /// What to try.
        remedy: &'static str,
    },
    /// What it says is invalid.
    #[error("{0}")]
    Protocol(String),
    /// Nothing came in time.
    #[error("nothing came within {0:.1?}")]
    Silence(Duration),
    /// The user wants to stop.
    #[error("stopped by the user")]
    Cancelled,
}

/// Nobody listens, or the peer resets: it doesn't want us now.
pub(crate) fn refused_or_not(error: LoadError) -> FetchError {
    match &error {
        LoadError::Connect(cause) if is_refusal(&cause.source) => {
            FetchError::Refused { why: cause.source.to_string(), pause: None }
        }
        _ => FetchError::Load(error),
    }
}

fn is_refusal(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::ConnectionReset)
}

/// Whether the peer speaks nothing of what we offered, which is never more than HTTP/2.
fn speaks_otherwise(error: &std::io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    matches!(cause, Some(rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol)))
}

/// Why TLS couldn't be agreed upon.
fn distrust(error: &std::io::Error) -> FetchError {
    use rustls::{CertificateError, Error, InvalidMessage};
    let known = |why: &str, cause, remedy| FetchError::Distrusted { why: why.to_owned(), cause, remedy };
    match error.get_ref().and_then(|cause| cause.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => known(
            "the issuer of its certificate is unknown (UnknownIssuer)",
            "its certificate is signed by nobody whom this system believes",
            "--ca FILE names a private authority",
        ),
        Some(Error::InvalidCertificate(CertificateError::Other(other)))
            if matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity)) =>
        {
            known(
                "its certificate is one of an authority",
                "openssl req -x509 makes certificates that may sign others (CA:TRUE); a server's own must not",
                "make it anew with -addext basicConstraints=critical,CA:FALSE, and name that file with --ca",
            )
        }
        Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => known(
            "what answers there doesn't speak TLS",
            "the port is one without encryption",
            "write http:// (or ftp://), or name the port that speaks TLS",
        ),
        _ => FetchError::Never(format!("TLS: {error}")),
    }
}

/// What a broken wire means: `patience` is for how long an answer was waited for, `in_handshake` whether TLS wasn't agreed yet.
pub(crate) fn lost(error: WireError, patience: Duration, in_handshake: bool) -> FetchError {
    match error {
        WireError::Deadline => FetchError::Silence(patience),
        WireError::Cancelled => FetchError::Cancelled,
        WireError::Broken(error) if is_refusal(&error) => FetchError::Refused { why: error.to_string(), pause: None },
        WireError::Broken(error) if in_handshake && speaks_otherwise(&error) => {
            FetchError::Never(format!("the server doesn't speak HTTP/2: TLS: {error}"))
        }
        WireError::Broken(error) if in_handshake && error.kind() == std::io::ErrorKind::InvalidData => distrust(&error),
        WireError::Broken(error) => FetchError::Load(LoadError::Broken(error)),
    }
}

/// Whether a connection waits to be accepted, and this process or the machine has no descriptor for it.
pub(crate) fn is_out_of_descriptors(error: &std::io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{CertificateError, Error, InvalidMessage, OtherError};
    use std::io::{Error as IoError, ErrorKind};
    use std::sync::Arc;

    #[test]
    fn each_reason_not_to_trust_has_its_own_cause_and_remedy() {
        let authority = OtherError(Arc::new(webpki::Error::CaUsedAsEndEntity));
        for (error, remedy) in [
            (Error::InvalidCertificate(CertificateError::UnknownIssuer), "--ca FILE"),
            (Error::InvalidCertificate(CertificateError::Other(authority)), "CA:FALSE"),
            (Error::InvalidMessage(InvalidMessage::InvalidContentType), "http://"),
        ] {
            let wire = WireError::Broken(IoError::new(ErrorKind::InvalidData, error));
            let FetchError::Distrusted { remedy: told, .. } = lost(wire, Duration::ZERO, true) else {
                panic!("{remedy}")
            };
            assert!(told.contains(remedy), "{told}");
        }
        let expired = Error::InvalidCertificate(CertificateError::Expired);
        let wire = WireError::Broken(IoError::new(ErrorKind::InvalidData, expired));
        assert!(matches!(lost(wire, Duration::ZERO, true), FetchError::Never(_)));
    }
}
