use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whom we believe, for connections through TLS.
#[derive(Debug, Clone)]
pub struct Tls(Arc<rustls::ClientConfig>);

/// Why there is nobody to believe.
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
    /// Believes the system's authorities, and those in the file.
    ///
    /// # Errors
    /// [`TlsError`] when the file holds no certificate. A system without authorities is no error: then only the file's
    /// are believed.
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

    /// Believes nobody: for far ends that are spoken to without TLS.
    ///
    /// # Errors
    /// [`TlsError::SetUp`].
    pub fn nobody() -> Result<Self, TlsError> {
        Self::believing(rustls::RootCertStore::empty())
    }

    fn believing(roots: rustls::RootCertStore) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok(Self(Arc::new(config.with_root_certificates(roots).with_no_client_auth())))
    }

    /// The same, as somebody who has never been there: no session is resumed. With `http2` nothing else is spoken.
    #[must_use]
    pub(crate) fn afresh(&self, http2: bool) -> Self {
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

#[cfg(test)]
mod tests {
    use super::Tls;

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
