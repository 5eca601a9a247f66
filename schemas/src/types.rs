//! Column types as Athena writes them: text in, [`ColumnType`] out.
//!
//! The grammar is Athena's, plus `set<…>` (a DynamoDB set, which becomes an array) and `json`.
//! Members get the attribute of their own name and every part the field id 0; formats, other
//! attributes and ids are laid over it later. Blanks between the parts are allowed.

use std::fmt;

use crate::model::{AttributeName, Child, ColumnType, Member, StringFormat, TimeFormat};
use crate::naming::{column_name, is_column_name};
use crate::problem::did_you_mean;

/// DynamoDB nests no deeper than this.
const MAX_DEPTH: usize = 32;

/// A type text that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeError {
    /// What is wrong.
    pub what: String,
    /// What to write instead.
    pub remedy: String,
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

impl std::error::Error for TypeError {}

/// Parses a column type.
///
/// ```
/// use dynalake_schemas::types::parse;
/// assert!(parse("array<struct<sku:string,price:decimal(12,2)>>").is_ok());
/// assert!(parse("array<strin>").is_err());
/// ```
pub fn parse(text: &str) -> Result<ColumnType, TypeError> {
    let mut parser = Parser {
        rest: text,
        whole: text,
    };
    let ty = parser.column_type(0)?;
    parser.skip_blanks();
    if parser.rest.is_empty() {
        Ok(ty)
    } else {
        Err(parser.error(
            format!("`{}` follows the end of the type", parser.rest),
            "remove it, or check the brackets",
        ))
    }
}

const NAMES: &[&str] = &[
    "boolean",
    "int",
    "bigint",
    "double",
    "decimal",
    "string",
    "binary",
    "date",
    "timestamp",
    "array",
    "set",
    "map",
    "struct",
    "json",
];

/// What people of other systems write.
fn foreign_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "bool" => "boolean",
        "integer" | "int32" | "tinyint" | "smallint" | "i32" => "int",
        "long" | "int64" | "i64" => "bigint",
        "float" | "real" | "float64" | "f64" => "double",
        "number" | "numeric" | "n" => "decimal(38,0)` with the digits you need, or `bigint",
        "varchar" | "char" | "text" | "str" | "s" | "uuid" => "string",
        "bytes" | "blob" | "varbinary" | "b" => "binary",
        "datetime" | "instant" | "time" => "timestamp",
        "list" | "l" => "array<…>",
        "row" | "record" | "object" => "struct<…>",
        "m" | "dict" => "map<string,…>",
        "ss" | "stringset" => "set<string>",
        "ns" => "set<decimal(p,s)>",
        "bs" => "set<binary>",
        "any" | "variant" | "document" => "json",
        _ => return None,
    })
}

struct Parser<'t> {
    rest: &'t str,
    whole: &'t str,
}

impl<'t> Parser<'t> {
    fn column_type(&mut self, depth: usize) -> Result<ColumnType, TypeError> {
        if depth >= MAX_DEPTH {
            return Err(self.error(
                "the type nests deeper than the 32 levels of DynamoDB".to_owned(),
                "use `json` for the inner part",
            ));
        }
        let name = self.word();
        match name {
            "boolean" => Ok(ColumnType::Boolean),
            "int" => Ok(ColumnType::Int),
            "bigint" => Ok(ColumnType::Bigint),
            "double" => Ok(ColumnType::Double),
            "decimal" => self.decimal(),
            "string" => Ok(ColumnType::String(StringFormat::Text)),
            "binary" => Ok(ColumnType::Binary),
            "date" => Ok(ColumnType::Date(TimeFormat::Iso8601)),
            "timestamp" => Ok(ColumnType::Timestamp(TimeFormat::Iso8601)),
            "json" => Ok(ColumnType::Json),
            "array" => Ok(ColumnType::Array(Box::new(self.only_child(depth)?))),
            "set" => self.set(depth),
            "map" => self.map(depth),
            "struct" => self.members(depth),
            other => Err(self.unknown(other)),
        }
    }

    fn unknown(&self, name: &str) -> TypeError {
        if name.is_empty() {
            let found = match self.rest.chars().next() {
                None => "the type ends where a type name should be".to_owned(),
                Some(character) => format!("`{character}` stands where a type name should be"),
            };
            return self.error(found, format!("use one of {}", NAMES.join(", ")));
        }
        let lower = name.to_ascii_lowercase();
        let meant = foreign_name(&lower).or_else(|| did_you_mean(name, NAMES.iter().copied()));
        self.error(
            format!("`{name}` is not a type"),
            match meant {
                Some(meant) => format!("write `{meant}`"),
                None => format!("use one of {}", NAMES.join(", ")),
            },
        )
    }

