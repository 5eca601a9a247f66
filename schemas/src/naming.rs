//! One naming function for every depth, and the names that SQL engines keep for themselves.

/// The column name of an attribute.
///
/// A word begins at an upper-case letter that follows a lower-case one (`orderId`), or that follows
/// an upper-case letter or digit and precedes a lower-case letter (`HTTPServer`, `line1Name`). Words
/// are joined by `_` in lower case; every character outside `[a-z0-9_]` becomes one `_`.
///
/// ```
/// use dynalake_schemas::naming::column_name;
/// assert_eq!(column_name("orderId"), "order_id");
/// assert_eq!(column_name("GSI1PK"), "gsi1pk");
/// assert_eq!(column_name("fle-status"), "fle_status");
/// ```
pub fn column_name(attribute: &str) -> String {
    let mut name = String::with_capacity(attribute.len() + 4);
    let mut previous: Option<char> = None;
    let mut characters = attribute.chars().peekable();
    while let Some(character) = characters.next() {
        if character.is_ascii_uppercase() {
            let next_is_lower = characters.peek().is_some_and(char::is_ascii_lowercase);
            let begins_word = previous.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || next_is_lower && (before.is_ascii_uppercase() || before.is_ascii_digit())
            });
            if begins_word {
                name.push('_');
            }
            name.push(character.to_ascii_lowercase());
        } else if character.is_ascii_lowercase() || character.is_ascii_digit() {
            name.push(character);
        } else {
            name.push('_');
        }
        previous = Some(character);
    }
    name
}

/// How a table's applications spell attribute names (`attribute_case` in `lake.toml`): which
/// attribute a column or member stands for that names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeCase {
    /// As the column: `order_id`.
    Snake,
    /// `orderId`.
    Camel,
    /// `OrderId`.
    Pascal,
}

impl AttributeCase {
    /// The attribute that a column of this name stands for. The column's own name where the naming
    /// function would not lead back from the other spelling.
    ///
    /// ```
    /// use dynalake_schemas::naming::AttributeCase;
    /// assert_eq!(AttributeCase::Camel.attribute("order_id"), "orderId");
    /// assert_eq!(AttributeCase::Pascal.attribute("status"), "Status");
    /// assert_eq!(AttributeCase::Camel.attribute("gsi_1"), "gsi_1");
    /// ```
    pub fn attribute(self, column: &str) -> String {
        if self == Self::Snake {
            return column.to_owned();
        }
        let mut spelled = String::with_capacity(column.len());
        let mut capital = self == Self::Pascal;
        for character in column.chars() {
            if character == '_' {
                capital = true;
            } else if capital {
                spelled.push(character.to_ascii_uppercase());
                capital = false;
            } else {
                spelled.push(character);
            }
        }
        if column_name(&spelled) == column {
            spelled
        } else {
            column.to_owned()
        }
    }
}

/// Whether a name can be a column or struct member as it stands: `[a-z0-9_]+`, at most 255 long
/// (the limit of Glue and Athena).
pub fn is_column_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 255 && name.bytes().all(is_name_byte)
}

/// Whether a name can be an entity, table or database: `[a-z][a-z0-9_]*`, at most 200 long, which
/// leaves room for suffixes within the 255 of Glue.
pub fn is_table_name(name: &str) -> bool {
    name.len() <= 200
        && name
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_lowercase())
        && name.bytes().all(is_name_byte)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'
}

/// Whether an Athena SELECT needs double quotes around this name. Our DDL quotes every name, so
/// this is only about queries that people write. From the "Escape reserved keywords in queries"
/// page of the Athena user guide.
pub fn is_reserved_in_select(name: &str) -> bool {
    RESERVED_IN_SELECT.binary_search(&name).is_ok()
}

/// Sorted.
const RESERVED_IN_SELECT: &[&str] = &[
    "alter",
    "and",
    "as",
    "between",
    "by",
    "case",
    "cast",
    "constraint",
    "create",
    "cross",
    "cube",
    "current_catalog",
    "current_date",
    "current_path",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "deallocate",
    "delete",
    "describe",
    "distinct",
    "drop",
    "else",
    "end",
    "escape",
    "except",
    "execute",
    "exists",
    "extract",
    "false",
    "first",
    "for",
    "from",
    "full",
    "group",
    "grouping",
    "having",
    "in",
    "inner",
    "insert",
    "intersect",
    "into",
    "is",
    "join",
    "json_array",
    "json_exists",
    "json_object",
    "json_query",
    "json_table",
    "json_value",
    "last",
    "left",
    "like",
    "listagg",
    "localtime",
    "localtimestamp",
    "natural",
    "normalize",
    "not",
    "null",
    "of",
    "on",
    "or",
    "order",
    "outer",
    "prepare",
    "recursive",
    "right",
    "rollup",
    "select",
    "skip",
    "table",
    "then",
    "trim",
    "true",
    "uescape",
    "union",
    "unnest",
    "using",
    "values",
    "when",
    "where",
    "with",
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_become_snake_case() {
        for (attribute, column) in [
            ("orderId", "order_id"),
            ("OrderID", "order_id"),
            ("GSI1PK", "gsi1pk"),
            ("GSI1-PK", "gsi1_pk"),
            ("fle-status", "fle_status"),
            ("HTTPServer", "http_server"),
            ("line1Name", "line1_name"),
            ("URL", "url"),
            ("Url", "url"),
            ("aws:rep:updatetime", "aws_rep_updatetime"),
            ("Source#BpmRange#TrackId", "source_bpm_range_track_id"),
            ("__edb_e__", "__edb_e__"),
            ("a.b", "a_b"),
            ("UnitPrice€", "unit_price_"),
            ("名前", "__"),
            ("state_NV", "state_nv"),
            ("", ""),
        ] {
            assert_eq!(column_name(attribute), column, "{attribute}");
        }
    }

    #[test]
    fn reserved_words_are_sorted_for_the_search() {
        assert!(RESERVED_IN_SELECT.is_sorted());
        assert!(is_reserved_in_select("order") && !is_reserved_in_select("status"));
    }

    proptest! {
        #[test]
        fn a_column_name_is_its_own_column_name(attribute in any::<String>()) {
            let name = column_name(&attribute);
            prop_assert!(name.bytes().all(is_name_byte));
            prop_assert_eq!(column_name(&name), name.clone());
        }
    }
}
