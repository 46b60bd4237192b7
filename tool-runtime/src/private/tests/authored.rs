//! The tools under test.

#![allow(
    clippy::unnecessary_wraps,
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "a tool returns a `Result` and a hook takes references, whatever the types"
)]

use super::*;

/// Everything in its own order.
///
/// Second paragraph.
#[tool(
    name = "test__mixed",
    title = "Mixed",
    effect = state_change,
    redact = ["text"],
    model = ["more"],
    tags = ["a", "b"],
    timeout = "2m",
    max_result_bytes = 1_024,
    idempotent,
    require_any = [r#type, self_],
    validate = ordered
)]
#[serde(rename_all = "camelCase")]
pub(super) async fn mixed(
    clock: &dyn Clock,
    /// Type.
    r#type: Option<String>,
    writer: &dyn TaskWriter,
    /// Id.
    #[arg(evidence = "test__list")]
    task_id: String,
    ctx: &ToolContext,
    /// Arguments.
    #[arg(default = vec!["x".to_owned()])]
    args: Vec<String>,
    /// Self.
    #[arg(sensitive)]
    #[serde(rename = "me")]
    self_: Option<u8>,
) -> Result<Shown, ToolError> {
    let retitled = writer.retitle(&task_id, &args.join("+")).await;
    Ok(shown(format!("{} {:?} {} {} {:?}", clock.now(), r#type, retitled, ctx.tool(), self_)))
}

fn ordered(_: &Option<String>, task_id: &str, args: &[String], _: &Option<u8>) -> Result<(), Violation> {
    if args.iter().any(|arg| arg == task_id) {
        return Err(Violation::new("/args", "semantic", "not the id"));
    }
    Ok(())
}

/// Blocks.
#[tool(name = "test__blocking", effect = read_only, redact = ["text"], blocking)]
pub(super) fn blocking(
    clock: &dyn Clock,
    /// Whether to panic.
    panics: bool,
) -> Result<Shown, std::fmt::Error> {
    assert!(!panics, "on purpose");
    if clock.now() == 0 {
        return Err(std::fmt::Error);
    }
    Ok(shown(std::thread::current().name().unwrap_or_default() != "the test"))
}

/// Fails.
#[tool(name = "test__failing", effect = read_only, redact = [])]
pub(super) fn failing() -> std::io::Result<()> {
    Err(std::io::Error::other("disk 7"))
}

/// A struct.
#[tool(
    name = "test__update",
    effect = state_change,
    redact = ["text"],
    require_any = [title],
    validate = Update::is_sane
)]
#[derive(Debug)]
pub(super) struct Update {
    /// Id.
    id: String,
    /// Title.
    #[schemars(length(max = 5))]
    title: Option<String>,
    /// How often.
    #[arg(default = 2)]
    times: u8,
}

impl Update {
    fn is_sane(&self) -> Result<(), Violation> {
        if self.times == 0 { Err(Violation::new("/times", "semantic", "above 0")) } else { Ok(()) }
    }
}

impl ToolComponent for Update {
    type Capabilities = (Cap<dyn TaskWriter>,);
    type Output = Shown;

    async fn run(self, (writer,): Self::Capabilities, call: &Call<Self>) -> Result<Shown, ToolError> {
        let title = self.title.unwrap_or_default().repeat(self.times.into());
        Ok(shown(format!("{} {}", writer.retitle(&self.id, &title).await, call.tool())))
    }
}

#[derive(Deserialize)]
pub(super) struct Opaque {
    pub(super) name: String,
}

/// No schema.
#[tool(
    name = "test__opaque",
    effect = read_only,
    redact = ["$"],
    allow_no_schema,
    no_schema_mode = approve_each
)]
pub(super) fn opaque(
    /// Whatever.
    opaque: Opaque,
) -> Result<String, ToolError> {
    Ok(opaque.name)
}

/// On the client.
#[tool(
    name = "test__client",
    effect = external_side_effect,
    redact = ["$"],
    execution = client,
    client_result = bool,
    prepare = ["text"]
)]
pub(super) fn client() -> Result<Shown, ToolError> {
    Ok(shown("prepared"))
}
