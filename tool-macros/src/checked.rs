//! [`Checked`]: a tool without mistakes, which can always be expanded.

use std::collections::HashSet;
use std::time::Duration;

use proc_macro2::{Ident, TokenStream};
use syn::{Attribute, Expr, FnArg, ItemStruct, LitInt, LitStr, Pat, Path, Signature, Type, Visibility, parse_quote};

use crate::attr::{DefaultValue, Executor, Hook, NoSchemaMode, Reach, Scope};
use crate::docs::Docs;
use crate::model::{self, Callable, Parameter, Tool};
use crate::names::plain;
use crate::sentence;

/// One tool, with the facts that its expansion needs.
pub(crate) struct Checked {
    pub(crate) krate: Option<Path>,
    pub(crate) ident: Ident,
    pub(crate) vis: Visibility,
    pub(crate) name: LitStr,
    pub(crate) title: Option<LitStr>,
    /// The sentences, in which arguments have their wire names.
    pub(crate) summary: Vec<String>,
    pub(crate) docs: Docs,
    pub(crate) effect: Reach,
    pub(crate) redact: Vec<LitStr>,
    pub(crate) model: Vec<LitStr>,
    pub(crate) tags: Vec<LitStr>,
    pub(crate) also: Vec<LitStr>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_result_bytes: Option<LitInt>,
    pub(crate) execution: Execution,
    pub(crate) idempotent: bool,
    pub(crate) once: Option<Once>,
    /// The optional arguments, at least one of which must be given, in the order of the attribute.
    pub(crate) require_any: Vec<usize>,
    pub(crate) schema: Schema,
    pub(crate) validate: Option<Hook>,
    pub(crate) arguments: Vec<Argument>,
    /// `#[serde(..)]` of the item, to be copied to the generated struct with the derives.
    pub(crate) derived: Vec<Attribute>,
    pub(crate) form: Form,
}

/// The keys `once`, `once_scope` and `once_for`.
pub(crate) struct Once {
    /// The key, in which arguments have their wire names.
    pub(crate) key: String,
    pub(crate) scope: Scope,
    pub(crate) keep: Option<Duration>,
}

/// The process that executes the tool.
pub(crate) enum Execution {
    Server,
    Client {
        /// The type that the client sends back.
        answer: Box<Type>,
        /// The paths of the output that go to the client.
        prepare: Vec<LitStr>,
    },
}

/// Whether the arguments have a schema.
#[derive(Clone, Copy)]
pub(crate) enum Schema {
    Derived,
    None(NoSchemaMode),
}

/// One argument from the model.
pub(crate) struct Argument {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    /// The name on the wire.
    pub(crate) wire: String,
    pub(crate) default: Option<ArgumentDefault>,
    pub(crate) evidence: Option<LitStr>,
    pub(crate) is_sensitive: bool,
    /// The keys of `#[schemars(..)]` that constrain it, such as `inner.regex`.
    pub(crate) constraints: Vec<String>,
    pub(crate) is_nested_option: bool,
    /// Doc comments, `#[serde(..)]` and `#[schemars(..)]`, to be copied to the generated struct with the derives.
    pub(crate) derived: Vec<Attribute>,
}

/// The default of an argument.
pub(crate) enum ArgumentDefault {
    /// `#[arg(default = EXPR)]`
    Expr(Box<Expr>),
    /// A default in `#[serde(..)]`, which the derives read.
    Serde,
}

/// The two forms of a tool.
pub(crate) enum Form {
    Function(Box<Function>),
    Struct(Box<ItemStruct>),
}

/// A function tool.
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    /// The signature without the attributes that only the macro reads.
    pub(crate) sig: Signature,
    pub(crate) body: TokenStream,
    /// In the author's order.
    pub(crate) parameters: Vec<Passed>,
    pub(crate) output: Type,
    pub(crate) is_blocking: bool,
    pub(crate) precondition: Option<Hook>,
}

/// A value that generated code passes to the function.
pub(crate) enum Passed {
    /// An argument of this name.
    Argument(Ident),
    /// An injected value: the name of the parameter, and the type behind the `&`.
    Injected(Option<Ident>, Box<Type>),
}

