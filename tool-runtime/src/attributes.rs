//! Re-exports the attribute macros. Their documentation is here, because its examples need this crate to compile.

/// Makes a trait a capability: a resource that tools may borrow as `&dyn Trait`.
///
/// | key | value |
/// | --- | --- |
/// | `effect` | required: `read_only`, `state_change` or `external_side_effect` |
/// | `kind` | a word such as `"calendar"`: the trait uses a user's account, and tools borrow it only as `&Connection<dyn Trait>` |
/// | `crate` | the path of this crate, if it is not `::tool_runtime` |
///
/// The trait becomes `Send + Sync + 'static`. An `async fn` needs `#[async_trait]` of the `async-trait` crate below
/// this attribute, and on every `impl` of the trait. Where an `impl` lacks `#[async_trait]`, the compiler reports
/// E0195, "lifetime parameters or bounds on method do not match the trait declaration". Write one trait for reading and
/// another for writing: a `read_only` tool can borrow `read_only` capabilities only.
///
/// ```
/// use async_trait::async_trait;
/// use tool_runtime::capability;
///
/// /// Reads the time.
/// #[capability(effect = read_only)]
/// pub trait Clock {
///     /// Seconds since 1970.
///     fn now(&self) -> i64;
/// }
///
/// /// A user's calendar at another service.
/// #[capability(effect = external_side_effect, kind = "calendar")]
/// #[async_trait]
/// pub trait Calendar {
///     /// Adds an entry.
///     async fn add(&self, title: &str) -> std::io::Result<()>;
/// }
///
/// struct Remote;
///
/// #[async_trait]
/// impl Calendar for Remote {
///     async fn add(&self, _title: &str) -> std::io::Result<()> {
///         Ok(())
///     }
/// }
/// ```
///
/// # Supertraits
///
/// A tool can call every method of a supertrait. A supertrait must therefore be `Debug`, `Display`, an auto trait, or a
/// capability whose effect is not stronger than that of the trait (the table above lists the effects from the weakest
/// to the strongest). Every other supertrait is refused, including `Any` and `Error`, because a tool could downcast
/// them to the adapter.
///
/// # Generic traits
///
/// A capability is bound as one `dyn` trait, so it has no generic parameters. Write one capability for each type, and
/// implement it for every type that implements the generic trait:
///
/// ```
/// use tool_runtime::capability;
///
/// trait Lookup<T> { fn find(&self, id: u64) -> Option<T>; }
///
/// /// Finds names of parts.
/// #[capability(effect = read_only)]
/// trait PartLookup { fn find_part(&self, id: u64) -> Option<String>; }
///
/// impl<L: Lookup<String> + Send + Sync + 'static> PartLookup for L {
///     fn find_part(&self, id: u64) -> Option<String> { self.find(id) }
/// }
/// ```
pub use tool_runtime_macros::capability;
/// Makes a function, or a struct of arguments, a tool that a model may call.
///
/// The item is the definition of the tool. A model reads its doc comment, and its arguments define the schema and the
/// parser. Every program that links the item can collect it into a [catalog](crate::ToolCatalog).
///
/// # Functions
/// Owned parameters are arguments from the model, each with a doc comment. Borrowed parameters are injected by the
/// runtime: `&dyn Trait` of a [`#[capability]`](macro@crate::capability) trait,
/// [`&Connection<dyn Trait>`](crate::Connection) of a capability with a `kind`, and
/// [`&ToolContext`](crate::ToolContext). The function stays as it is written, and tests may call it.
///
/// ```
/// use tool_runtime::{ToolError, capability, definition, tool};
///
/// /// Reads the time.
/// #[capability(effect = read_only)]
/// trait Clock { fn now(&self) -> i64; }
///
/// /// Days from now until a date.
/// #[tool(name = "core__days_until", effect = read_only, redact = ["$"])]
/// fn days_until(
///     clock: &dyn Clock,
///     /// The date, in seconds since 1970.
///     date: i64,
///     /// The length of a day, in seconds.
///     #[arg(default = 86_400)]
///     #[schemars(range(min = 1))]
///     day: i64,
/// ) -> Result<i64, ToolError> {
///     date.checked_sub(clock.now()).map(|left| left / day).ok_or(ToolError::safe("That is too far away."))
/// }
///
/// let definition = definition!(days_until)?;
/// assert_eq!(definition.name.as_str(), "core__days_until");
/// assert_eq!(&*definition.description, "Days from now until a date.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A tool is a free function: it cannot be inside an `impl` or a trait. The macro adds a hidden type with the name of
/// the function, for `definition!`, so no module or type in the same scope can have that name.
///
/// # Structs
///
/// The fields of a struct are its validated arguments. Its method `run`, in an `impl` block with `#[tool]`, is the code
/// of the tool. It takes `self`, borrows capabilities and connections as a function does, and borrows the context as
/// [`&Call<Self>`](crate::Call) or `&ToolContext`. The block stays as it is written and may hold other methods.
/// `#[tool]` implements `Deserialize` and `JsonSchema` for the struct; other derives are the author's.
///
/// ```
/// use tool_runtime::{ToolError, capability, tool};
///
/// /// Changes tasks.
/// #[capability(effect = state_change)]
/// trait TaskWriter { fn retitle(&self, id: u64, title: &str); }
///
/// /// Change the title of a task.
/// #[tool(name = "tasks__retitle", effect = state_change, redact = ["$"])]
/// #[derive(Debug)]
/// struct Retitle {
///     /// Id, as `tasks__list` returns it.
///     #[arg(evidence = "tasks__list")]
///     id: u64,
///     /// New title.
///     #[schemars(length(min = 1, max = 120))]
///     title: String,
/// }
///
/// #[tool]
/// impl Retitle {
///     async fn run(self, tasks: &dyn TaskWriter) -> Result<u64, ToolError> {
///         tasks.retitle(self.id, &self.title);
///         Ok(self.id)
///     }
/// }
///
/// assert_eq!(Retitle::definition()?.name.as_str(), "tasks__retitle");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A struct tool may also have a method `reconcile`, which looks up the outcome of a call whose end was not recorded
/// ([`ToolComponent::reconcile`](crate::ToolComponent::reconcile)), and a method `precondition`, which states what a
/// call depends on ([`ToolComponent::precondition`](crate::ToolComponent::precondition)). On an `impl` block the
/// attribute takes no key except `crate`, and implements [`ToolComponent`](crate::ToolComponent). An author can also
/// implement that trait by hand.
///
/// # Keys
///
/// | key | value |
/// | --- | --- |
/// | `name` | required: `"<namespace>__<tool>"`, at most 64 bytes of ASCII letters, digits, `_` and `-` |
/// | `effect` | required: `read_only`, `state_change` or `external_side_effect`, from the weakest to the strongest; no borrowed capability may have a stronger effect |
/// | `redact` | required: paths of the output that models, users and records may see; `[]` shows nothing |
/// | `model` | additional paths that only the model sees |
/// | `title` | a short name for people |
/// | `summary` | a sentence for the person who decides on a call: `"Deletes the task {task_id}"`, or a list of sentences, see below |
/// | `tags` | words that policies and views match: `["money", "calendar"]` |
/// | `also` | additional words by which the search for tools finds the tool: `["overdue", "to-do"]`. Models do not read them |
/// | `timeout` | the time limit of the tool, a whole number and `ms`, `s`, `m` or `h`: `"30s"`; by default only the policy limits it |
/// | `max_result_bytes` | the largest result, in bytes; items of a longer output that do not fit are left out and counted |
/// | `idempotent` | running the tool again with the same arguments has no further effect |
/// | `once` | a key such as `"refund:{payment_id}"`: only one call with the key takes effect, see below |
/// | `once_scope` | with `once`: where the key is unique: `tenant` (the default), `principal` or `run` |
/// | `once_for` | with `once`: how long the key keeps the result, a whole number and `m`, `h` or `d`: `"30d"`; forever by default |
/// | `blocking` | the function blocks its thread, so it runs on a separate one; not for `async fn` and structs |
/// | `require_any` | optional arguments, at least one of which must be given: `[title, due_date]` |
/// | `validate` | a function that checks the typed arguments, see below. It also runs on arguments that exceed bounds of the schema, so that a model reads all its mistakes at once |
/// | `precondition` | for functions: an `async fn` that returns the state on which a call depends, see below |
/// | `execution` | `client` if the tool only prepares the work and a client does it; `server` by default |
/// | `client_result` | with `execution = client`: the type that the client sends back |
/// | `prepare` | with `execution = client`: paths of the output that go to the client |
/// | `allow_no_schema`, `no_schema_mode` | the arguments have no schema and need `Deserialize` only. `reject_effects` refuses all calls unless the tool is `read_only`; `approve_each` lets every call wait for a person |
/// | `crate` | the path of this crate, if it is not `::tool_runtime`; `$crate::..` inside an exported macro |
///
/// ## Paths
///
/// `redact` is an allowlist: it names the parts that may be shown, and everything else is stripped. A path names a
/// leaf, which is a scalar or an array of scalars, with dots between the names: `"owner.name"`. A path passes through
/// arrays: `"items.title"` names the titles of all items. `*` names the values of a map (`"stock.*"`,
/// `"by_day.*.count"`). `"$"` is a whole output that is a scalar or an array of scalars. `"$media"` names the images
/// and files attached to the output of a tool that returns [`WithMedia`](crate::WithMedia).
/// [`Redaction`](crate::tool::Redaction) has a table.
///
/// ## Sentences
///
/// Braces in `summary` hold the name of an argument (`{title}`) or of a member of an argument (`{owner.name}`). A part
/// in brackets is left out unless all its arguments are present: `"Moves {task_id}[ to {due}]"`. Doubled braces and
/// brackets (`{{`, `[[`) stand for the characters themselves. Of a list, the first sentence with all its arguments
/// present is shown, otherwise the last one. Values are shown as the tool would receive them, shortened and on one
/// line, with strings quoted; an argument that is left out reads `(not given)`. Sensitive arguments cannot be named. A
/// sentence has at most 200 characters.
///
/// ## Effect keys
///
/// With `once`, at most one call with a key takes effect in its scope (`once_scope`), which can span many runs of one
/// store. A later call gets the result of the first ([`earlier_call`](crate::ToolExecResult::earlier_call)). While the
/// first call runs, a later call ends as `cancelled` with the code `in_progress`. While the outcome of the first call
/// is unknown, a later call waits for a person or for `reconcile`. If the tool returns an error, the next call may take
/// effect. Braces hold arguments as in `summary`; every call must have them, and none may be sensitive. Several tools
/// may share a key: after the effect, a call of another tool ends as `cancelled`, without the result.
///
/// ```
/// use tool_runtime::{ToolError, tool};
///
/// /// Pays a payment back.
/// #[tool(name = "pay__refund", effect = external_side_effect, redact = ["$"], once = "refund:{payment_id}")]
/// async fn refund(
///     /// Which payment.
///     payment_id: String,
///     /// Why; a later call with another note is the same refund.
///     note: Option<String>,
/// ) -> Result<String, ToolError> {
///     Ok(format!("{payment_id} {}", note.unwrap_or_default()))
/// }
/// ```
///
/// ## Hooks
///
/// `validate = check` calls `check(&Struct)`, or for a function `check(&first, &second, ..)` with all arguments in
/// order. `validate = check(from, *limit)` passes the named arguments, by reference or, with `*`, by value. The hook
/// returns `Result<(), `[`Violation`](crate::call::Violation)`>`. `Violation::of` takes the name of an argument in the
/// schema, and `Violation::at` a JSON Pointer to a place inside one, such as `/shelf/number`.
///
/// ```
/// use tool_runtime::call::Violation;
/// use tool_runtime::{ToolError, tool};
///
/// /// Moves parts between shelves.
/// #[tool(name = "parts__move", effect = read_only, redact = ["$"], validate = differ(from, to))]
/// fn move_parts(
///     /// Shelf to take from.
///     from: String,
///     /// Shelf to put on.
///     to: String,
///     /// How many.
///     count: u32,
/// ) -> Result<String, ToolError> {
///     Ok(format!("{count} from {from} to {to}"))
/// }
///
/// fn differ(from: &str, to: &str) -> Result<(), Violation> {
///     if from == to { Err(Violation::of("to", "another shelf than `from`")) } else { Ok(()) }
/// }
/// ```
///
/// ## Preconditions
///
/// `precondition = balance` calls `balance(..)` with all parameters of the function in order, arguments by reference.
/// `precondition = balance(account, accounts)` passes only these parameters; a `*` passes an argument by value. The
/// function is `async` and returns `Result<`[`Precondition`](crate::Precondition)`, E>`. It can borrow only
/// capabilities with `effect = read_only`, because the runner calls it before a person approves the call.
///
/// ```
/// use tool_runtime::{Precondition, ToolError, capability, tool};
///
/// /// Reads accounts.
/// #[capability(effect = read_only)]
/// trait Accounts { fn balance(&self, account: &str) -> i64; }
///
/// /// Pays out.
/// #[capability(effect = external_side_effect)]
/// trait Payments { fn pay(&self, account: &str) -> i64; }
///
/// /// Pays an account out.
/// #[tool(
///     name = "bank__pay_out",
///     effect = external_side_effect,
///     redact = ["$"],
///     precondition = balance(account, accounts)
/// )]
/// fn pay_out(
///     payments: &dyn Payments,
///     accounts: &dyn Accounts,
///     /// The account.
///     account: String,
/// ) -> Result<i64, ToolError> {
///     Ok(payments.pay(&account).min(accounts.balance(&account)))
/// }
///
/// async fn balance(account: &str, accounts: &dyn Accounts) -> Result<Precondition, ToolError> {
///     Ok(Precondition::of("balance", accounts.balance(account)))
/// }
/// ```
///
/// # Attributes of arguments
///
/// | attribute | means |
/// | --- | --- |
/// | `#[arg(default = EXPR)]` | may be left out; the schema publishes the default, so its type is `Serialize` |
/// | `#[arg(sensitive)]` | masked in events, records, approvals and logs |
/// | `#[arg(evidence = "ns__tool")]` | the value must have appeared in a result of this run or in the user's text; the named tool lists such values |
/// | `#[serde(..)]` | `rename`, `default`; on the item `rename_all` |
/// | `#[schemars(..)]` | `range`, `length`, `regex`, `pattern`, `contains`, `email`, `url`, `ip`, `inner`, `title`, `example` |
///
/// Other keys are refused, because each would let the schema and the parser disagree. An `Option<T>` may be absent or
/// `null`; a type that is written as `Option<Option<T>>` gives `Some(None)` for `null`.
///
/// # Types of other crates
///
/// An argument is `Deserialize + JsonSchema`, an output `Serialize + JsonSchema`. For the types of some other crates,
/// features of `schemars` provide the schema, for example `chrono04`, `jiff02`, `uuid1`, `url2`, `rust_decimal1`:
///
/// ```toml
/// schemars = { version = "1", features = ["chrono04", "uuid1"] }
/// ```
///
/// # Errors
///
/// A tool returns `Result<T, E>`, where `E` is [`ToolError`](crate::ToolError) or a [`std::error::Error`]. `?` converts
/// every `std::error::Error` into a `ToolError`; `anyhow::Error` and `Box<dyn Error + Send + Sync>` do not implement
/// the trait and are converted with [`ToolError::internal`](crate::ToolError::internal):
///
/// ```
/// use tool_runtime::{ToolError, tool};
///
/// fn load() -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
///     Ok("42".parse()?)
/// }
///
/// /// The answer.
/// #[tool(name = "core__answer", effect = read_only, redact = ["$"])]
/// fn answer() -> Result<u32, ToolError> {
///     load().map_err(ToolError::internal)
/// }
/// ```
pub use tool_runtime_macros::tool;
