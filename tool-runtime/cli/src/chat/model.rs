//! Creates the agent of a conversation, with the model of an endpoint or without a model.

use async_trait::async_trait;
use tool_runtime::agent::http::HttpModel;
use tool_runtime::agent::{Agent, DisplayFn, ModelClient, ModelError, ModelRequest};
use tool_runtime::catalog::PickOptions;
use tool_runtime::wire::{Decoded, Format};

use crate::endpoint::Endpoint;
use crate::exit::Failure;
use crate::input;
use crate::terminal::losses;

/// Creates the agent for an endpoint; `None` if the endpoint has no URL.
pub(crate) fn agent(endpoint: &Endpoint) -> Result<Option<Agent>, Failure> {
    let Some(url) = &endpoint.model_url else { return Ok(None) };
    let Some(name) = &endpoint.model else {
        return Err(Failure::usage("the endpoint needs a model: add `--model NAME`"));
    };
    let format = endpoint.format.unwrap_or(Format::OpenAiChat);
    let settings = endpoint.asked.settings();
    let encoded = format
        .encode_settings(&settings, Some(name))
        .map_err(|error| Failure::usage(error.to_string()).code("settings"))?;
    losses(&encoded.losses);
    let mut builder = HttpModel::builder(format, url, name)
        .stream(!endpoint.no_stream)
        .strict(endpoint.strict)
        .provider_limits(!endpoint.no_provider_limits)
        .timeout(endpoint.timeout)
        .idle_timeout(endpoint.idle_timeout)
        .retries(endpoint.retries);
    for (name, value) in &endpoint.header {
        builder = builder.header(name, value);
    }
    if let Some(time) = endpoint.first_byte_timeout {
        builder = builder.first_byte_timeout(time);
    }
    if let Some(url) = &endpoint.proxy {
        builder = builder.proxy(url);
    }
    if let Some(path) = &endpoint.ca_file {
        builder = builder.root_certificates(input::file(path)?);
    }
    if let Some(variable) = &endpoint.key_env {
        let key = std::env::var(variable).map_err(|_| {
            Failure::usage(format!("the environment variable `{variable}` holds no readable key; set it"))
        })?;
        builder = builder.key(key);
    }
    let model = builder.build().map_err(|error| Failure::usage(error.detail()).code(error.code()))?;
    let agent = Agent::new(model).parallel(endpoint.parallel).settings(settings);
    let agent = match endpoint.pick {
        Some(most) => agent.pick(PickOptions::new(most)),
        None => agent,
    };
    Ok(Some(match &endpoint.instructions {
        Some(text) => agent.instructions(text.as_str()),
        None => agent,
    }))
}

/// Creates an agent that completes waiting calls and sends no model request.
pub(crate) fn offline() -> Agent {
    Agent::new(Offline)
}

struct Offline;

#[async_trait]
impl ModelClient for Offline {
    fn name(&self) -> &'static str {
        "none"
    }

    async fn complete(&self, _: ModelRequest<'_>, _: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        Err(ModelError::connect("the command has no model"))
    }
}
