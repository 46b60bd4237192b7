//! [`ChatError`]: why a posted body is refused.

use std::fmt;

/// The reason why a body that a chat UI posted, or a history that a client sent, is refused. It contains no values of
/// it.
///
/// [`ChatReader`](crate::wire::ui::ChatReader) has an example.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChatError {
    pub(crate) kind: ChatErrorKind,
    /// A JSON pointer to the place; empty for the whole.
    pub path: String,
}

/// The kinds of [`ChatError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChatErrorKind {
    /// More bytes, messages or parts than allowed.
    TooLarge,
    /// Not JSON, or not in the form that the client posts.
    Malformed,
    /// A role that no message of a client has: with `useChat`, any role other than `user` and `assistant`.
    Role,
    /// A part of the user's message that is neither text nor a file.
    Part,
    /// A file that is empty, does not match its media type, or has an address that is neither a data URL in Base64 nor
    /// `http` or `https`.
    File,
    /// A trigger other than `submit-message`. An answer cannot be generated again, because its tools may have run.
    Trigger,
    /// A result that does not follow its call.
    Orphan,
    /// A second call or a second result of one id.
    Duplicate,
    /// A call or a result that this side did not issue, or issued differently, or a part with provider state, which a
    /// client never gets.
    Forged,
    /// More messages or longer content than a history of a client may have.
    HistoryTooLarge,
    /// Approvals wait, and `resume` does not answer each of them.
    Interrupts,
    /// The body has neither text nor a file, and answers no call that waits.
    Empty,
}

impl ChatError {
    pub(super) fn new(kind: ChatErrorKind, path: impl Into<String>) -> Self {
        Self { kind, path: path.into() }
    }

    /// Returns the stable code: `chat_too_large`, `chat_malformed`, `chat_role`, `chat_part`, `chat_file`,
    /// `chat_trigger`, `chat_interrupts` or `chat_empty`; or for messages that claim calls or results that were not
    /// issued here `history_orphan`, `history_duplicate`, `history_forged` or `history_too_large`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.kind.code()
    }
}

impl ChatErrorKind {
    const fn code(self) -> &'static str {
        match self {
            Self::TooLarge => "chat_too_large",
            Self::Malformed => "chat_malformed",
            Self::Role => "chat_role",
            Self::Part => "chat_part",
            Self::File => "chat_file",
            Self::Trigger => "chat_trigger",
            Self::Orphan => "history_orphan",
            Self::Duplicate => "history_duplicate",
            Self::Forged => "history_forged",
            Self::HistoryTooLarge => "history_too_large",
            Self::Interrupts => "chat_interrupts",
            Self::Empty => "chat_empty",
        }
    }
}

impl fmt::Display for ChatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ChatErrorKind::TooLarge => "the body is larger than allowed",
            ChatErrorKind::Malformed => "the body does not have the form that a chat UI posts",
            ChatErrorKind::Role => "a message has a role that a client does not write",
            ChatErrorKind::Part => "a part of the message is neither text nor a file",
            ChatErrorKind::File => {
                "a file does not match its media type, or its address is neither a data URL in Base64 nor a web address"
            }
            ChatErrorKind::Trigger => "the trigger is not `submit-message`; send another message instead",
            ChatErrorKind::Duplicate => "a call occurs twice",
            ChatErrorKind::HistoryTooLarge => "the messages are larger than allowed",
            ChatErrorKind::Orphan | ChatErrorKind::Forged => {
                "the messages claim a call or a result that was not issued here"
            }
            ChatErrorKind::Interrupts => "`resume` does not answer every interrupt of the last run",
            ChatErrorKind::Empty => "the body has neither text nor a file, and answers no call that waits",
        })?;
        if self.path.is_empty() { Ok(()) } else { write!(f, " at {}", self.path) }
    }
}

impl std::error::Error for ChatError {}