impl Checked {
    /// Creates the checked tool from a tool that broke no rule.
    ///
    /// # Errors
    /// Returns the tool if a required part is missing, which a rule has reported.
    pub(crate) fn new(mut tool: Tool) -> Result<Self, Box<Tool>> {
        let required = (tool.attr.name.value(), tool.attr.effect.value(), tool.attr.redact.value());
        let (Some(name), Some(effect), Some(redact)) = required else { return Err(Box::new(tool)) };
        let (name, effect, redact) = (name.clone(), *effect, redact.clone());
        allow_unread(&mut tool);
        let precondition = std::mem::take(&mut tool.attr.precondition).into_value();
        let form = match &tool.form {
            model::Form::Struct(item) => Form::Struct(item.clone()),
            model::Form::Function(callable) => match function(&tool, callable) {
                Some(function) => Form::Function(Box::new(Function { precondition, ..function })),
                None => return Err(Box::new(tool)),
            },
        };
        let attr = std::mem::take(&mut tool.attr);
        let listed = attr.require_any.into_value().unwrap_or_default();
        let at = |name: &Ident| tool.arguments.iter().position(|argument| argument.is_called(name));
        let wire = |name: &str| {
            tool.arguments.iter().find(|argument| plain(&argument.ident) == name).map(|argument| &*argument.wire)
        };
        let (scope, keep) = (attr.once_scope.into_value().unwrap_or(Scope::Tenant), attr.once_for.into_value());
        let once = attr.once.into_value();
        let once = once.map(|key| Once { key: sentence::renamed(&key.value(), wire), scope, keep });
        let summary = attr.summary.into_value().unwrap_or_default();
        let summary = summary.iter().map(|text| sentence::renamed(&text.value(), wire)).collect();
        Ok(Self {
            krate: attr.krate.into_value(),
            ident: tool.ident,
            vis: tool.vis,
            name,
            title: attr.title.into_value(),
            summary,
            docs: tool.docs,
            effect,
            redact,
            model: attr.model.into_value().unwrap_or_default(),
            tags: attr.tags.into_value().unwrap_or_default(),
            also: attr.also.into_value().unwrap_or_default(),
            timeout: attr.timeout.into_value(),
            max_result_bytes: attr.max_result_bytes.into_value(),
            execution: match (attr.execution.into_value(), attr.client_result.into_value()) {
                (Some(Executor::Client), Some(answer)) => Execution::Client {
                    answer: Box::new(answer),
                    prepare: attr.prepare.into_value().unwrap_or_default(),
                },
                _ => Execution::Server,
            },
            idempotent: attr.idempotent.value().is_some(),
            once,
            require_any: listed.iter().filter_map(at).collect(),
            schema: attr.no_schema_mode.into_value().map_or(Schema::Derived, Schema::None),
            validate: attr.validate.into_value(),
            arguments: tool.arguments.into_iter().map(Argument::new).collect(),
            derived: tool.container.derived,
            form,
        })
    }
}

/// Allows the body not to use the arguments that the attribute reads. Otherwise the compiler would advise the author to
/// write `_payment_id`, which would also rename the argument for models.
fn allow_unread(tool: &mut Tool) {
    let texts = tool.attr.once.value().into_iter().chain(tool.attr.summary.value().into_iter().flatten());
    let mut read: HashSet<String> = HashSet::new();
    for text in texts {
        read.extend(sentence::names(&text.value()).map(|(name, _)| sentence::split(&name).0.to_owned()));
    }
    // The hook of a struct reads its fields itself, and the compiler sees that.
    let is_function = matches!(tool.form, model::Form::Function(_));
    let hooks = tool.attr.validate.value().into_iter().chain(tool.attr.precondition.value());
    for listed in hooks.filter(|_| is_function).filter_map(|hook| hook.arguments.as_ref()) {
        read.extend(listed.iter().map(|argument| plain(&argument.name)));
    }
    match &mut tool.form {
        model::Form::Function(function) => {
            for input in &mut function.sig.inputs {
                if let FnArg::Typed(typed) = input
                    && matches!(&*typed.pat, Pat::Ident(pat) if read.contains(&plain(&pat.ident)))
                {
                    typed.attrs.push(parse_quote!(#[allow(unused_variables)]));
                }
            }
        }
        model::Form::Struct(item) => {
            for field in &mut item.fields {
                if field.ident.as_ref().is_some_and(|name| read.contains(&plain(name))) {
                    field.attrs.push(parse_quote!(#[allow(dead_code)]));
                }
            }
        }
    }
}

fn function(tool: &Tool, callable: &Callable) -> Option<Function> {
    let parameters = callable.parameters.iter().map(|parameter| match parameter {
        Parameter::Owned(index) => Some(Passed::Argument(tool.arguments.get(*index)?.ident.clone())),
        Parameter::Borrowed(borrowed) => {
            Some(Passed::Injected(borrowed.name.clone(), Box::new(borrowed.target.clone())))
        }
        Parameter::Unusable(_) => None,
    });
    Some(Function {
        attrs: tool.container.kept.clone(),
        sig: callable.sig.clone(),
        body: callable.body.clone(),
        parameters: parameters.collect::<Option<_>>()?,
        output: callable.output.clone()?,
        is_blocking: tool.attr.blocking.value().is_some(),
        precondition: None,
    })
}

impl Function {
    /// The types of injected values, without their `&`, in order.
    pub(crate) fn injected(&self) -> impl DoubleEndedIterator<Item = &Type> {
        self.parameters.iter().filter_map(|parameter| match parameter {
            Passed::Injected(_, target) => Some(&**target),
            Passed::Argument(_) => None,
        })
    }
}

impl Argument {
    fn new(argument: model::Argument) -> Self {
        let model::Argument { ident, ty, wire, attr } = argument;
        Self {
            is_nested_option: model::is_nested_option(&ty),
            ident,
            ty,
            wire,
            default: attr.default.into_value().map(|default| match default {
                DefaultValue::Expr(expr) => ArgumentDefault::Expr(expr),
                DefaultValue::Serde => ArgumentDefault::Serde,
            }),
            evidence: attr.evidence.into_value(),
            is_sensitive: attr.sensitive.value().is_some(),
            constraints: attr
                .constraints
                .iter()
                .map(|keys| keys.iter().map(plain).collect::<Vec<_>>().join("."))
                .collect(),
            derived: attr.derived,
        }
    }
}
