//! The engine of a script: the parts of the language that are enabled, and their limits.
//!
//! The engine enables only the packages below. A script has no modules, no closures and no functions of its own, so it
//! has one scope of bounded size. It cannot evaluate text as source, or behave differently when it runs again.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rhai::packages::{
    ArithmeticPackage, BasicArrayPackage, BasicMapPackage, BasicMathPackage, BasicStringPackage, LogicPackage,
    MoreStringPackage, Package,
};
use rhai::{Array, Dynamic, Engine, EvalAltResult, ImmutableString, OptimizationLevel, Position};

use crate::agent::code::size;

const STRING: usize = 128 << 10;
const ITEMS: usize = 4096;
/// The maximum number of variables of a script. A script can store data only in variables.
const VARIABLES: usize = 48;

/// The length of source, in bytes, that halves the operations of a script. Twice this length leaves a third of them,
/// and so on. The source counts because it contains the text literals, whose uses are not counted by size.
const LITERAL: usize = 2048;

/// A counter of additional operations by size. The language counts a call of a function as one operation, whatever the
/// size of its arguments.
#[derive(Clone)]
struct Meter {
    left: Arc<AtomicU64>,
}

impl Meter {
    fn new(operations: u64) -> Self {
        Self { left: Arc::new(AtomicU64::new(operations)) }
    }

    /// Counts operations. A script cannot catch the error when none are left.
    fn spend(&self, operations: u64) -> Result<(), Box<EvalAltResult>> {
        let spent = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(operations));
        spent.map(drop).map_err(|_| EvalAltResult::ErrorTooManyOperations(Position::NONE).into())
    }
}

/// Creates the engine for this number of operations and this length of source.
pub(super) fn engine(operations: u64, source: usize) -> Engine {
    let meter = Meter::new(operations);
    let literals = 1 + (source / LITERAL) as u64;
    let mut engine = Engine::new_raw();
    ArithmeticPackage::new().register_into_engine(&mut engine);
    LogicPackage::new().register_into_engine(&mut engine);
    BasicStringPackage::new().register_into_engine(&mut engine);
    MoreStringPackage::new().register_into_engine(&mut engine);
    BasicArrayPackage::new().register_into_engine(&mut engine);
    BasicMapPackage::new().register_into_engine(&mut engine);
    BasicMathPackage::new().register_into_engine(&mut engine);
    // The package of iterators is left out: its values contain text that is not counted.
    engine.register_iterator::<Array>();
    engine.register_iterator::<Range<i64>>();
    engine.register_iterator::<RangeInclusive<i64>>();
    // The `replace` of the package creates the text before it checks the size.
    engine.register_fn("replace", |text: &mut ImmutableString, from: &str, to: &str| replace(text, from, to));
    engine.register_fn("replace", |text: &mut ImmutableString, from: char, to: &str| {
        replace(text, from.encode_utf8(&mut [0; 4]), to)
    });
    // `pad` creates large values from a few bytes, so it counts by size.
    let filling = meter.clone();
    engine.register_fn("pad", move |array: &mut Array, len: i64, item: Dynamic| -> Result<(), Box<EvalAltResult>> {
        let len = usize::try_from(len).unwrap_or_default();
        if len > ITEMS {
            return Err(too_large().into());
        }
        let added = len.saturating_sub(array.len());
        filling.spend(added as u64)?;
        array.extend(std::iter::repeat_n(item, added));
        Ok(())
    });
    let filling = meter.clone();
    engine.register_fn(
        "pad",
        move |text: &mut ImmutableString, len: i64, character: char| -> Result<(), Box<EvalAltResult>> {
            let added = usize::try_from(len).unwrap_or_default().saturating_sub(text.chars().count());
            if text.len().saturating_add(added.saturating_mul(character.len_utf8())) > STRING {
                return Err(too_large().into());
            }
            filling.spend(added as u64 / 16)?;
            let padding: String = std::iter::repeat_n(character, added).collect();
            *text = format!("{text}{padding}").into();
            Ok(())
        },
    );
    // The `pad` of the package never ends if the padding is empty, and its `sort` panics if the comparison is not an
    // order.
    engine.register_fn("pad", |_: &mut ImmutableString, _: i64, _: &str| missing("pad"));
    engine.register_fn("sort", |_: &mut Array, _: &str| missing("sort"));
    engine.set_optimization_level(OptimizationLevel::None);
    // Zero would mean no limit.
    engine.set_max_operations((operations / literals).max(1));
    engine.set_max_expr_depths(48, 48);
    engine.set_max_variables(VARIABLES);
    engine.set_max_string_size(STRING);
    engine.set_max_array_size(ITEMS);
    engine.set_max_map_size(ITEMS);
    engine.set_strict_variables(true);
    engine.set_allow_anonymous_fn(false);
    for word in ["fn", "Fn", "call", "curry", "this", "eval", "import", "export"] {
        engine.disable_symbol(word);
    }
    #[allow(deprecated, reason = "the crate marks its unstable functions as deprecated")]
    engine.on_var(move |name, _, context| match context.scope().get(name) {
        None => Ok(None),
        Some(value) => match size::weight(value) {
            None => Err(too_large().into()),
            Some(operations) => meter.spend(operations).map(|()| None),
        },
    });
    engine
}

