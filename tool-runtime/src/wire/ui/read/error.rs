//! [`ChatErrorKind`]: the reasons to refuse a posted body.

use crate::error::ParseError;

/// The reason to refuse a body that a chat UI posted, or a history that a client sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChatErrorKind {
    /// More bytes, parts or files than allowed, or a reason that is too long.
    TooLarge,
    /// Not JSON, or not in the form that the client posts.
    Malformed,
    /// A role that clients must not send: with `useChat`, any role other than `user` and `assistant`.
    Role,
    /// A part of the user's message that is neither text nor a file.
    Part,
    /// A file that is empty, does not match its media type, or has a URL that is neither a Base64 data URL nor `http`
    /// or `https`.
    File,
    /// A trigger other than `submit-message`. An answer cannot be generated again, because its tools may already have
    /// run.
    Trigger,
    /// A result that does not follow its call.
    Orphan,
    /// A second call or a second result with the same id.
    Duplicate,
    /// A call or a result that the server did not issue in this form, or a part with provider state, which clients
    /// never get.
    Forged,
    /// More messages or longer content than a client's history may have.
    HistoryTooLarge,
    /// `resume` does not answer every waiting approval.
    Interrupts,
    /// The body contains no text, no file and no answer to a waiting call.
    Empty,
}

impl ChatErrorKind {
    /// Returns the error with its place in the body, as a JSON Pointer (empty for the whole body). The error contains
    /// no values.
    pub(super) fn at(self, pointer: impl Into<Box<str>>) -> ParseError {
        ParseError::new(self.code(), self.message()).at(pointer)
    }

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

    /// The message of the error, without values from the body.
    const fn message(self) -> &'static str {
        match self {
            Self::TooLarge => "the body is larger than allowed",
            Self::Malformed => "the body does not have the form that a chat UI posts",
            Self::Role => "a message has a role that clients must not send",
            Self::Part => "a part of the message is neither text nor a file",
            Self::File => {
                "a file does not match its media type, or its address is neither a data URL in Base64 nor a web address"
            }
            Self::Trigger => "the trigger is not `submit-message`; send another message instead",
            Self::Duplicate => "a call occurs twice",
            Self::HistoryTooLarge => "the messages are larger than allowed",
            Self::Orphan | Self::Forged => "the messages contain a call or a result that the server did not issue",
            Self::Interrupts => "`resume` does not answer every interrupt of the last run",
            Self::Empty => "the body has neither text nor a file, and answers no waiting call",
        }
    }
}
