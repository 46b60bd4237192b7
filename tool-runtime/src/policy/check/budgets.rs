//! Reports budgets of bytes and time that are smaller than the amount that one call reserves, and budgets of time that
//! a call without a time limit would reserve completely.

use crate::error::Problem;
use crate::policy::data::PolicyData;

pub(super) fn problems(data: &PolicyData, problems: &mut Vec<Problem>) {
    let budgets = &data.budgets;
    let run = std::iter::once(("run", &budgets.run));
    let principal = budgets.principal.iter().map(|allowance| ("principal", allowance));
    let tenant = budgets.tenant.iter().map(|allowance| ("tenant", allowance));
    let named = budgets.tools.keys().map(|name| (format!("budgets.tools.{name}"), Some(name.as_str())));
    let calls: Vec<_> = std::iter::once(("budgets.default".to_owned(), None))
        .chain(named)
        .map(|(path, name)| (path, data.limits_of(name)))
        .collect();
    // The tools of a graph are unknown here, so one tool whose result fits is enough.
    let least = calls.iter().map(|(_, limits)| limits.result_bytes as u64).min().unwrap_or_default();
    for (name, allowance) in &budgets.graphs {
        if allowance.bytes.is_some_and(|bytes| bytes > 0 && bytes < least) {
            let message = format!(
                "a call reserves the size limit of its result, at least {least} bytes; write that or more, or a \
                 lower `budgets.default.max_result_bytes`"
            );
            problems.push(Problem::policy(format!("budgets.graphs.{name}.bytes"), message));
        }
    }
    for (holder, allowance) in run.chain(principal).chain(tenant) {
        let mut problem = |key: &str, message: String| {
            problems.push(Problem::policy(format!("budgets.{holder}.{key}"), message));
        };
        // 0 is a budget that allows no call on purpose.
        let bytes = allowance.bytes.filter(|bytes| *bytes > 0);
        let time = allowance.time_ms.filter(|time| *time > 0 && allowance.window.is_some());
        for (path, limits) in &calls {
            let result = limits.result_bytes as u64;
            if bytes.is_some_and(|bytes| bytes < result) {
                let message = format!(
                    "a call reserves the size limit of its result, {result} bytes; write that or more, or a \
                     lower `{path}.max_result_bytes`"
                );
                problem("bytes", message);
            }
            let Some(time) = time else { continue };
            match limits.runtime.map(|runtime| runtime.as_millis()) {
                None => {
                    let message = format!(
                        "a call without a time limit would reserve all of the time; write `{path}.max_runtime_ms`"
                    );
                    problem("time_ms", message);
                }
                Some(longest) if u128::from(time) < longest => {
                    let message = format!(
                        "a call reserves its time limit, {longest} ms; write that or more, or a \
                         lower `{path}.max_runtime_ms`"
                    );
                    problem("time_ms", message);
                }
                Some(_) => {}
            }
        }
    }
}
