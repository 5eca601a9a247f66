//! From a change to its rows: which entity's table, and which tombstones besides.
//!
//! An item goes to exactly one entity. A change whose old image belonged to another one leaves a
//! REMOVE (`moved`) there. Where the stream does not say what the item was before (no old image),
//! every other entity that its keys allow gets the tombstone: harmless where the key does not exist,
//! and never a ghost.

use std::borrow::Cow;

use dynalake_schemas::{AttributeView, Catalog, KeyAttribute, KeyType};

use crate::json::{Tag, Value};
use crate::record::{Operation, Reason};
use crate::reject::{ReasonCode, Reject};

/// The key of an item as text, and whether each part has the type that `lake.toml` declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyTexts<'v> {
    pub(crate) pk: Cow<'v, str>,
    pub(crate) sk: Option<Cow<'v, str>>,
    tags: (Tag, Option<Tag>),
    pub(crate) declared: (bool, bool),
}

/// Reads the key attributes of `Keys`, of an image or of an export's item.
pub(crate) fn key_texts<'v>(catalog: &Catalog, item: Value<'v>) -> Result<KeyTexts<'v>, Reject> {
    let (pk, pk_tag, pk_declared) = key_text(&catalog.source.partition_key, item)?;
    let sort = match &catalog.source.sort_key {
        Some(key) => Some(key_text(key, item)?),
        None => None,
    };
    let (sk, sk_tag, sk_declared) = match sort {
        Some((text, tag, declared)) => (Some(text), Some(tag), declared),
        None => (None, None, false),
    };
    Ok(KeyTexts {
        pk,
        sk,
        tags: (pk_tag, sk_tag),
        declared: (pk_declared, sk_declared),
    })
}

fn key_text<'v>(key: &KeyAttribute, item: Value<'v>) -> Result<(Cow<'v, str>, Tag, bool), Reject> {
    let bad = |message: &str| Reject::new(ReasonCode::BadKey, message).at(key.name.clone());
    let Some(value) = item.member(&key.name) else {
        return Err(bad("the key attribute that `lake.toml` names is missing"));
    };
    let (text, declared) = match value.tag() {
        Tag::S => (value.text(), KeyType::S),
        Tag::N => (value.number(), KeyType::N),
        Tag::B => (value.text(), KeyType::B),
        _ => return Err(bad("a key attribute must be of type S, N or B")),
    };
    if text.is_empty() {
        return Err(bad("a key attribute is empty"));
    }
    Ok((text, value.tag(), declared == key.key_type))
}

impl KeyTexts<'_> {
    /// Fails when an image's key is not this one.
    pub(crate) fn check_image(&self, catalog: &Catalog, image: Value<'_>) -> Result<(), Reject> {
        let theirs = key_texts(catalog, image)?;
        if theirs.pk == self.pk && theirs.sk == self.sk && theirs.tags == self.tags {
            return Ok(());
        }
        Err(Reject::new(
            ReasonCode::BadKey,
            "the key of the image is not the key in `Keys`",
        ))
    }
}

/// One row to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    /// Index in [`Catalog::entities`].
    pub(crate) entity: usize,
    pub(crate) operation: Operation,
    pub(crate) reason: Option<Reason>,
}

/// What the router knows of a change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<'v> {
    pub(crate) operation: Operation,
    pub(crate) reason: Option<Reason>,
    pub(crate) new: Option<Value<'v>>,
    pub(crate) old: Option<Value<'v>>,
}

/// Entities by the conditions in a catalog.
#[derive(Debug)]
pub(crate) struct Router {
    /// Attributes that some entity's conditions look at.
    attributes: Vec<String>,
}

impl Router {
    pub(crate) fn new(catalog: &Catalog) -> Self {
        let mut attributes: Vec<String> = catalog
            .entities
            .iter()
            .flat_map(|entity| &entity.matcher.attributes)
            .map(|condition| condition.attribute.clone())
            .collect();
        attributes.sort_unstable();
        attributes.dedup();
        Self { attributes }
    }

    /// The rows of a change: first the item's own (or its first tombstone), then the others.
    pub(crate) fn rows(
        &self,
        catalog: &Catalog,
        keys: &KeyTexts<'_>,
        change: Change<'_>,
        rows: &mut Vec<Row>,
    ) -> Result<(), Reject> {
        rows.clear();
        let tombstone = |entity, reason| Row {
            entity,
            operation: Operation::Remove,
            reason,
        };
        let possible = || catalog.possible_by_keys(&keys.pk, keys.sk.as_deref());
        let before = change.old.map(|old| self.entity(catalog, keys, old));
        if change.operation == Operation::Remove {
            let reason = change.reason.or(Some(Reason::User));
            let entities = before.map_or_else(possible, |entity| vec![entity]);
            rows.extend(entities.into_iter().map(|entity| tombstone(entity, reason)));
            return Ok(());
        }
        let Some(new) = change.new else {
            return Err(Reject::new(
                ReasonCode::MalformedRecord,
                "the record has no new image; the stream's view type must be NEW_AND_OLD_IMAGES (or NEW_IMAGE)",
            ));
        };
        let entity = self.entity(catalog, keys, new);
        rows.push(Row {
            entity,
            operation: change.operation,
            reason: None,
        });
        let left = match (before, change.operation) {
            (Some(before), _) => vec![before],
            (None, Operation::Modify) => possible(),
            (None, _) => Vec::new(),
        };
        let moved = left.into_iter().filter(|&other| other != entity);
        rows.extend(moved.map(|other| tombstone(other, Some(Reason::Moved))));
        Ok(())
    }

    fn entity(&self, catalog: &Catalog, keys: &KeyTexts<'_>, item: Value<'_>) -> usize {
        let texts: Vec<_> = self
            .attributes
            .iter()
            .filter_map(|name| item.member(name).map(|value| (name.as_str(), value)))
            .map(|(name, value)| {
                let text = match value.tag() {
                    Tag::N => value.number(),
                    Tag::S => value.text(),
                    _ => Cow::Borrowed(""),
                };
                (name, value.tag(), text)
            })
            .collect();
        let mut attribute = |wanted: &str| {
            let (_, tag, text) = texts.iter().find(|(name, ..)| *name == wanted)?;
            Some(match tag {
                Tag::S => AttributeView::S(text),
                Tag::N => AttributeView::N(text),
                Tag::True => AttributeView::Bool(true),
                Tag::False => AttributeView::Bool(false),
                _ => AttributeView::Other,
            })
        };
        catalog.route(
            &keys.pk,
            keys.sk.as_deref(),
            &mut attribute,
            &mut Vec::new(),
        )
    }
}
