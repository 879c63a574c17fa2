use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Encrypted bytes of a connection that wait to be sent.
const MOST_UNSENT: usize = 32 << 10;

/// The server's end of TLS 1.2 and 1.3, by rustls.
#[derive(Clone)]
pub(crate) struct Tls(TlsAcceptor);

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that can't be read, or holds something else.
    #[error("{file}: {why}", file = file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Certificate and key don't belong together, or are of a kind that isn't known.
    #[error("the certificate and its key can't be used: {0}")]
    Pair(#[from] rustls::Error),
}

impl Tls {
    /// Reads the certificate chain and its key, both in PEM form.
    ///
    /// # Errors
    /// [`TlsError`].
    pub(crate) fn new(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let failed = |file: &Path, why: String| TlsError::File { file: file.to_owned(), why };
        let read = |file: &Path| wt_sys::file::read(file).map_err(|error| failed(file, format!("I/O error: {error}")));
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(certificate)?).collect();
        let chain = chain.map_err(|error| failed(certificate, error.to_string()))?;
        if chain.is_empty() {
            return Err(failed(certificate, "holds no certificate in PEM form".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|error| failed(key, error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Shakes hands.
    ///
    /// # Errors
    /// Those of the connection and of the other end.
    pub(crate) async fn accept<S>(&self, stream: S) -> std::io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.0.accept_with(stream, |session| session.set_buffer_limit(Some(MOST_UNSENT))).await
    }
}
