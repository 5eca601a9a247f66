//! DynamoDB JSON, read without a tree.
//!
//! [`Tape::scan`] checks one item completely (JSON, UTF-8, every AttributeValue) and leaves a flat
//! list of nodes that points into the text; [`Value`] looks at it; [`canonical_item`] writes it in
//! the one canonical spelling. [`members`] and [`elements`] cut envelopes and lines into raw slices.

mod canonical;
mod cursor;
mod tape;
mod text;
mod value;

pub use canonical::{canonical_item, canonical_value};
pub(crate) use canonical::{sorted_set, write_named, write_value};
pub use cursor::{RawMember, elements, members};
pub use tape::{MAX_DEPTH, Tag, Tape};
pub(crate) use text::name_hash;
pub use text::write_escaped;
pub use value::Value;
