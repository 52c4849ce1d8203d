//! Accounts made and removed by the store's owner.

use super::house::{House, list, open, refusal, send, settings};
use lasthop_messenger::account::Account;
use lasthop_messenger::client::Session;
use lasthop_messenger::protocol::Refusal;
use lasthop_messenger::server::{Order, Ordered, order};
use std::path::Path;

fn add(folder: &Path, name: &str, address: &str) -> Account {
    let order = order(folder, &Order::Add { name: name.into(), address: address.into() });
    let Ordered::Added(account) = order.unwrap() else { panic!("not added") };
    account
}

fn failure(folder: &Path, what: Order) -> String {
    let Ordered::Failed(why) = order(folder, &what).unwrap() else { panic!("it was done") };
    why
}

#[test]
fn accounts_are_made_and_removed_with_and_without_a_server_that_runs() {
    // A socket's path has at most 108 bytes; a folder's has more.
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("long".repeat(40));
    let anna = add(&store, "anna", "nobody:1");
    let house = House::open(&store, settings());
    let anna = Account { server: house.address.clone(), ..anna };
    let bert = add(&store, "bert", &house.address);
    assert_eq!(bert.pin, anna.pin);
    send(&mut open(&anna), 1, "bert", b"hello").unwrap();
    assert_eq!(list(&mut open(&bert)).len(), 1);

    let again = || Order::Add { name: "bert".into(), address: String::new() };
    assert!(failure(&store, again()).contains("already"));
    assert!(failure(&store, Order::Add { name: "../bert".into(), address: String::new() }).contains("letters"));
    let Ordered::Accounts(accounts) = order(&store, &Order::Accounts).unwrap() else { panic!() };
    let seen: Vec<_> = accounts.iter().map(|a| (&*a.name, a.messages, a.bytes)).collect();
    assert_eq!(seen, [("anna", 0, 0), ("bert", 1, 5)]);

    let mut connected = open(&bert);
    let Ordered::Removed(1) = order(&store, &Order::Remove { name: "bert".into() }).unwrap() else { panic!() };
    assert_eq!(refusal(Session::open(&bert, None, super::house::IDLE).map(drop)), Refusal::WrongSecret);
    assert!(connected.ask(&lasthop_messenger::protocol::Request::Ping(1)).is_err(), "cut");
    let to_nobody = refusal(send(&mut open(&anna), 2, "bert", b"hello"));
    assert_eq!(to_nobody, Refusal::NoSuchRecipient { name: "bert".into() });
    drop(house);

    assert!(!store.join("control").exists() && std::fs::read_dir(store.join("bodies")).unwrap().next().is_none());
    assert!(failure(&store, Order::Remove { name: "bert".into() }).contains("nobody"));
    let new_bert = add(&store, "bert", "nobody:1");
    assert!(new_bert.secret != bert.secret);
}
