//! Picks, also with hostile definitions and queries.

#![allow(clippy::expect_used, clippy::panic, reason = "a test says what it expects")]

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::*;
use crate::call::ToolContext;
use crate::catalog::pick::fields::PickField;
use crate::catalog::{CatalogBuilder, ToolCatalog};
use crate::error::ToolError;
use crate::registration::{DynamicHandler, DynamicTool};
use crate::tool::ToolEffect;

struct Never;

#[async_trait]
impl DynamicHandler for Never {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Err(ToolError::safe("never run"))
    }
}

fn tool(name: &str, description: &str, arguments: &[(&str, &str)]) -> DynamicTool {
    let properties: serde_json::Map<_, _> = arguments
        .iter()
        .map(|(name, text)| ((*name).to_owned(), json!({"type": "string", "description": text})))
        .collect();
    let schema = json!({"type": "object", "properties": properties});
    DynamicTool::new(name, description, schema, ToolEffect::ReadOnly, Arc::new(Never)).foreign()
}

fn catalog(tools: impl IntoIterator<Item = DynamicTool>) -> ToolCatalog {
    tools.into_iter().fold(ToolCatalog::builder(), CatalogBuilder::dynamic).build().expect("a catalog")
}

fn office() -> Vec<DynamicTool> {
    vec![
        tool("tasks__list", "Lists the tasks of a project.", &[("project_id", "The project.")]),
        tool("tasks__update", "Changes fields of one task.", &[("title", "The new title."), ("due", "The due date.")]),
        tool("mail__send", "Sends an email to a person.", &[("to", "The address."), ("subject", "The subject.")]),
        tool("geo__getTimezone", "Finds the zone of a place.", &[("city", "The name of the city.")]),
        tool("wetter__tokyo", "東京の天気を調べる。", &[]),
        tool("voyage__trouver", "Trouve un hôtel près d'ici.", &[]),
    ]
}

fn names(picks: &[Pick]) -> Vec<&str> {
    picks.iter().map(|pick| pick.name.as_str()).collect()
}

#[track_caller]
fn check(query: &str, first: &str) {
    let picks = catalog(office()).pick(query, &PickOptions::default());
    assert_eq!(picks.first().map(|pick| pick.name.as_str()), Some(first), "{query}");
}

#[test]
fn the_tool_that_fits_comes_first() {
    check("Which tasks does the project have?", "tasks__list");
    check("change the title of that task", "tasks__update");
    check("EMAILING Ada about it", "mail__send");
    check("what time zone is Oslo in", "geo__getTimezone");
    check("timezones", "geo__getTimezone");
    check("東京の天気は？", "wetter__tokyo");
    check("un HOTEL pres de la gare", "voyage__trouver");
    check("tasks__update", "tasks__update");
}

#[test]
fn a_tool_that_is_called_by_its_name_comes_first() {
    let same = "Gets the order of a shop, and the shop of an order.";
    let others = (0..60).map(|at| tool(&format!("shop{at}__get_order_of_shop"), same, &[]));
    let named = ["shop__get_order", "-", "x__--", "weather"].map(|name| tool(name, "Nothing else.", &[]));
    let catalog = catalog(others.chain(named));
    let first = |query: &str| Some(catalog.pick(query, &PickOptions::new(1)).first()?.name.to_string());
    assert_eq!(first("shop__get_order").as_deref(), Some("shop__get_order"));
    let asked = "Load `shop__get_order`, please: get the order of shop 7 of shop 8.";
    assert_eq!(first(asked).as_deref(), Some("shop__get_order"));
    assert_eq!(first("x__--").as_deref(), Some("x__--"));
    assert_eq!(first("weather").as_deref(), Some("weather"));
    assert!(catalog.pick("x__--", &PickOptions::new(9)).iter().all(|pick| pick.score <= 1.0));
}

#[test]
fn what_fits_nothing_picks_nothing() {
    let catalog = catalog(office());
    for query in ["", " \n", "🙂🙃👩‍👩‍👧", "\u{200b}\u{301}", "quux", "!?"] {
        assert!(catalog.pick(query, &PickOptions::default()).is_empty(), "{query:?}");
    }
    assert!(catalog.pick("tasks", &PickOptions::new(0)).is_empty());
    assert!(catalog.pick("tasks", &PickOptions::new(5).min_score(f64::NAN)).is_empty());
    assert!(catalog.pick("tasks", &PickOptions::new(5).min_score(1.1)).is_empty());
}

