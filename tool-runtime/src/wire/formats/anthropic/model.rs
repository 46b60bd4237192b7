//! [`Model`]: the settings of thinking and sampling that each model accepts.
//!
//! The rules are those of Anthropic's documentation: "Troubleshooting thinking" (configurations each model rejects),
//! "Errors" (extended thinking not supported, thinking cannot be disabled), "Thinking" (sampling parameters) and
//! "What's new in Claude Sonnet 5.5" (`between_tools`).

/// A model, identified by its name.
#[derive(Clone, Copy)]
pub(super) struct Model<'a> {
    family: &'a str,
    version: (u32, u32),
}

/// How a request turns the thinking of a model on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    /// With a number of tokens.
    Budget,
    /// With a level.
    Adaptive,
    /// With either.
    Both,
}

/// How much a model still thinks when a request turns thinking off.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Off {
    /// The model always thinks.
    Never,
    /// The model thinks only between calls.
    BetweenTools,
    /// The model does not think.
    Disabled,
}

/// The token limit of a turn in the documentation's examples of thinking.
pub(super) const MAX_OUTPUT_TOKENS: u32 = 16_000;

const FAMILIES: [&str; 5] = ["opus", "sonnet", "haiku", "fable", "mythos"];

impl<'a> Model<'a> {
    /// Parses a name such as `claude-opus-4-8`, also in the spellings of gateways (`anthropic/claude-opus-4.8`,
    /// `anthropic.claude-haiku-4-5-20251001-v1:0`). `None` if the name is not a model of Anthropic.
    pub(super) fn named(name: &'a str) -> Option<Self> {
        let (_, rest) = name.split_once("claude-")?;
        let words = || rest.split(['-', '.', '@', ':', '_']);
        let family = words().find(|word| FAMILIES.contains(word))?;
        // Dates and build numbers are not part of the version.
        let numbers = words().map_while(|word| match word.parse::<u32>() {
            Ok(number) if number < 100 => Some(Some(number)),
            Ok(_) => None,
            Err(_) => (FAMILIES.contains(&word) || word == "preview").then_some(None),
        });
        let mut numbers = numbers.flatten();
        // `claude-mythos-preview` has no version; it has the rules of `claude-opus-4-7`.
        let version = numbers.next().map_or((4, 7), |major| (major, numbers.next().unwrap_or(0)));
        Some(Self { family, version })
    }

    fn always_thinks(&self) -> bool {
        matches!(self.family, "fable" | "mythos") || (self.family == "opus" && self.version >= (5, 5))
    }

    pub(super) fn thinking(&self) -> Thinking {
        match self.version {
            version if version <= (4, 5) => Thinking::Budget,
            (4, 6) => Thinking::Both,
            (4, 7) if self.family == "mythos" => Thinking::Both,
            _ => Thinking::Adaptive,
        }
    }

    pub(super) fn off(&self) -> Off {
        match self.family {
            _ if self.always_thinks() => Off::Never,
            "sonnet" if self.version >= (5, 5) => Off::BetweenTools,
            _ => Off::Disabled,
        }
    }

    /// Whether the model accepts a temperature and `top_p` when it does not think.
    pub(super) fn samples(&self) -> bool {
        self.version < (4, 7)
    }

    /// The token limit of a turn if the settings have none. Models before Claude 3.7 accept no more than 4,096.
    pub(super) fn limit(&self) -> u32 {
        if self.version < (3, 7) { 4096 } else { MAX_OUTPUT_TOKENS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_which_model_it_is() {
        let version = |name| Model::named(name).map(|model| (model.family, model.version));
        for (name, expected) in [
            ("claude-opus-4-8", ("opus", (4, 8))),
            ("claude-sonnet-5", ("sonnet", (5, 0))),
            ("claude-haiku-4-5-20251001", ("haiku", (4, 5))),
            ("claude-sonnet-4-20250514", ("sonnet", (4, 0))),
            ("claude-3-7-sonnet-latest", ("sonnet", (3, 7))),
            ("claude-3-haiku-20240307", ("haiku", (3, 0))),
            ("claude-opus-4@20250514", ("opus", (4, 0))),
            ("anthropic/claude-opus-4.8", ("opus", (4, 8))),
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0", ("haiku", (4, 5))),
            ("claude-fable-5-2", ("fable", (5, 2))),
            ("claude-mythos-preview", ("mythos", (4, 7))),
        ] {
            assert_eq!(version(name), Some(expected), "{name}");
        }
        for name in ["", "m", "gpt-5", "claude-", "claude-2.1", "my-opus-4-8"] {
            assert_eq!(version(name), None, "{name}");
        }
    }
}
