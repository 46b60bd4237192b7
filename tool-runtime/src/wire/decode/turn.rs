//! [`Turn`]: the decoding state of one response. [`Writer`] changes it by the rules that all formats share.

mod beginning;
mod compose;
mod parts;
mod read;
mod writer;

use std::collections::HashMap;
use std::sync::Arc;

use crate::call::{Arguments, CallId, IdSource, ToolCall};
use crate::wire::decode::DecodeOptions;
use crate::wire::{CallStatus, Decoded, DecodedCall, FinishReason, Format, Usage, WireError, WireErrorKind};

pub(crate) use parts::{BoundTo, Layout};
use parts::{MAX_PARTS, Slot};
pub(crate) use writer::Writer;

/// The state of one response. While the response arrives, each byte of a delta is copied once. Only
/// [`finish`](Self::finish) removes calls and shortens texts.
pub(crate) struct Turn {
    format: Format,
    calls: Vec<Call>,
    by_id: HashMap<CallId, usize>,
    text: String,
    refusal: String,
    layout: Layout,
    /// The number of bytes and parts that replacements of texts have moved so far.
    moved: usize,
    ending: Ending,
    provider_finish: Option<String>,
    error: Option<WireError>,
    usage: Option<Usage>,
    response_id: Option<String>,
    model: Option<String>,
    closed: bool,
    max_calls: usize,
    max_provider_state_bytes: usize,
    /// The index of the current frame, from 0.
    pub(crate) frame: usize,
}

#[derive(Default)]
struct Call {
    /// The id of the call in the history: the provider's, or a generated one. `None` until it is known.
    id: Option<CallId>,
    /// The first id that the provider sent for the call, even if another call has it.
    wire_id: Option<String>,
    name: String,
    /// The arguments as text. Empty while `object` is set.
    text: String,
    /// The arguments of a provider that sends them as one JSON object.
    object: Option<Arc<str>>,
    /// The index of the frame in which the call began.
    frame: usize,
    /// The index of the call's part in the layout.
    part: usize,
    /// Whether the display event for the start of the call was shown.
    announced: bool,
    /// The number of bytes of the arguments that were shown.
    shown: usize,
    /// Whether the call must not run, because another model took over the response after it or because it repeats
    /// another call.
    is_void: bool,
}

/// How the turn ended, if it has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The provider has not ended the turn.
    Open,
    /// The provider ended the turn normally.
    Well,
    /// The provider cut the turn off, for example at its limit of tokens.
    Cut(FinishReason),
}

impl Turn {
    pub(crate) fn new(format: Format, options: &DecodeOptions) -> Self {
        Self {
            format,
            calls: Vec::new(),
            by_id: HashMap::new(),
            text: String::new(),
            refusal: String::new(),
            layout: Layout::default(),
            moved: 0,
            ending: Ending::Open,
            provider_finish: None,
            error: None,
            usage: None,
            response_id: None,
            model: None,
            closed: false,
            max_calls: options.max_calls,
            max_provider_state_bytes: options.max_provider_state_bytes,
            frame: 0,
        }
    }

    /// Sets the limits of the turn.
    pub(super) fn limit(&mut self, options: &DecodeOptions) {
        (self.max_calls, self.max_provider_state_bytes) = (options.max_calls, options.max_provider_state_bytes);
    }

