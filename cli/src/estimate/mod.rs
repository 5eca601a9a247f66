//! What a deployment costs a month: quantities from a load, times a price list.

mod model;
mod prices;

pub(crate) use model::{Estimate, Load, estimate, figure};
pub(crate) use prices::PriceList;
