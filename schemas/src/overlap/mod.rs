//! Matching order.

use crate::load::LoadedEntity;
use crate::model::Source;
use crate::problem::Problems;

pub(crate) fn put_in_order(
    loaded: &mut [LoadedEntity],
    _source: Option<&Source>,
    _problems: &mut Problems,
) {
    loaded.sort_by_key(|loaded| {
        let matcher = &loaded.entity.matcher;
        let parts = |templates: &[crate::model::Template]| {
            templates
                .iter()
                .map(crate::model::Template::literal_parts)
                .min()
                .unwrap_or_default()
        };
        let literals = parts(&matcher.partition_key) + parts(&matcher.sort_key);
        std::cmp::Reverse((matcher.priority, literals, matcher.attributes.len()))
    });
}
