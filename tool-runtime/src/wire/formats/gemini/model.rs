//! The generation of a Gemini model, from its name.

/// The generations of Gemini that need different requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// Gemini 1 and 2.
    Older,
    /// Gemini 3 and later, and names without a number (`gemini-flash-latest`), which mean the newest model.
    Newer,
}

/// The generation; `None` if the name is not a Gemini model. The rules are those of the AI SDK (`@ai-sdk/google`,
/// `getGoogleModelCapabilities`).
pub(super) fn generation(model: Option<&str>) -> Option<Generation> {
    let name = short(model?).strip_prefix("gemini-")?;
    let starts =
        |older: &str| name.strip_prefix(older).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']));
    let is_older = starts("1") || starts("2") || starts("robotics-er-1.5") || matches!(name, "pro" | "pro-vision");
    Some(if is_older { Generation::Older } else { Generation::Newer })
}

/// Whether the model is a Pro model, which always thinks.
pub(super) fn is_pro(model: Option<&str>) -> bool {
    model.is_some_and(|model| short(model).split('-').any(|word| word == "pro"))
}

/// The name without the path before it.
fn short(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}
