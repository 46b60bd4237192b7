//! Accounts: reservations are atomic, are settled in their window, and have the mark of their writer.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::policy::{RunPolicy, Spend, ToolPolicy};
use crate::store::accounts::{self, Account, Bill};
use crate::store::{Document, Key, StoreError, StoredAccount, Transaction};

/// A set of documents that successive transactions change.
struct Books {
    accounts: Arc<[Account]>,
    documents: BTreeMap<Key, Document>,
}

impl Books {
    fn new(policy: &str) -> Self {
        let policy = RunPolicy::new(ToolPolicy::from_toml(policy).unwrap());
        let accounts = Account::of(&policy, Some(&"north".into()), Some(&"ada".into()));
        Self { accounts, documents: BTreeMap::new() }
    }

    fn at<T>(&mut self, second: i64, change: impl FnOnce(&mut Transaction) -> Result<T, StoreError>) -> T {
        let keys = Account::keys(&self.accounts).map(|key| {
            let document = self.documents.get(&key).cloned();
            (key, document)
        });
        let mut transaction = Transaction::over(Timestamp::from_second(second).unwrap(), keys.collect::<Vec<_>>());
        let answer = change(&mut transaction).unwrap();
        for (key, document) in transaction.into_writes().0 {
            self.documents.insert(key, document.unwrap().document);
        }
        answer
    }

    fn bill(&self, calls: u64) -> Bill {
        Bill::new(&self.accounts, Spend { calls, ..Spend::default() })
    }

    fn stored(&self) -> Vec<&StoredAccount> {
        fn stored(document: &Document) -> &StoredAccount {
            match document {
                Document::Account(stored) => stored,
                _ => panic!("an account"),
            }
        }
        self.documents.values().map(stored).collect()
    }
}

#[test]
fn all_accounts_or_none_are_booked() {
    let mut books =
        Books::new("budgets.principal = { window = '1h', calls = 9 }\nbudgets.tenant = { window = '1h', calls = 2 }");
    let bill = books.bill(2);
    assert!(books.at(0, |transaction| accounts::reserve(transaction, &bill)).is_ok());
    let bill = books.bill(1);
    let exceeded = books.at(0, |transaction| accounts::reserve(transaction, &bill)).unwrap_err();
    assert_eq!((exceeded.key(), exceeded.until().unwrap().as_second()), ("budgets.tenant.calls", 3600));
    assert!(books.stored().iter().all(|stored| stored.booked.calls == 2));
}

#[test]
fn a_reservation_is_settled_in_its_window_only() {
    let mut books = Books::new("budgets.tenant = { window = '1h', calls = 5 }");
    let bill = books.bill(3);
    let booked = books.at(0, |transaction| accounts::reserve(transaction, &bill)).unwrap();
    books.at(3600, |transaction| accounts::reserve(transaction, &bill)).unwrap();
    books.at(3601, |transaction| accounts::settle(transaction, &booked, Spend::default()));
    assert_eq!(books.stored()[0].booked.calls, 3, "the account of the second window");
    let booked = books.at(7200, |transaction| accounts::reserve(transaction, &bill)).unwrap();
    books.at(7200, |transaction| accounts::settle(transaction, &booked, Spend { calls: 1, ..Spend::default() }));
    assert_eq!(books.stored()[0].booked.calls, 1);
}

#[test]
fn two_writers_never_leave_the_same_document() {
    let written = |calls: u64| {
        let mut books = Books::new("budgets.tenant = { window = '1h', calls = 5 }");
        let bill = books.bill(calls);
        books.at(0, |transaction| accounts::charge(transaction, &bill));
        serde_json::to_string(books.stored()[0]).unwrap()
    };
    assert_ne!(written(1), written(1), "a store with an unacknowledged write could not tell the two writes apart");
}
