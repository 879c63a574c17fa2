//! HTTPS over a connection that never acknowledges: TLS in memory.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme};
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use wt_probe::first_window::{HEAD, Session};

/// Accepts every certificate: nothing secret is sent, and nothing that is received is used.
#[derive(Debug)]
struct AnyCertificate(rustls::crypto::WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// How all sessions are set up: HTTP/1.1, no resumption.
pub(super) fn config() -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let any = Arc::new(AnyCertificate(provider.signature_verification_algorithms));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(any)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
}

/// One request over TLS.
#[derive(Debug)]
pub(super) struct Tls {
    /// `None` once it has failed.
    connection: Option<ClientConnection>,
    request: Vec<u8>,
    response: Vec<u8>,
    /// Whether the server's first byte begins a record; `None` before it has come.
    is_record: Option<bool>,
}

/// Whether a record of TLS begins with this byte: a server's first is a handshake or an alert.
///
/// # Source
/// RFC 8446 section 5.1: `ContentType` 20 to 23.
pub(super) fn begins_record(byte: u8) -> bool {
    (20..=23).contains(&byte)
}

impl Tls {
    /// To a server of this name, or address.
    pub(super) fn new(config: &Arc<ClientConfig>, host: &str, request: Vec<u8>) -> Self {
        let name = ServerName::try_from(host.to_owned()).ok();
        let connection = name.and_then(|name| ClientConnection::new(Arc::clone(config), name).ok());
        Self { connection, request, response: Vec::new(), is_record: None }
    }

    fn outgoing(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(connection) = &mut self.connection {
            while connection.wants_write() {
                // Writing to memory fails only when there is nothing to write.
                if connection.write_tls(&mut out).is_err() {
                    break;
                }
            }
        }
        out
    }

    fn read(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        while !bytes.is_empty() {
            match connection.read_tls(&mut bytes) {
                Ok(0) | Err(_) => return Ok(()),
                Ok(_) => {}
            }
            connection.process_new_packets()?;
            let mut plain = [0; 4096];
            while let Ok(len) = connection.reader().read(&mut plain) {
                if len == 0 {
                    break;
                }
                let room = HEAD.saturating_sub(self.response.len()).min(len);
                self.response.extend_from_slice(&plain[..room]);
            }
        }
        if !connection.is_handshaking() && !self.request.is_empty() {
            // The writer's buffer is in memory and larger than any request.
            let _ = connection.writer().write_all(&std::mem::take(&mut self.request));
        }
        Ok(())
    }
}

impl Session for Tls {
    fn opening(&mut self) -> Vec<u8> {
        self.outgoing()
    }

    fn hear(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.is_record = self.is_record.or(bytes.first().copied().map(begins_record));
        if self.read(bytes).is_err() {
            // An alert would only tell the server that we are done; the reset does.
            self.connection = None;
            return Vec::new();
        }
        self.outgoing()
    }

    fn response(&self) -> &[u8] {
        &self.response
    }

    fn length(&self) -> Option<u64> {
        // Short responses end with the connection's last record, whose place in the stream isn't known exactly.
        None
    }

    fn is_foreign(&self) -> bool {
        self.is_record == Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_with_no_record_is_another_protocol() {
        let foreign = |first: &[u8], then: &[u8]| {
            let mut tls = Tls::new(&config().unwrap(), "127.0.0.1", Vec::new());
            assert!(!tls.is_foreign(), "nothing has come");
            tls.hear(first);
            tls.hear(then);
            tls.is_foreign()
        };
        assert!(foreign(b"HTTP/1.1 400 Bad Request\r\n", b"\x16\x03\x03"));
        assert!(!foreign(b"\x15\x03\x03\x00\x02\x02\x28", b"HTTP"));
        assert!(!foreign(b"\x16", b"\x03\x03"));
    }
}
