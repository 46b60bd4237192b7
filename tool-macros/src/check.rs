//! The rules for an item. Each rule is one function, and has a test case of the same name under `tests/ui`.

mod argument;
mod attribute;
mod capability;
mod constraint;
mod methods;
mod once;
mod precondition;
mod signature;
mod summary;

pub(crate) use argument::{find_impl, find_self};
pub(crate) use capability::supertraits;

use syn::ItemTrait;

use crate::attr::CapabilityAttr;
use crate::checked::Checked;
use crate::errors::Errors;
use crate::item::Methods;
use crate::methods::Called;
use crate::model::Tool;

/// Reports every mistake that is visible in a tool's tokens. The compiler checks the types in the generated code.
///
/// # Errors
/// Returns the tool unchanged if `errors` has a mistake, from here or from the parser.
pub(crate) fn check(tool: Tool, errors: &mut Errors) -> Result<Checked, Box<Tool>> {
    rules(&tool, errors);
    if errors.is_empty() { Checked::new(tool) } else { Err(Box::new(tool)) }
}

fn rules(tool: &Tool, errors: &mut Errors) {
    attribute::missing_name(tool, errors);
    attribute::missing_effect(tool, errors);
    attribute::missing_redact(tool, errors);
    attribute::name_without_namespace(tool, errors);
    attribute::name_character(tool, errors);
    attribute::name_too_long(tool, errors);
    attribute::name_reserved(tool, errors);
    attribute::name_namespace_letter(tool, errors);
    attribute::name_tool_part(tool, errors);
    attribute::empty_title(tool, errors);
    summary::summary_empty(tool, errors);
    summary::summary_too_long(tool, errors);
    summary::summary_not_plain(tool, errors);
    summary::summary_braces(tool, errors);
    summary::summary_unknown(tool, errors);
    summary::summary_sensitive(tool, errors);
    summary::summary_wire_name(tool, errors);
    summary::summary_unreachable(tool, errors);
    once::once_text(tool, errors);
    once::once_braces(tool, errors);
    once::once_constant(tool, errors);
    once::once_unknown(tool, errors);
    once::once_sensitive(tool, errors);
    once::once_wire_name(tool, errors);
    once::once_without_effect(tool, errors);
    once::once_keys_alone(tool, errors);
    attribute::redact_empty_segment(tool, errors);
    attribute::redact_notation(tool, errors);
    attribute::redact_duplicate_path(tool, errors);
    attribute::tag_text(tool, errors);
    attribute::also_text(tool, errors);
    attribute::client_without_result(tool, errors);
    attribute::client_without_prepare(tool, errors);
    attribute::client_keys_on_server(tool, errors);
    attribute::no_schema_without_mode(tool, errors);
    attribute::no_schema_mode_alone(tool, errors);
    attribute::require_any_empty(tool, errors);
    attribute::require_any_unknown(tool, errors);
    attribute::require_any_twice(tool, errors);
    attribute::validate_unknown(tool, errors);
    precondition::precondition_unknown(tool, errors);
    precondition::precondition_struct(tool, errors);
    attribute::blocking_async(tool, errors);
    attribute::blocking_struct(tool, errors);

    signature::missing_docs(tool, errors);
    signature::generic_item(tool, errors);
    signature::self_receiver(tool, errors);
    signature::inside_impl(tool, errors);
    signature::qualified_function(tool, errors);
    signature::missing_return(tool, errors);
    signature::borrowed_output(tool, errors);
    signature::derive_repeated(tool, errors);
    signature::too_many_capabilities(tool, errors);

    argument::missing_argument_docs(tool, errors);
    argument::injected_owned(tool, errors);
    constraint::constraint_without_effect(tool, errors);
    constraint::constraint_without_schema(tool, errors);
    argument::pattern_argument(tool, errors);
    argument::impl_trait_argument(tool, errors);
    argument::borrowed_inside(tool, errors);
    argument::mutable_borrow(tool, errors);
    argument::borrowed_slice(tool, errors);
    argument::attribute_on_borrowed(tool, errors);
    argument::cfg_argument(tool, errors);
    argument::evidence_name(tool, errors);
    argument::same_wire_name(tool, errors);
}

/// Reports every mistake of a capability trait. Returns whether tools can still borrow it.
pub(crate) fn check_capability(attr: &CapabilityAttr, item: &ItemTrait, errors: &mut Errors) -> bool {
    capability::capability_without_effect(attr, errors);
    capability::empty_kind(attr, errors);
    capability::generic_capability(item, errors);
    capability::associated_item(item, errors);
    capability::sized_supertrait(item, errors);
    capability::unread_bound(item, errors);
    capability::async_without_async_trait(item, errors);
    capability::mutable_self(item, errors);
    capability::can_be_borrowed(item)
}

/// Reports every mistake of the `impl` block of a struct tool. Returns the methods that the runtime calls.
pub(crate) fn check_methods(block: &Methods, errors: &mut Errors) -> Option<Called> {
    methods::impl_of_a_trait(block, errors);
    methods::generic_impl(block, errors);
    methods::impl_without_run(block, errors);
    methods::misspelt_method(block, errors);
    methods::generic_method(block, errors);
    methods::qualified_method(block, errors);
    methods::receiver_by_value(block, errors);
    methods::owned_parameter(block, errors);
    methods::precondition_call(block, errors);
    methods::method_without_return(block, errors);
    methods::too_many_borrowed(block, errors);
    methods::cfg_method(block, errors);
    methods::methods(block)
}
