//! TLS 1.2 and 1.3, independent of the process-wide default provider.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Returns a configuration that trusts the web's usual authorities and those of the PEM texts.
pub(crate) fn config(pems: &[Vec<u8>]) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for pem in pems {
        let mut found = false;
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| format!("a root certificate cannot be read: {error:?}"))?;
            roots.add(certificate).map_err(|error| format!("a root certificate cannot be used: {error}"))?;
            found = true;
        }
        if !found {
            return Err("a text with root certificates contains none; write PEM".to_owned());
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(builder.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth())
}
