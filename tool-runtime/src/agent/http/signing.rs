//! [`SigningKeys`]: the signatures of notices, in the form of Standard Webhooks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::capability::Secret;
use crate::error::ParseError;

/// The secrets that sign notices. There are several while a receiver changes from an old secret to a new one.
pub(super) struct SigningKeys(Vec<Secret<Vec<u8>>>);

const PREFIX: &str = "whsec_";

/// The maximum number of secrets.
const MAX_SECRETS: usize = 8;

impl SigningKeys {
    /// Reads the secrets. The error contains no part of a secret.
    pub(super) fn read(secrets: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, ParseError> {
        let keys = secrets.into_iter().map(|secret| key(secret.as_ref().trim())).collect::<Result<Vec<_>, _>>()?;
        match keys.len() {
            0 => {
                Err(ParseError::new("no_webhook_secret", "a webhook needs at least one secret that signs its notices"))
            }
            1..=MAX_SECRETS => Ok(Self(keys)),
            _ => Err(ParseError::new("many_webhook_secrets", "a webhook has at most 8 secrets; remove the old ones")),
        }
    }

    /// Returns the header with one signature for each secret, over the id, the time and the bytes of the payload.
    pub(super) fn sign(&self, id: &str, seconds: i64, payload: &str) -> String {
        let signed = format!("{id}.{seconds}.{payload}");
        let signatures = self.0.iter().filter_map(|key| {
            // HMAC accepts a key of any length.
            let mut code = Hmac::<Sha256>::new_from_slice(key.expose()).ok()?;
            code.update(signed.as_bytes());
            Some(format!("v1,{}", STANDARD.encode(code.finalize().into_bytes())))
        });
        signatures.collect::<Vec<_>>().join(" ")
    }
}

fn key(secret: &str) -> Result<Secret<Vec<u8>>, ParseError> {
    let key = secret.strip_prefix(PREFIX).and_then(|text| STANDARD.decode(text).ok());
    // Standard Webhooks limits the length of a secret.
    key.filter(|key| (24..=64).contains(&key.len())).map(Secret::new).ok_or(ParseError::new(
        "not_a_webhook_secret",
        "a webhook's secret is `whsec_` and 24 to 64 random bytes in base64, as `openssl rand -base64 32` prints them",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Standard Webhooks.
    #[test]
    fn the_signature_is_the_one_of_the_standard() {
        let keys = SigningKeys::read(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]).unwrap();
        let signed = keys.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn each_secret_signs() {
        let one = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let [both, first, second] = [vec![one, other], vec![one], vec![other]]
            .map(|secrets| SigningKeys::read(secrets).unwrap().sign("msg_1", 7, "{}"));
        assert_eq!(both, format!("{first} {second}"));
    }

    #[test]
    fn other_secrets_are_refused_without_a_part_of_them() {
        for wrong in
            ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=", "whsec_not base64 at all!!!!!!!!!!!!"]
        {
            let error = SigningKeys::read([wrong]).err().unwrap();
            assert_eq!(error.code(), "not_a_webhook_secret", "{wrong}");
            assert!(wrong.len() < 8 || !error.to_string().contains(wrong));
        }
        assert_eq!(SigningKeys::read([""; 0]).err().unwrap().code(), "no_webhook_secret");
    }
}
