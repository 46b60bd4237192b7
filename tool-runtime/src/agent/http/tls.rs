//! The HTTP client. Its TLS (1.2 and 1.3) does not depend on the process-wide default provider of `rustls`.

use std::sync::Arc;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Returns the builder of a client that trusts the web's usual authorities and those in the PEM texts. The client
/// follows no redirect, and takes no proxy from the environment.
pub(crate) fn client(pems: &[Vec<u8>]) -> Result<ClientBuilder, String> {
    let builder = Client::builder().tls_backend_preconfigured(config(pems)?);
    Ok(builder.redirect(Policy::none()).no_proxy())
}

fn config(pems: &[Vec<u8>]) -> Result<ClientConfig, String> {
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
