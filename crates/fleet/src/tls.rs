//! TLS to the server by rustls: its certificate is checked against the name, and a client certificate is shown where there is one.
//!
//! What this leaves out: channel binding (SCRAM-SHA-256-PLUS). It guards against a server whose certificate isn't checked; ours
//! always is.

use postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Inner;

/// Makes a connection secure.
#[derive(Clone)]
pub(crate) struct Connector(Arc<ClientConfig>);

impl Connector {
    /// Believes the authorities of a file, or those that the system believes; shows a certificate with its key, both as PEM.
    ///
    /// # Errors
    /// Which file can't be read, and why.
    pub(crate) fn new(root: Option<&Path>, pair: Option<(&Path, &Path)>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        match root {
            Some(path) => {
                for authority in certificates(path)? {
                    roots.add(authority).map_err(|error| format!("{}: {error}", path.display()))?;
                }
            }
            None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots);
        let config = match pair {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => {
                let private = PrivateKeyDer::from_pem_slice(&read(key)?);
                let private = private.map_err(|error| format!("{}: {error}", key.display()))?;
                let own = config.with_client_auth_cert(certificates(certificate)?, private);
                own.map_err(|error| unusable(certificate, &error))?
            }
        };
        Ok(Self(Arc::new(config)))
    }

    /// To the host of this name, or of this IP address.
    ///
    /// # Errors
    /// That it can't be one.
    pub(crate) fn to_host(&self, host: &str) -> Result<ToHost, InvalidDnsNameError> {
        Ok(ToHost { config: Arc::clone(&self.0), name: ServerName::try_from(host.to_owned())? })
    }
}

/// Why a certificate can't be shown. OpenSSL before 3.2 signs what has no extension as version 1, of which the library says no more than
/// that it doesn't take it.
fn unusable(path: &Path, error: &rustls::Error) -> String {
    let (path, error) = (path.display(), error.to_string());
    if error.contains("UnsupportedCertVersion") {
        return format!(
            "{path}: the certificate isn't of version 3, and no other is taken: sign it with an extension \
             (openssl x509 -req … -extfile FILE, with the line basicConstraints=CA:FALSE in the file)"
        );
    }
    format!("{path}: {error}")
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    wt_sys::file::read(path).map_err(|error| format!("{}: I/O error: {error}", path.display()))
}

/// The certificates of a file of PEM, one at least.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |error: rustls::pki_types::pem::Error| format!("{}: {error}", path.display());
    let found: Vec<_> = CertificateDer::pem_slice_iter(&read(path)?).collect::<Result<_, _>>().map_err(failed)?;
    if found.is_empty() { Err(format!("{}: there is no certificate in it", path.display())) } else { Ok(found) }
}

/// Makes a connection to one host secure.
pub(crate) struct ToHost {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl<S> TlsConnect<S> for ToHost
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = SecureStream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<SecureStream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { TlsConnector::from(self.config).connect(self.name, stream).await.map(SecureStream) })
    }
}

/// A connection over TLS.
pub(crate) struct SecureStream<S>(Inner<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for SecureStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for SecureStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for SecureStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}
