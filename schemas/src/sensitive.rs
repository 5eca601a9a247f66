//! Attributes that one entity hides and others may show: a transform keeps the clear value out of its
//! own entity's rows only. Elsewhere the attribute is in a column, or in `_rest`.

use crate::load::LoadedEntity;
use crate::model::{AttributeName, Column, ColumnSource};
use crate::naming::column_name;
use crate::problem::{Problems, list_names};

/// Entities that are named in one warning.
const NAMED: usize = 3;

/// Warns of each transform whose attribute another entity declares without one, or does not declare.
pub(crate) fn check(loaded: &[LoadedEntity], problems: &mut Problems) {
    for LoadedEntity {
        entity,
        places,
        clear_elsewhere,
        ..
    } in loaded
    {
        for column in &entity.columns {
            let ColumnSource::Attribute(attribute) = &column.source else {
                continue;
            };
            if column.transform.is_none() || clear_elsewhere.contains(&column.name) {
                continue;
            }
            let others = || {
                loaded
                    .iter()
                    .filter(|other| other.entity.name != entity.name)
            };
            let (mut stored, mut undeclared) = (Vec::new(), Vec::new());
            for other in others().map(|other| &other.entity) {
                let mut takers = other
                    .columns
                    .iter()
                    .filter(|column| takes(column, attribute));
                match takers.next() {
                    None => undeclared.push(other.name.as_str()),
                    Some(taker) if taker.transform.is_none() => stored.push(other.name.as_str()),
                    Some(_) => {}
                }
            }
            let mut where_clear = Vec::new();
            if !stored.is_empty() {
                where_clear.push(format!("in a column of {}", some(&stored)));
            }
            if !undeclared.is_empty() {
                where_clear.push(format!("in `_rest` of {}", some(&undeclared)));
            }
            if where_clear.is_empty() {
                continue;
            }
            let name = attribute.as_str();
            problems.warning(
                places.column(&column.name),
                format!(
                    "attribute `{name}` is transformed in `{}`; where an item of another entity has \
                     it, it is in the clear {}",
                    entity.name,
                    where_clear.join(" and ")
                ),
                format!(
                    "give them a column with a transform for it, such as `{} = {{ attribute = \
                     {name:?}, transform = \"drop\" }}`; or, if it is not sensitive there or no such \
                     item has it, write `elsewhere = \"clear\"` beside this transform",
                    column.name
                ),
            );
        }
    }
}

/// Whether some attribute could be meant by both.
fn takes(column: &Column, attribute: &AttributeName) -> bool {
    let ColumnSource::Attribute(own) = &column.source else {
        return false;
    };
    match (own, attribute) {
        (own, AttributeName::Exact(name)) | (AttributeName::Exact(name), own) => own.may_take(name),
        (AttributeName::Named(a), AttributeName::Named(b)) => column_name(a) == column_name(b),
    }
}

fn some(names: &[&str]) -> String {
    match names.len().checked_sub(NAMED) {
        None | Some(0) => list_names(names),
        Some(more) => format!(
            "{} and {more} more",
            list_names(names.get(..NAMED).unwrap_or_default()).replace(" and ", ", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{entity, errors, folder, warnings};

    #[test]
    fn a_transform_that_others_do_not_share_is_said_once() {
        let user = |email: &str| {
            let columns = format!("id = \"string\"\nemail = {email}");
            entity("user", "partition_key = \"U#{id}\"", &columns)
        };
        let hidden = "{ type = \"string\", transform = \"hmac_sha256\" }";
        let other = |name: &str, more: &str| {
            let matching = format!("partition_key = \"{name}#{{id}}\"");
            entity(
                &format!("{name}_item"),
                &matching,
                &format!("id = \"string\"\n{more}"),
            )
        };
        let (a, b) = (other("a", "eMail = \"string\""), other("b", ""));
        let a = a.replace(
            "eMail = \"string\"",
            "mail = { type = \"string\", attribute = \"email\" }",
        );
        let files = [
            ("user.toml", user(hidden)),
            ("a.toml", a),
            ("b.toml", b),
            ("c.toml", other("c", "")),
            ("d.toml", other("d", "")),
            ("e.toml", other("e", "email = { transform = \"drop\" }")),
            ("f.toml", other("f", "")),
        ];
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(name, text)| (*name, text.as_str()))
            .collect();
        let folder = folder(&files);
        let said = warnings(folder.path());
        assert_eq!(said.len(), 2, "{said:#?}");
        for part in [
            "user.toml:7 attribute `email` is transformed in `user`",
            "in the clear in a column of `a_item` and in `_rest` of `b_item`, `c_item`, `d_item` and 1 more",
            "email = { attribute = \"email\", transform = \"drop\" }",
            "elsewhere = \"clear\"",
        ] {
            assert!(said[1].contains(part), "{part}: {said:#?}");
        }
        // Said to be known, at each.
        for (name, text) in [
            (
                "user.toml",
                user(&hidden.replace(" }", ", elsewhere = \"clear\" }")),
            ),
            (
                "e.toml",
                other(
                    "e",
                    "email = { transform = \"drop\", elsewhere = \"clear\" }",
                ),
            ),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        assert!(
            warnings(folder.path()).is_empty(),
            "{:#?}",
            warnings(folder.path())
        );
        for (text, what) in [
            (
                "{ type = \"string\", elsewhere = \"clear\" }",
                "has no transform",
            ),
            (
                "{ transform = \"drop\", elsewhere = \"hidden\" }",
                "cannot be `hidden`",
            ),
        ] {
            std::fs::write(folder.path().join("user.toml"), user(text)).unwrap();
            let said = errors(folder.path());
            assert!(said.len() == 1 && said[0].contains(what), "{said:#?}");
        }
    }
}