    fn decimal(&mut self) -> Result<ColumnType, TypeError> {
        let remedy = "write `decimal(precision,scale)`, for example `decimal(12,2)`";
        self.expect('(', remedy)?;
        let precision = self.number(remedy)?;
        self.expect(',', remedy)?;
        let scale = self.number(remedy)?;
        self.expect(')', remedy)?;
        if !(1..=38).contains(&precision) || scale > precision {
            return Err(self.error(
                format!("`decimal({precision},{scale})` is not possible"),
                "the precision is 1 to 38 digits in total, the scale at most as many",
            ));
        }
        // Both are at most 38 here.
        let scale = i8::try_from(scale).unwrap_or_default();
        Ok(ColumnType::Decimal { precision, scale })
    }

    fn only_child(&mut self, depth: usize) -> Result<Child, TypeError> {
        let remedy = "write the element's type in angle brackets, for example `array<string>`";
        self.expect('<', remedy)?;
        let ty = self.column_type(depth + 1)?;
        self.expect('>', remedy)?;
        Ok(Child { ty, field_id: 0 })
    }

    fn set(&mut self, depth: usize) -> Result<ColumnType, TypeError> {
        let child = self.only_child(depth)?;
        match child.ty {
            ColumnType::String(_)
            | ColumnType::Int
            | ColumnType::Bigint
            | ColumnType::Double
            | ColumnType::Decimal { .. }
            | ColumnType::Binary => Ok(ColumnType::Set(Box::new(child))),
            _ => Err(self.error(
                "a DynamoDB set holds strings, numbers or binaries only".to_owned(),
                "use `set<string>`, `set<decimal(p,s)>`, `set<bigint>`, `set<binary>`, or `array<…>` \
                 for a list",
            )),
        }
    }

    fn map(&mut self, depth: usize) -> Result<ColumnType, TypeError> {
        let remedy = "write `map<string,type>`; attribute names are strings";
        self.expect('<', remedy)?;
        if self.word() != "string" {
            return Err(self.error("the keys of a DynamoDB map are strings".to_owned(), remedy));
        }
        self.expect(',', remedy)?;
        let ty = self.column_type(depth + 1)?;
        self.expect('>', remedy)?;
        Ok(ColumnType::Map {
            key_id: 0,
            value: Box::new(Child { ty, field_id: 0 }),
        })
    }

    fn members(&mut self, depth: usize) -> Result<ColumnType, TypeError> {
        let remedy = "write `struct<name:type,…>`";
        self.expect('<', remedy)?;
        let mut members: Vec<Member> = Vec::new();
        loop {
            self.skip_blanks();
            if members.is_empty() && self.rest.starts_with('>') {
                return Err(self.error(
                    "a struct without members cannot be stored".to_owned(),
                    "name its members, or use `map<string,…>` or `json` where they are not known",
                ));
            }
            let name = self.member_name();
            self.check_member(&members, name)?;
            self.expect(':', remedy)?;
            let ty = self.column_type(depth + 1)?;
            members.push(Member {
                name: name.to_owned(),
                attribute: AttributeName::Named(name.to_owned()),
                ty,
                field_id: 0,
            });
            self.skip_blanks();
            if self.eat(',') {
                continue;
            }
            self.expect('>', remedy)?;
            return Ok(ColumnType::Struct(members));
        }
    }

    fn check_member(&self, before: &[Member], name: &str) -> Result<(), TypeError> {
        if name.is_empty() {
            return Err(self.error(
                "a struct member has no name".to_owned(),
                "write `struct<name:type,…>`",
            ));
        }
        let ours = column_name(name);
        if before.iter().any(|member| member.name == ours) {
            return Err(self.error(
                format!("two struct members are called `{ours}`: `{ours}` and `{name}`"),
                "name them apart, and say with `fields` which attributes they take",
            ));
        }
        if is_column_name(name) {
            return Ok(());
        }
        Err(self.error(
            format!("`{name}` is not a member name: names are made of a-z, 0-9 and _"),
            if is_column_name(&ours) && !ours.trim_matches('_').is_empty() {
                format!("write `{ours}`; it takes the attribute `{name}` by itself")
            } else {
                format!("choose a name `x` and write `fields = {{ x = \"{name}\" }}`")
            },
        ))
    }

