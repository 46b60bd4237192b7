//! Accounts, with the largest amounts that there are.

use std::time::Duration;

use crate::policy::{Holder, Spend, Window};
use crate::store::conformance::{at, read, update};
use crate::store::{Document, Key, Query, Space, Store, StoredAccount, Transaction};

pub(super) async fn accounts_are_kept(store: &dyn Store) {
    let window = Window::LONGEST;
    let keys = [Holder::Principal, Holder::Tenant].map(|holder| Key::account(holder, Some("north"), None, window));
    let booked = Spend { calls: u64::MAX, time: Duration::new(u64::MAX, 7), cost: f64::MAX, ..Spend::default() };
    let account = StoredAccount {
        tenant: Some("north\u{0}".into()),
        principal: None,
        holder: Holder::Tenant,
        from: at(0),
        until: at(1),
        booked,
        mark: u64::MAX,
    };
    let (named, written) = (keys.clone(), account.clone());
    let write = move |transaction: &mut Transaction| {
        named.iter().try_for_each(|key| transaction.set(key, Document::Account(Box::new(written.clone()))))
    };
    update(store, &keys, write).await.expect("it writes");
    for key in &keys {
        let read = read(store, key).await;
        assert!(
            matches!(read, Some(Document::Account(read)) if *read == account),
            "an account reads as it was written"
        );
    }
    let over = Query { due: Some(at(1)), ..Query::new(Space::Account) };
    assert_eq!(store.list(&over).await.expect("it lists").len(), 2, "accounts whose window is over are listed");
}