    /// Whether further input is ignored: the end mark was seen, or the turn failed.
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether the turn failed before any part of it could be read.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.error.is_some() && self.layout.is_empty() && self.usage.is_none()
    }

    pub(crate) fn fail(&mut self, error: WireError) {
        // The first failure is the cause; later ones follow from it.
        self.error.get_or_insert(error);
        self.closed = true;
    }

    /// Adds a part and returns its index. Too many parts fail the turn, which bounds all state that grows with them.
    fn add(&mut self, slot: Slot) -> usize {
        let part = self.layout.add(slot);
        if part >= MAX_PARTS {
            self.fail(WireError::new(WireErrorKind::LimitExceeded));
        }
        part
    }

    /// Removes the void calls.
    fn drop_void(&mut self) {
        let mut kept = 0;
        let places: Vec<_> = self
            .calls
            .iter()
            .map(|call| {
                (!call.is_void).then(|| {
                    kept += 1;
                    kept - 1
                })
            })
            .collect();
        if kept < places.len() {
            self.layout.move_calls(|call| places.get(call).copied().flatten());
            self.calls.retain(|call| !call.is_void);
        }
    }

    /// Returns the result. Calls are complete only if the turn ended well (rule R10 of `wire`). An answer over the size
    /// limit is cut to its beginning. `unkept` is the number of bytes that the decoder could not read. The result also
    /// counts the bytes that the cut removes.
    pub(crate) fn finish(mut self, options: &DecodeOptions, mut unkept: usize) -> Decoded {
        if self.error.is_none() && self.ending == Ending::Open {
            self.error = Some(WireError::new(WireErrorKind::TruncatedStream));
        }
        self.drop_void();
        if self.error.as_ref().is_some_and(|error| error.kind == WireErrorKind::LimitExceeded) {
            unkept += self.keep_beginning();
        }
        let clean = self.error.is_none() && self.ending == Ending::Well;
        // An unsupported item does not change the finish reason. The result still has the error, so no call runs.
        let broken = self.error.as_ref().filter(|error| error.kind != WireErrorKind::UnsupportedItem);
        let finish = match (broken, self.ending) {
            (Some(error), _) if error.kind == WireErrorKind::TruncatedStream => FinishReason::Truncated,
            (Some(_), _) | (None, Ending::Open) => FinishReason::Error,
            (None, Ending::Cut(finish)) => finish,
            // If there are calls, they decide, not the provider's finish reason (R5).
            (None, Ending::Well) if !self.calls.is_empty() => FinishReason::ToolCalls,
            (None, Ending::Well) if !self.refusal.is_empty() => FinishReason::Refusal,
            (None, Ending::Well) => FinishReason::Stop,
        };
        let response_id = self.response_id;
        let finished = self.calls.into_iter().map(|call| {
            let mut decoded = call.finish(clean, options);
            decoded.call.provider = Some(self.format.as_str().into());
            decoded.call.response_id.clone_from(&response_id);
            decoded
        });
        let mut calls: Vec<_> = finished.collect();
        for (at, provider_state) in self.layout.of_calls() {
            if let Some(decoded) = calls.get_mut(at) {
                decoded.call.set_raw(provider_state.shared());
            }
        }
        Decoded {
            calls,
            text: self.text,
            finish,
            provider_finish: self.provider_finish,
            error: self.error,
            refusal: (!self.refusal.is_empty()).then_some(self.refusal),
            usage: self.usage,
            response_id,
            layout: self.layout.of_model(options.model.as_deref().or(self.model.as_deref())),
            model: self.model,
            unkept,
        }
    }
}

impl Call {
    fn finish(self, clean: bool, options: &DecodeOptions) -> DecodedCall {
        let status = self.status(clean);
        let id_source = if self.wire_id_is_used() { IdSource::Provider } else { IdSource::Generated };
        let arguments = match self.object {
            // An object that cannot be parsed is kept as text.
            Some(text) if matches!(status, CallStatus::InvalidJson | CallStatus::TruncatedArguments) => {
                Arguments::Text(text)
            }
            Some(object) => Arguments::Object(object),
            None => Arguments::Text(self.text.into()),
        };
        let mut call = ToolCall::new(self.id.unwrap_or_else(CallId::generate), self.name, arguments);
        call.id_source = id_source;
        if !clean {
            call = call.incomplete();
        }
        call.outside_choice = !options.choice.allows(&call.name);
        call.provider_call_id = self.wire_id;
        call.frame = Some(self.frame);
        let offered = options.offered.as_ref().is_none_or(|offered| offered.contains(&call.name));
        DecodedCall { call, status, offered }
    }

    fn wire_id_is_used(&self) -> bool {
        match (&self.id, &self.wire_id) {
            (Some(id), Some(wire)) => id.as_str() == wire,
            _ => false,
        }
    }

    /// The status of the name and the arguments (R8).
    fn status(&self, clean: bool) -> CallStatus {
        if self.name.is_empty() {
            return CallStatus::MissingName;
        }
        CallStatus::of_arguments(self.object.as_deref().unwrap_or(&self.text), clean)
    }
}
