//! Fetches public web pages over http and https. Redirects are not followed. Addresses of this machine and its network
//! are refused.

use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use office_tools::Failure;
use office_tools::web::{Page, PageFetcher};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use crate::adapters::{blocking, unavailable};

/// The maximum size of a page, in bytes. A larger page is refused.
const MAX_BYTES: u64 = 1024 * 1024;

/// Fetches pages.
pub(crate) struct Web(ureq::Agent);

impl Web {
    /// Creates a client.
    pub(crate) fn new() -> Self {
        let config = ureq::Agent::config_builder()
            .max_redirects(0)
            .timeout_global(Some(Duration::from_secs(10)))
            .http_status_as_error(false)
            .proxy(None)
            .build();
        Self(ureq::Agent::with_parts(config, DefaultConnector::default(), PublicOnly::default()))
    }
}

#[async_trait]
impl PageFetcher for Web {
    async fn fetch(&self, url: &str) -> Result<Page, Failure> {
        let (agent, url) = (self.0.clone(), url.to_owned());
        blocking(move || {
            if !url.starts_with("https://") && !url.starts_with("http://") {
                return Err(Failure::Forbidden);
            }
            let mut answer = agent.get(&url).call().map_err(|error| match error {
                ureq::Error::HostNotFound => Failure::NotFound,
                error => unavailable(error),
            })?;
            let status = answer.status().as_u16();
            let text =
                answer.body_mut().with_config().limit(MAX_BYTES).read_to_string().map_err(|_| Failure::Unreadable)?;
            Ok(Page { status, text })
        })
        .await
    }
}

/// Resolves names to public addresses only. The check comes after resolving, so that a public name cannot lead to an
/// internal address.
#[derive(Debug, Default)]
struct PublicOnly(DefaultResolver);

impl Resolver for PublicOnly {
    fn resolve(
        &self,
        uri: &ureq::http::Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.0.resolve(uri, config, timeout)?;
        let mut public = self.empty();
        for address in found.iter().filter(|address| is_public(address.ip())) {
            public.push(*address);
        }
        if public.is_empty() { Err(ureq::Error::HostNotFound) } else { Ok(public) }
    }
}

/// Whether an address is reachable on the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_broadcast()
                || v4.is_documentation()
                || v4.is_multicast()
                || first == 0
                || first >= 240
                || v4.octets().starts_with(&[192, 0, 0])
                // Carrier-grade NAT (RFC 6598) and benchmarking (RFC 2544).
                || (first == 100 && (64..128).contains(&second))
                || (first == 198 && (18..20).contains(&second)))
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_public(v4.into()),
            // Global unicast, without 6to4, Teredo and documentation.
            None => {
                let [first, second, ..] = v6.segments();
                first & 0xe000 == 0x2000 && first != 0x2002 && !(first == 0x2001 && (second == 0 || second == 0xdb8))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_addresses_are_not_public() {
        for (address, expected) in [
            ("127.0.0.1", false),
            ("10.1.2.3", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("0.0.0.0", false),
            ("192.0.0.8", false),
            ("::1", false),
            ("fd00::1", false),
            ("fe80::1", false),
            ("::ffff:127.0.0.1", false),
            ("2002:7f00:1::", false),
            ("1.1.1.1", true),
            ("2606:4700::1111", true),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[tokio::test]
    async fn this_machine_is_out_of_bounds() {
        let web = Web::new();
        for url in ["http://127.0.0.1:1/", "http://localhost:1/", "file:///etc/passwd", "http://[::1]:1/"] {
            assert!(web.fetch(url).await.is_err(), "{url}");
        }
    }
}
