//! [`Vault`]: stores the tokens of accounts, encrypted and bound to tenant, principal and account.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use chacha20poly1305::aead::{Aead as _, Generate as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use jiff::Timestamp;
use office_tools::Failure;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::adapters::database::Database;
use crate::adapters::unavailable;

/// An account with the tenant and the principal who may use it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct AccountKey {
    pub(crate) tenant: String,
    pub(crate) principal: String,
    pub(crate) id: String,
}

/// The tokens of an account. The type has no `Debug`, so that no log can show them.
#[derive(Clone)]
pub(crate) struct Tokens {
    pub(crate) access: String,
    pub(crate) refresh: String,
    /// The time at which `access` expires.
    pub(crate) expires_at: Timestamp,
}

/// Stored tokens.
pub(crate) struct OpenVault {
    pub(crate) tokens: Tokens,
    /// The stored bytes. A later write compares them to detect a concurrent write.
    sealed: Vec<u8>,
}

/// Stores tokens in the database, encrypted with a key that is not in it.
pub(crate) struct Vault {
    database: Arc<Database>,
    key: Key,
}

impl Vault {
    pub(crate) const fn new(database: Arc<Database>, key: Key) -> Self {
        Self { database, key }
    }

    /// Stores the tokens of a new account. An existing or revoked account does not change.
    pub(crate) fn connect(&self, place: &AccountKey, tokens: &Tokens) -> Result<(), Failure> {
        let (place, sealed) = (place.clone(), self.seal(place, tokens)?);
        self.database.run_here(move |connection| {
            // The row is read first, so that a read-only file works if the account exists.
            let sql = "SELECT 1 FROM connections WHERE tenant = ?1 AND principal = ?2 AND id = ?3";
            let known = connection.query_row(sql, params![place.tenant, place.principal, place.id], |_| Ok(()));
            if known.optional()?.is_none() {
                let sql = "INSERT OR IGNORE INTO connections VALUES (?1, ?2, ?3, ?4)";
                connection.execute(sql, params![place.tenant, place.principal, place.id, sealed])?;
            }
            Ok(())
        })
    }

    /// Returns the tokens of an account; `None` if this tenant and principal have no tokens, or they were revoked.
    pub(crate) async fn get(&self, place: &AccountKey) -> Result<Option<OpenVault>, Failure> {
        let wanted = place.clone();
        let query = move |connection: &mut Connection| {
            let sql = "SELECT sealed FROM connections WHERE tenant = ?1 AND principal = ?2 AND id = ?3";
            let row = params![wanted.tenant, wanted.principal, wanted.id];
            connection.query_row(sql, row, |row| row.get::<_, Option<Vec<u8>>>(0)).optional()
        };
        let Some(sealed) = self.database.run(query).await?.flatten() else { return Ok(None) };
        Ok(Some(OpenVault { tokens: self.open(place, &sealed)?, sealed }))
    }

    /// Replaces tokens. Changes nothing and returns `false` if they were replaced or revoked since they were read.
    pub(crate) async fn replace(
        &self,
        place: &AccountKey,
        before: &OpenVault,
        tokens: &Tokens,
    ) -> Result<bool, Failure> {
        let (place, before, sealed) = (place.clone(), before.sealed.clone(), self.seal(place, tokens)?);
        let write = move |connection: &mut Connection| {
            let sql =
                "UPDATE connections SET sealed = ?5 WHERE tenant = ?1 AND principal = ?2 AND id = ?3 AND sealed = ?4";
            connection.execute(sql, params![place.tenant, place.principal, place.id, before, sealed])
        };
        Ok(self.database.run(write).await? == 1)
    }

    fn seal(&self, place: &AccountKey, tokens: &Tokens) -> Result<Vec<u8>, Failure> {
        seal(&self.key, &bound(place), &format!("{}\n{}\n{}", tokens.expires_at, tokens.refresh, tokens.access))
    }

    fn open(&self, place: &AccountKey, sealed: &[u8]) -> Result<Tokens, Failure> {
        let text = unseal(&self.key, &bound(place), sealed);
        let tokens = text.as_deref().and_then(|text| {
            let (expires_at, rest) = text.split_once('\n')?;
            let (refresh, access) = rest.split_once('\n')?;
            Some(Tokens { access: access.into(), refresh: refresh.into(), expires_at: expires_at.parse().ok()? })
        });
        tokens.ok_or_else(|| unavailable("tokens cannot be opened; they were changed, or sealed with another key"))
    }
}

/// Returns the context to which sealed tokens are bound, so that they cannot be opened in another row.
fn bound(AccountKey { tenant, principal, id }: &AccountKey) -> String {
    format!("{}:{tenant}{}:{principal}{id}", tenant.len(), principal.len())
}

/// Encrypts a text. It can only be decrypted with the same context.
pub(crate) fn seal(key: &Key, context: &str, text: &str) -> Result<Vec<u8>, Failure> {
    let nonce = XNonce::try_generate().map_err(|_| unavailable("the system gives no random numbers"))?;
    let payload = Payload { msg: text.as_bytes(), aad: context.as_bytes() };
    let sealed = XChaCha20Poly1305::new(key).encrypt(&nonce, payload).map_err(|_| unavailable("too long to seal"))?;
    Ok([nonce.as_slice(), &sealed].concat())
}

/// Decrypts a text. Returns `None` if it was changed, or sealed with another key or context.
pub(crate) fn unseal(key: &Key, context: &str, sealed: &[u8]) -> Option<String> {
    let (nonce, sealed) = sealed.split_first_chunk::<24>()?;
    let payload = Payload { msg: sealed, aad: context.as_bytes() };
    let opened = XChaCha20Poly1305::new(key).decrypt(&XNonce::from(*nonce), payload).ok()?;
    String::from_utf8(opened).ok()
}

/// Reads a key from its file, which is created on first use and which only its owner may read. A real service would
/// read the key from its secret store.
pub(crate) fn key(path: &Path) -> std::io::Result<Key> {
    if !path.exists() {
        let key = Key::try_generate().map_err(|_| std::io::Error::other("the system gives no random numbers"))?;
        let new = path.with_extension(format!("{}.new", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&new)?;
        file.write_all(&key)?;
        file.sync_all()?;
        // The key is written to a temporary file, which is then linked. If several processes create the key, one of
        // them wins, and none reads an incomplete key.
        let linked = std::fs::hard_link(&new, path);
        std::fs::remove_file(&new)?;
        linked.or_else(|error| if path.exists() { Ok(()) } else { Err(error) })?;
    }
    let bytes: [u8; 32] = std::fs::read(path)?
        .try_into()
        .map_err(|_| std::io::Error::other(format!("{} is not a key; restore it", path.display())))?;
    Ok(Key::from(bytes))
}