#[test]
fn some_tools_are_picked_always() {
    let options = PickOptions::new(1).always(["mail__send", "gone__away", "tasks__list"]);
    let catalog = catalog(office());
    let picks = catalog.pick("the zone of a city", &options);
    assert_eq!(names(&picks), ["mail__send", "tasks__list", "geo__getTimezone"]);
    assert_eq!(picks.iter().map(|pick| pick.always).collect::<Vec<_>>(), [true, true, false]);
    // A tool that is always picked is not picked a second time.
    assert_eq!(names(&catalog.pick("send an email", &options)), ["mail__send", "tasks__list"]);
    assert_eq!(catalog.pick("", &options).len(), 2);
}

#[test]
fn equal_tools_come_in_the_order_of_their_names() {
    let twins = || ["b__x", "c__x", "a__x"].map(|name| tool(name, "Reads the weather.", &[]));
    let mut turned = twins();
    turned.reverse();
    let options = PickOptions::new(9);
    let picks = catalog(twins()).pick("weather", &options);
    assert_eq!(names(&picks), ["a__x", "b__x", "c__x"]);
    assert_eq!(picks, catalog(turned).pick("weather", &options));
}

#[test]
fn reasons_say_what_was_found_where() {
    let picks = catalog(office()).pick("Please send the subject to Ada", &PickOptions::new(1));
    let [pick] = picks.as_slice() else { panic!("{picks:?}") };
    assert!(pick.score > 0.05 && pick.score <= 1.0, "{}", pick.score);
    let reason = |word: &str, field| pick.reasons.iter().find(|one| one.word == word && one.field == field);
    assert!(reason("send", PickField::Name).is_some_and(|send| send.share > 0.3), "{:?}", pick.reasons);
    assert!(reason("subject", PickField::Argument).is_some() && reason("ada", PickField::Name).is_none());
    let sum: f64 = pick.reasons.iter().map(|reason| reason.share).sum();
    assert!((sum - 1.0).abs() < 0.01, "{sum}");
}

#[test]
fn function_words_do_not_score() {
    let catalog = catalog([
        tool("reports__export_log", "Exports what is in the log, as it is, to a file that you can read.", &[]),
        tool("tools__find", "Say in a few words what the tool has to do, and what it is for.", &[]),
        tool("tasks__list", "Lists the tasks.", &[]).also(["overdue", "To-Do", "due today"]),
        tool("tasks__delete", "Deletes one of the tasks.", &[]),
    ]);
    let first = |query: &str| catalog.pick(query, &PickOptions::default()).first().map(|pick| pick.name.to_string());
    assert_eq!(first("is anything overdue?").as_deref(), Some("tasks__list"));
    assert_eq!(first("what is due today?").as_deref(), Some("tasks__list"));
    for query in ["what do I have to do?", "is it in that?", "Can you do this for me, and why?"] {
        let picks = catalog.pick(query, &PickOptions::new(9).min_score(0.0));
        assert!(picks.is_empty(), "{query}: {picks:?}");
    }
    let picks = catalog.pick("which of the tasks are what?", &PickOptions::new(9));
    let words = picks.iter().flat_map(|pick| &pick.reasons).map(|reason| reason.word.as_str());
    assert!(words.clone().count() > 0 && words.into_iter().all(|word| word.contains("task")), "{picks:?}");
}

#[test]
fn words_of_the_author_find_a_tool_and_no_other() {
    let plain = || tool("tasks__list", "Lists the tasks.", &[]);
    let editor = || tool("editor__open_in_editor", "Opens a file in the editor.", &[]);
    let first = |catalog: &ToolCatalog, query: &str| catalog.pick(query, &PickOptions::default())[0].clone();
    let without = catalog([plain(), editor()]);
    assert_eq!(first(&without, "Which tasks are open?").name.as_str(), "editor__open_in_editor");
    let with = catalog([plain().also(["open", "to-do"]), editor()]);
    let pick = first(&with, "Which tasks are open?");
    assert_eq!(pick.name.as_str(), "tasks__list");
    assert!(pick.reasons.iter().any(|reason| reason.field() == "also" && reason.word == "open"), "{pick:?}");
    assert_eq!(first(&with, "open the file").name.as_str(), "editor__open_in_editor");
    assert_eq!(first(&with, "my todo").name.as_str(), "tasks__list", "two words are found as one");
    // The words of a name win, regardless of how many words an author adds.
    let stuffed: Vec<_> = ["open", "file", "editor"].iter().cycle().take(3000).copied().collect();
    let greedy = catalog([plain().also(stuffed), editor()]);
    assert_eq!(first(&greedy, "open this in the editor").name.as_str(), "editor__open_in_editor");
}

