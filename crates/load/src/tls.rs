use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The trust anchors of connections through TLS.
#[derive(Debug, Clone)]
pub struct Tls(Arc<rustls::ClientConfig>);

/// Why there are no trust anchors.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file can't be read, or holds no certificate.
    #[error("{file}: {why}", file = file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// TLS itself can't be set up.
    #[error("TLS can't be set up: {0}")]
    SetUp(#[from] rustls::Error),
}

impl Tls {
    /// Trusts the system's authorities, and those in the file.
    ///
    /// # Errors
    /// [`TlsError`] when the file holds no certificate. A system without authorities is no error: then only the file's
    /// are trusted.
    pub fn new(more: Option<&Path>) -> Result<Self, TlsError> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(file) = more {
            let failed = |why: String| TlsError::File { file: file.to_owned(), why };
            let certificates = CertificateDer::pem_file_iter(file).map_err(|error| failed(error.to_string()))?;
            let mut any = false;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| failed(error.to_string()))?;
                roots.add(certificate).map_err(|error| failed(error.to_string()))?;
                any = true;
            }
            if !any {
                return Err(failed("holds no certificate in PEM form".to_owned()));
            }
        }
        Self::believing(roots)
    }

    /// Trusts nobody: for peers that are spoken to without TLS.
    ///
    /// # Errors
    /// [`TlsError::SetUp`].
    pub fn nobody() -> Result<Self, TlsError> {
        Self::believing(rustls::RootCertStore::empty())
    }

    /// Trusts one certificate, and nobody else.
    ///
    /// # Errors
    /// [`TlsError::SetUp`] when it is none.
    pub fn only(certificate: CertificateDer<'static>) -> Result<Self, TlsError> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate)?;
        Self::believing(roots)
    }

    fn believing(roots: rustls::RootCertStore) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok(Self(Arc::new(config.with_root_certificates(roots).with_no_client_auth())))
    }

    /// The same, as somebody who has never been there: no session is resumed. With `http2` nothing else is spoken.
    #[must_use]
    pub fn afresh(&self, http2: bool) -> Self {
        let mut config = rustls::ClientConfig::clone(&self.0);
        config.resumption = rustls::client::Resumption::in_memory_sessions(64);
        config.alpn_protocols = if http2 { vec![b"h2".to_vec()] } else { Vec::new() };
        Self(Arc::new(config))
    }

    /// A session with this host, before its handshake.
    pub(crate) fn session(&self, host: &str) -> io::Result<rustls::ClientConnection> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, format!("{host} is no name for TLS")))?;
        rustls::ClientConnection::new(Arc::clone(&self.0), name).map_err(io::Error::other)
    }
}

/// What a server of ours in the lab shows to those who come through TLS: a certificate for its address, made anew each time
/// and signed by itself. It speaks HTTP/1.1 and HTTP/2, as its client wishes.
#[derive(Debug, Clone)]
pub struct ServerTls {
    config: Arc<rustls::ServerConfig>,
    certificate: CertificateDer<'static>,
}

impl ServerTls {
    /// For a server of this name or address.
    ///
    /// # Errors
    /// [`TlsError::SetUp`], such as without randomness.
    pub fn of(name: &str) -> Result<Self, TlsError> {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]);
        let made = made.map_err(|error| TlsError::SetUp(rustls::Error::General(error.to_string())))?;
        let certificate = made.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let mut config = builder.with_no_client_auth().with_single_cert(vec![certificate.clone()], key.into())?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // Each connection is somebody's first.
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { config: Arc::new(config), certificate })
    }

    /// A client that trusts this server alone.
    ///
    /// # Errors
    /// [`TlsError::SetUp`].
    pub fn client(&self) -> Result<Tls, TlsError> {
        Tls::only(self.certificate.clone())
    }

    /// A session with whoever has connected, before its handshake.
    pub(crate) fn session(&self) -> Result<rustls::ServerConnection, rustls::Error> {
        rustls::ServerConnection::new(Arc::clone(&self.config))
    }
}

#[cfg(test)]
mod tests {
    use super::{ServerTls, Tls};

    #[test]
    fn a_certificate_of_our_own_is_small_and_another_one_each_time() {
        let certificate = || ServerTls::of("198.19.0.1").unwrap().certificate;
        let (one, other) = (certificate(), certificate());
        assert!((300..500).contains(&one.len()), "the guide says 0.4 kB: {}", one.len());
        assert_ne!(one, other);
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ca.pem");
        for text in ["", "no certificate\n", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            std::fs::write(&file, text).unwrap();
            assert!(Tls::new(Some(&file)).unwrap_err().to_string().contains("ca.pem"), "{text}");
        }
        assert!(Tls::new(None).is_ok());
    }
}
