/// Sends a message.
///
/// Ask before you send.
#[tool(
    name = "mail__send",
    title = "Send mail",
    summary = ["Sends {{mail}} about \"{subject}\" to {to_address}", "Sends a {type.name} to {to_address}"],
    effect = external_side_effect,
    redact = ["id"],
    model = ["status"],
    tags = ["mail", "slow"],
    also = ["letter", "post"],
    timeout = "2m",
    max_result_bytes = 4_096,
    execution = client,
    client_result = Sent<Receipt, Cause>,
    prepare = ["draft"],
    idempotent,
    blocking,
    require_any = [subject, r#type],
    validate = checks::addressed,
    precondition = checks::unsent(to_address, *copies, mail)
)]
#[serde(rename_all = "camelCase")]
#[must_use]
pub(crate) fn send(
    /// Who gets it.
    #[arg(evidence = "contacts__list")]
    to_address: String,
    ctx: &ToolContext,
    /// Subject.
    #[schemars(length(max = 120))]
    subject: Option<String>,
    mail: &Connection<dyn Mail>,
    /// Kind.
    #[serde(rename = "kind")]
    r#type: Option<Option<Kind>>,
    /// Password of the account.
    #[arg(sensitive, default = String::new())]
    password: String,
    #[allow(unused_variables)]
    /// Copies.
    #[serde(default)]
    mut copies: Vec<String>,
) -> Answer {
    mail.send(ctx, to_address, subject, r#type, password, copies)
}