    /// Letters, digits and `_`.
    fn word(&mut self) -> &'t str {
        self.skip_blanks();
        self.take_while(|character| character.is_ascii_alphanumeric() || character == '_')
    }

    /// Anything up to what can follow a name; checked by the caller.
    fn member_name(&mut self) -> &'t str {
        self.skip_blanks();
        self.take_while(|character| !matches!(character, ':' | ',' | '<' | '>' | ' ' | '\t'))
    }

    fn number(&mut self, remedy: &str) -> Result<u8, TypeError> {
        self.skip_blanks();
        let digits = self.take_while(|character| character.is_ascii_digit());
        digits
            .parse()
            .map_err(|_| self.error(format!("`{digits}` is not a number of digits"), remedy))
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'t str {
        let end = self
            .rest
            .find(|character| !accept(character))
            .unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn expect(&mut self, character: char, remedy: &str) -> Result<(), TypeError> {
        self.skip_blanks();
        if self.eat(character) {
            return Ok(());
        }
        let found = match self.rest.chars().next() {
            None => "the type ends".to_owned(),
            Some(other) => format!("`{other}` stands"),
        };
        Err(self.error(format!("{found} where `{character}` should be"), remedy))
    }

    fn eat(&mut self, character: char) -> bool {
        match self.rest.strip_prefix(character) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn error(&self, what: impl fmt::Display, remedy: impl Into<String>) -> TypeError {
        let read = self.whole.len() - self.rest.len();
        let column = self.whole.get(..read).unwrap_or_default().chars().count() + 1;
        let what = format!("in type `{}`, character {column}: {what}", self.whole);
        TypeError {
            what,
            remedy: remedy.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::athena::{athena_type, declared_type};
    use proptest::prelude::*;

    #[test]
    fn scalar_and_nested_types_are_read() {
        assert_eq!(parse("int"), Ok(ColumnType::Int));
        assert_eq!(
            parse(" decimal ( 12 , 2 ) "),
            Ok(ColumnType::Decimal {
                precision: 12,
                scale: 2
            })
        );
        let ty = parse("map<string, array<struct<sku:string,qty:int>>>").unwrap();
        assert_eq!(
            athena_type(&ty),
            "map<string,array<struct<sku:string,qty:int>>>"
        );
        assert!(matches!(parse("set<binary>"), Ok(ColumnType::Set(_))));
    }

    #[test]
    fn what_cannot_be_read_says_what_to_write() {
        for (text, what, remedy) in [
            ("strin", "`strin` is not a type", "write `string`"),
            ("STRING", "`STRING` is not a type", "write `string`"),
            ("varchar", "`varchar` is not a type", "write `string`"),
            (
                "",
                "the type ends where a type name should be",
                "use one of boolean",
            ),
            ("struct<>", "a struct without members", "map<string,…>"),
            ("array<struct<>>", "a struct without members", "json"),
            (
                "array",
                "the type ends where `<` should be",
                "array<string>",
            ),
            (
                "array<int",
                "the type ends where `>` should be",
                "angle brackets",
            ),
            ("decimal", "where `(` should be", "decimal(12,2)"),
            ("decimal(39,0)", "is not possible", "1 to 38"),
            ("decimal(2,3)", "is not possible", "at most as many"),
            ("decimal(999,3)", "not a number of digits", "decimal(12,2)"),
            (
                "map<int,string>",
                "keys of a DynamoDB map are strings",
                "map<string,type>",
            ),
            (
                "set<boolean>",
                "strings, numbers or binaries only",
                "array<…>",
            ),
            (
                "struct<unitPrice:int>",
                "`unitPrice` is not a member name",
                "write `unit_price`",
            ),
            (
                "struct<名前:string>",
                "not a member name",
                "fields = { x = \"名前\" }",
            ),
            ("struct<a:int,a:int>", "two struct members", "`fields`"),
            (
                "struct<order_id:int,orderId:int>",
                "`order_id` and `orderId`",
                "`fields`",
            ),
            ("int>", "`>` follows the end", "brackets"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.what.contains(what), "{text}: {}", error.what);
            assert!(error.remedy.contains(remedy), "{text}: {}", error.remedy);
        }
    }

    #[test]
    fn nesting_ends_at_the_depth_of_dynamodb() {
        let nested = |depth: usize| format!("{}int{}", "array<".repeat(depth), ">".repeat(depth));
        assert!(parse(&nested(31)).is_ok());
        assert!(parse(&nested(32)).unwrap_err().what.contains("32 levels"));
        assert!(parse(&nested(100_000)).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,80}") {
            if let Err(error) = parse(&text) {
                prop_assert!(!error.what.is_empty() && !error.remedy.is_empty());
            }
        }

        #[test]
        fn type_like_text_is_read_or_refused(text in "(struct<|array<|map<string,|set<|int|string|a:|,|>|decimal\\(9,2\\)){0,12}") {
            if let Ok(ty) = parse(&text) {
                prop_assert_eq!(declared_type(&ty), text);
            }
        }
    }
}
