//! [`Scorer`]: an application's own ranking of tools, within a deadline.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::catalog::CatalogView;
use crate::catalog::pick::{Pick, PickOptions};
use crate::contain::awaited;
use crate::tool::ToolSpec;

/// Ranks tools for a query in place of the built-in ranking, for example with embeddings or a user's history. Implement
/// it with [`macro@async_trait`].
///
/// If a scorer is late, fails, panics or gives an invalid answer, the request uses the built-in ranking, and the
/// operators' sink receives the failure.
///
/// ```
/// use std::error::Error;
/// use async_trait::async_trait;
/// use tool_runtime::ToolSpec;
/// use tool_runtime::catalog::Scorer;
///
/// /// Prefers tools with short descriptions.
/// struct Brief;
///
/// #[async_trait]
/// impl Scorer for Brief {
///     async fn score(
///         &self,
///         _query: &str,
///         tools: &[&ToolSpec],
///     ) -> Result<Vec<(String, f64)>, Box<dyn Error + Send + Sync>> {
///         let score = |tool: &ToolSpec| 1.0 / (1.0 + tool.description.len() as f64);
///         Ok(tools.iter().map(|tool| (tool.name.to_string(), score(tool))).collect())
///     }
/// }
/// ```
#[async_trait]
pub trait Scorer: Send + Sync {
    /// Returns pairs of a tool's name and its score from 0 to 1; a missing tool has 0. `tools` are the tools that the
    /// model may see. The whole answer is invalid if a name is unknown or occurs twice, or a score is out of range.
    ///
    /// # Errors
    /// The scorer cannot compute scores. Operators read the error.
    async fn score(&self, query: &str, tools: &[&ToolSpec])
    -> Result<Vec<(String, f64)>, Box<dyn Error + Send + Sync>>;
}

/// The reason why the scores of a [`Scorer`] are not used.
pub(crate) struct ScorerFault {
    pub(crate) code: &'static str,
    /// A message for operators, which can contain any text.
    pub(crate) text: String,
}

/// Picks by the scores of the application. Fails if the application returns none in time.
pub(crate) async fn scored(
    view: &CatalogView,
    query: &str,
    options: &PickOptions,
    (scorer, deadline): &(Arc<dyn Scorer>, Duration),
) -> Result<Vec<Pick>, ScorerFault> {
    let tools: Vec<&ToolSpec> = view.specs().collect();
    let scores = scores(&**scorer, *deadline, query, &tools).await?;
    Ok(options.scored(
        tools.iter().map(|tool| (tool.name.clone(), scores.get(tool.name.as_str()).copied().unwrap_or_default())),
    ))
}

/// Runs a scorer, and returns the scores by the names of the tools.
async fn scores(
    scorer: &dyn Scorer,
    deadline: Duration,
    query: &str,
    tools: &[&ToolSpec],
) -> Result<HashMap<String, f64>, ScorerFault> {
    let fault = |code, text| ScorerFault { code, text };
    let answer = tokio::time::timeout(deadline, awaited(|| scorer.score(query, tools))).await;
    let answer = answer.map_err(|_| fault("scorer_late", format!("it took longer than {deadline:?}")))?;
    let answer = answer.map_err(|panic| fault("scorer_panicked", panic))?;
    let answer = answer.map_err(|error| fault("scorer_failed", crate::error::chain(&*error)))?;
    let mut known: HashMap<&str, bool> = tools.iter().map(|tool| (tool.name.as_str(), false)).collect();
    for (name, score) in &answer {
        let wrong = match known.get_mut(name.as_str()) {
            _ if !(0.0..=1.0).contains(score) => "a score is not from 0 to 1",
            None => "it scores a tool that it was not given",
            Some(true) => "it scores a tool twice",
            Some(seen) => {
                *seen = true;
                continue;
            }
        };
        return Err(fault("scorer_invalid", wrong.to_owned()));
    }
    Ok(answer.into_iter().collect())
}