const fn too_large() -> EvalAltResult {
    EvalAltResult::ErrorDataTooLarge(String::new(), Position::NONE)
}

fn missing(name: &str) -> Result<(), Box<EvalAltResult>> {
    Err(EvalAltResult::ErrorFunctionNotFound(name.to_owned(), Position::NONE).into())
}

fn replace(text: &mut ImmutableString, from: &str, to: &str) -> Result<(), Box<EvalAltResult>> {
    let found = text.matches(from).count();
    if text.len() - found * from.len() + found * to.len() > STRING {
        return Err(too_large().into());
    }
    *text = text.replace(from, to).into();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts rounds and not time, so that the machine's speed does not matter. Without weights each script takes more
    /// than two thousand rounds.
    #[test]
    fn functions_count_by_what_they_read() {
        let text = "let s = \"\"; s.pad(65536, 'a'); let n = \"\"; n.pad(32768, 'a'); n += \"b\";";
        let array = "let a = []; a.pad(4000, 1); let b = []; b.pad(4000, 1);";
        let map = "let m = #{}; for i in 0..1000 { m[`k${i}`] = i; }";
        for (before, round) in [
            (text, "s.contains(n)"),
            (text, "s.index_of(n)"),
            (text, "s.to_upper()"),
            (text, "s.replace(n, \"\")"),
            (text, "s.sub_string(1, 60000)"),
            (text, "s.split(\"b\")"),
            (text, "s == n + n"),
            (array, "a.sort()"),
            (array, "a.dedup(); a.pad(4000, 1)"),
            (array, "a.contains(2)"),
            (array, "a.index_of(2)"),
            (array, "a.insert(0, 1); a.pop()"),
            (array, "a.reverse()"),
            (array, "a == b"),
            (map, "m.mixin(m)"),
            (map, "m.keys()"),
            ("", "let a = []; a.pad(4000, 1)"),
            ("", "let s = \"\"; s.pad(65536, 'a')"),
            ("", &format!("\"{}\".to_upper()", "a".repeat(30_000))),
        ] {
            let script = format!("{before} loop {{ {round}; print(1); }}");
            let rounds = Arc::new(AtomicU64::new(0));
            let counted = Arc::clone(&rounds);
            let mut engine = engine(20_000, script.len());
            engine.on_print(move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
            });
            let ended = engine.eval::<()>(&script).unwrap_err();
            let shown: String = round.chars().take(40).collect();
            assert!(matches!(*ended, EvalAltResult::ErrorTooManyOperations(_)), "{shown}: {ended}");
            assert!((1..1_000).contains(&rounds.load(Ordering::Relaxed)), "{shown}: {rounds:?}");
        }
    }

    /// Typical uses of tool results in scripts.
    #[test]
    fn a_script_that_reads_much_has_enough() {
        for script in [
            "let a = []; for i in 0..4000 { a.push(i); } let sum = 0; for i in 0..a.len() { sum += a[i]; } sum",
            "let m = #{}; for i in 0..1000 { m[`k${i}`] = i; } let sum = 0; for k in m.keys() { sum += m[k]; } sum",
            "let s = \"\"; for i in 0..4000 { s += \"0123456789\"; } s.len()",
        ] {
            let sum = engine(1_000_000, script.len()).eval::<i64>(script);
            assert!(sum.as_ref().is_ok_and(|sum| *sum > 0), "{script}: {sum:?}");
        }
    }
}