#[test]
fn words_that_no_tool_has_are_named() {
    let catalog = catalog(office());
    assert_eq!(catalog.unmatched("Is the task overdue, or the ZONE wrong?"), ["overdue", "wrong"]);
    assert_eq!(catalog.unmatched("an e-mail, emailing"), [""; 0], "two words are found as one");
    assert_eq!(catalog.unmatched("overdue Overdue \u{1f642} !?"), ["overdue"]);
    assert_eq!(catalog.unmatched(""), [""; 0]);
    assert_eq!(catalog.unmatched("what is it?"), [""; 0]);
    let many: Vec<_> = (0..500).map(|at| format!("quux{}", "x".repeat(at % 100 + 1))).collect();
    let many = many.join(" ");
    assert_eq!(catalog.unmatched(&many).len(), PickIndex::UNMATCHED);
    // A word that only a hidden tool has matches nothing.
    let mut index = PickIndex::default();
    let slots: Vec<_> = catalog.specs().map(|spec| (index.insert(spec), spec.name.to_string())).collect();
    let visible = |slot: usize| slots.iter().any(|(known, name)| *known == slot && name != "mail__send");
    assert_eq!(index.unmatched("email a task", &visible), ["email"]);
}

#[test]
fn tools_that_come_and_go_leave_no_trace() {
    let all = catalog(office());
    let mut changed = PickIndex::default();
    for spec in all.specs() {
        changed.insert(spec);
    }
    let extra = catalog([tool("tasks__list_all", "Lists the tasks of every project, also tasks that are done.", &[])]);
    let other = catalog([tool("mail__send", "Something else, about tasks and the weather.", &[])]);
    extra.specs().chain(other.specs()).for_each(|spec| {
        changed.insert(spec);
    });
    assert_eq!(changed.pick("every task", &PickOptions::new(1), &|_| true)[0].name.as_str(), "tasks__list_all");
    assert!(changed.remove("tasks__list_all") && !changed.remove("tasks__list_all"));
    changed.insert(all.get("mail__send").expect("a tool"));
    for query in ["send a task", "weather", "the zone of the project", "something else"] {
        let options = PickOptions::new(9);
        assert_eq!(changed.pick(query, &options, &|_| true), all.pick(query, &options), "{query}");
    }
}

#[test]
fn a_description_full_of_words_wins_nothing() {
    let words = "tasks list project change title send email zone city weather hotel find update place person subject ";
    for stuffed in [words.to_owned(), words.repeat(4), words.repeat(400), "email ".repeat(2000)] {
        let catalog = catalog(office().into_iter().chain([tool("spam__everything", &stuffed, &[])]));
        for (query, wanted) in [
            ("list the tasks of the project", "tasks__list"),
            ("send an email", "mail__send"),
            ("find the time zone of a place", "geo__getTimezone"),
        ] {
            let picks = catalog.pick(query, &PickOptions::default());
            assert_eq!(names(&picks)[0], wanted, "{query}: {:?}", names(&picks));
        }
    }
}

#[test]
fn hostile_text_is_bounded() {
    let catalog = catalog(office().into_iter().chain([
        tool("long__word", &"a".repeat(200_000), &[]),
        tool("long__marks", &"e\u{301}\u{302}".repeat(50_000), &[]),
    ]));
    let long = [
        "tasks ".repeat(170_000),
        "🙂".repeat(250_000),
        "天".repeat(330_000),
        format!("{}the tasks of a project", "x9 ".repeat(330_000)),
        (0..150_000).flat_map(|number| ["w".to_owned(), number.to_string(), " ".to_owned()]).collect(),
    ];
    for query in &long {
        let picks = catalog.pick(query, &PickOptions::default());
        assert!(picks.iter().all(|pick| pick.score.is_finite()));
    }
    // A question after a long paste is read.
    assert_eq!(catalog.pick(&long[3], &PickOptions::default())[0].name.as_str(), "tasks__list");
}
