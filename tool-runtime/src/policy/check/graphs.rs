//! Checks the graphs in a policy: each exists, a key names the graph and not its tool, and only `allowed_graphs` allows
//! it.

use std::collections::HashMap;

use crate::error::Problem;
use crate::policy::problem;
use crate::policy::tool_policy::ToolPolicy;
use crate::tool::{ToolSpec, graph, graph_of, is_graph};

pub(super) fn problems<'p>(policy: &'p ToolPolicy, tools: &HashMap<&str, &ToolSpec>, problems: &mut Vec<Problem>) {
    let data = policy.data();
    let everybody = ("allowed_graphs".to_owned(), &data.allowed_graphs);
    let granted = policy.grants();
    let graphs = granted.iter().map(|(path, given)| (format!("{path}.allowed_graphs"), given.graphs));
    let lists = std::iter::once(everybody).chain(graphs);
    let named = lists.flat_map(|(path, names)| names.iter().map(move |name| (path.clone(), name)));
    let named = named.map(|(path, name)| (path, name.as_str()));
    let budgets = data.budgets.graphs.keys().map(|name| (format!("budgets.graphs.{name}"), name.as_str()));
    let of_callers = |caller: &'p String| Some((format!("callers.{caller}"), caller.strip_prefix("graph:")?));
    let callers = data.callers.keys().filter_map(of_callers).filter(|(_, name)| !name.is_empty());
    for (path, name) in named.chain(budgets).chain(callers) {
        let graphs = tools.keys().filter_map(|name| graph_of(name));
        // `graph__NAME` is the name of the graph's tool, a likely mistake.
        let suggestion = graph_of(name).filter(|name| tools.contains_key(&*graph(name)));
        match suggestion {
            Some(suggestion) => {
                let message = format!("`{name}` is the name of its tool; write `{suggestion}`");
                problems.push(Problem::policy(path, message));
            }
            None => problem::unknown("graph", path, name, tools.contains_key(&*graph(name)), graphs, problems),
        }
    }
    let everybody = ("allowed_tools".to_owned(), &data.allowed_tools);
    let granted = granted.iter().map(|(path, given)| (format!("{path}.allowed_tools"), given.tools));
    for (path, names) in std::iter::once(everybody).chain(granted) {
        for name in names.iter().filter(|name| is_graph(name)) {
            let message = format!("`{name}` is a graph, which only `allowed_graphs` allows; name it there");
            problems.push(Problem::policy(path.clone(), message));
        }
    }
}
