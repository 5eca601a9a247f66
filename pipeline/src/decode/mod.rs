//! From an item to one row of typed columns, `_rest` and `_old`.
//!
//! A plan is made once per entity ([`plan`]); values go straight from the text into column buffers
//! ([`value`], [`buffer`]). No tree, no intermediate values. What a column does not hold exactly
//! stays in `_rest` ([`row`]), so that nothing is ever lost.

pub(crate) mod buffer;
pub(crate) mod names;
pub(crate) mod plan;
pub(crate) mod row;
pub(crate) mod transform;
pub(crate) mod value;
