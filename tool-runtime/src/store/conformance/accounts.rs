//! Accounts, with the largest possible amounts.

use std::sync::Arc;
use std::time::Duration;

use crate::policy::{Holder, RunPolicy, Spend, ToolPolicy, Window};
use crate::store::accounts::{self, Account, Bill};
use crate::store::conformance::{ask, at, listed, read, several, update};
use crate::store::{Document, DocumentKind, Key, Query, Store, StoredAccount, Transaction};

pub(super) async fn accounts_are_kept(store: Arc<dyn Store>) {
    let store = &*store;
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
    let over = Query { due: Some(at(1)), ..Query::new(DocumentKind::Account) };
    assert_eq!(listed(store, over).await.len(), 2, "accounts whose window is over are listed");
}

pub(super) async fn accounts_together_never_pass_a_limit(store: Arc<dyn Store>) {
    let rules = r#"{"budgets":{"principal":{"window":"366d","calls":9},"tenant":{"window":"366d","calls":5}}}"#;
    let policy = RunPolicy::new(ToolPolicy::from_json(rules).expect("a policy"));
    let book = |store: Arc<dyn Store>, task: usize| {
        let principal: Arc<str> = format!("principal {}", task % 2).into();
        let accounts = Account::of(&policy, Some(&"north".into()), Some(&principal));
        let keys: Vec<_> = Account::keys(&accounts).collect();
        let bill = Bill::new(&accounts, Spend { calls: 1, ..Spend::default() });
        async move {
            ask(&*store, keys, move |transaction| accounts::reserve(transaction, &bill)).await.expect("it answers")
        }
    };
    let answers = several(&store, 16, book).await;
    let booked = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(booked, 5, "concurrent bookings never pass a limit");
    let mut calls = Vec::new();
    for listed in listed(&*store, Query::new(DocumentKind::Account)).await {
        if let Document::Account(account) = listed.document {
            calls.push((account.holder == Holder::Tenant, account.booked.calls));
        }
    }
    let of_tenant: Vec<_> = calls.iter().filter(|(is_tenant, _)| *is_tenant).map(|(_, calls)| *calls).collect();
    let of_principals: u64 = calls.iter().filter(|(is_tenant, _)| !is_tenant).map(|(_, calls)| *calls).sum();
    assert_eq!((of_tenant, of_principals), (vec![5], 5), "a refused booking changes no account");
}
