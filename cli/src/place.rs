//! Where an object lies in a lake, by its key.

/// Place of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// `changes/<table>/dt=<day>/…`
    Changes {
        /// Lake table.
        table: &'a str,
        /// `YYYY-MM-DD`.
        day: &'a str,
    },
    /// `snapshot/<table>/export=<label>/…`
    Snapshot {
        /// Lake table.
        table: &'a str,
        /// `YYYYMMDDTHHMMSSZ`.
        export: &'a str,
    },
    /// `quarantine/dt=<day>/…`
    Quarantine,
    /// Anything else.
    Other,
}

impl<'a> Place<'a> {
    /// The place of a key relative to its lake.
    pub(crate) fn of(key: &'a str) -> Self {
        let mut parts = key.splitn(4, '/');
        let parts = (parts.next(), parts.next(), parts.next(), parts.next());
        match parts {
            (Some("changes"), Some(table), Some(day), Some(_)) => match day.strip_prefix("dt=") {
                Some(day) => Self::Changes { table, day },
                None => Self::Other,
            },
            (Some("snapshot"), Some(table), Some(export), Some(_)) => {
                match export.strip_prefix("export=") {
                    Some(export) => Self::Snapshot { table, export },
                    None => Self::Other,
                }
            }
            (Some("quarantine"), Some(day), Some(_), None) if day.starts_with("dt=") => {
                Self::Quarantine
            }
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_say_where_their_object_lies() {
        assert_eq!(
            Place::of("changes/orders/dt=2026-05-01/a.parquet"),
            Place::Changes {
                table: "orders",
                day: "2026-05-01"
            }
        );
        assert_eq!(
            Place::of("snapshot/orders/export=20260501T000000Z/a.parquet"),
            Place::Snapshot {
                table: "orders",
                export: "20260501T000000Z"
            }
        );
        assert_eq!(
            Place::of("quarantine/dt=2026-05-01/a.jsonl"),
            Place::Quarantine
        );
        for other in [
            "",
            "changes",
            "changes/orders/x",
            "quarantine/replayed/dt=2026-05-01/a.jsonl",
        ] {
            assert_eq!(Place::of(other), Place::Other);
        }
    }
}
