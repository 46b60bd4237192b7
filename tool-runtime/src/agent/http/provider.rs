//! The provider behind an endpoint, by its name in the semantic conventions of `OpenTelemetry`.

use reqwest::Url;

use crate::wire::Format;

/// Hosts or host suffixes, each with its provider.
const HOSTS: &[(&str, &str)] = &[
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("api.cohere.ai", "cohere"),
    ("api.cohere.com", "cohere"),
    ("api.deepseek.com", "deepseek"),
    ("api.groq.com", "groq"),
    ("api.mistral.ai", "mistral_ai"),
    ("api.moonshot.ai", "moonshot_ai"),
    ("api.moonshot.cn", "moonshot_ai"),
    ("api.perplexity.ai", "perplexity"),
    ("api.x.ai", "x_ai"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("openai.azure.com", "azure.ai.openai"),
];

/// Returns the provider of a known host. For any other host, returns the provider that defines the format.
pub(super) fn provider(format: Format, url: &Url) -> &'static str {
    let host = url.host_str().unwrap_or_default();
    let belongs = |end: &str| host.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with(['.', '-']));
    let known = HOSTS.iter().find(|(end, _)| belongs(end)).map(|(_, provider)| *provider);
    known.unwrap_or(match format {
        Format::OpenAiChat | Format::OpenAiResponses => "openai",
        Format::Anthropic => "anthropic",
        Format::Ollama => "ollama",
        Format::Gemini => "gcp.gemini",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_wins_over_the_format() {
        for (format, url, expected) in [
            (Format::OpenAiChat, "https://api.openai.com/v1", "openai"),
            (Format::OpenAiChat, "https://api.mistral.ai/v1", "mistral_ai"),
            (Format::OpenAiChat, "https://my.openai.azure.com/openai", "azure.ai.openai"),
            (Format::OpenAiChat, "https://europe-west4-aiplatform.googleapis.com/v1", "gcp.vertex_ai"),
            (Format::OpenAiChat, "https://notapi.x.ai/v1", "openai"),
            (Format::OpenAiResponses, "http://127.0.0.1:8080", "openai"),
            (Format::Anthropic, "https://api.anthropic.com", "anthropic"),
            (Format::Gemini, "https://example.org", "gcp.gemini"),
            (Format::Ollama, "http://localhost:11434", "ollama"),
        ] {
            assert_eq!(Url::parse(url).map(|url| provider(format, &url)), Ok(expected), "{url}");
        }
    }
}
