//! Lambda events of a DynamoDB stream, as AWS shapes them.

use serde_json::{Map, Value, json};

/// ARN of the stream of the table in `fixtures/schemas/shop`.
pub const ARN: &str =
    "arn:aws:dynamodb:eu-west-1:111122223333:table/shop-table/stream/2026-05-01T00:00:00.000";

/// Label of that stream: what `_stream` holds.
pub const LABEL: &str = "2026-05-01T00:00:00.000";

/// 2026-05-01T10:00:00Z, in seconds.
pub const MORNING: i64 = 1_777_629_600;

/// A change before it becomes a record: what differs from a plain record is set on it.
#[derive(Debug, Clone)]
pub struct Change {
    /// `eventName`.
    pub name: &'static str,
    /// Position: the record's sequence number is 21 digits that end in it.
    pub n: u64,
    /// Image after the change.
    pub new: Option<Value>,
    /// Image before the change.
    pub old: Option<Value>,
    /// `ApproximateCreationDateTime`; `None` leaves it out.
    pub at: Option<Value>,
    /// Deleted by time to live.
    pub ttl: bool,
    /// `StreamViewType`.
    pub view: &'static str,
    /// `eventSourceARN`.
    pub arn: &'static str,
}

/// A new item.
pub fn insert(n: u64, new: Value) -> Change {
    change("INSERT", n, Some(new), None)
}

/// A changed item.
pub fn modify(n: u64, old: Value, new: Value) -> Change {
    change("MODIFY", n, Some(new), Some(old))
}

/// A deleted item.
pub fn remove(n: u64, old: Value) -> Change {
    change("REMOVE", n, None, Some(old))
}

fn change(name: &'static str, n: u64, new: Option<Value>, old: Option<Value>) -> Change {
    let at = Some(json!(MORNING + i64::try_from(n).unwrap() % 3600));
    Change {
        name,
        n,
        new,
        old,
        at,
        ttl: false,
        view: "NEW_AND_OLD_IMAGES",
        arn: ARN,
    }
}

impl Change {
    /// As Lambda delivers it.
    pub fn record(&self) -> Value {
        let image = self.new.as_ref().or(self.old.as_ref()).unwrap();
        let mut body = Map::new();
        if let Some(at) = &self.at {
            body.insert("ApproximateCreationDateTime".into(), at.clone());
        }
        body.insert("Keys".into(), json!({"PK": image["PK"], "SK": image["SK"]}));
        let (has_new, has_old) = match self.view {
            "NEW_AND_OLD_IMAGES" => (true, true),
            "NEW_IMAGE" => (true, false),
            "OLD_IMAGE" => (false, true),
            _ => (false, false),
        };
        for (member, image, has) in [
            ("NewImage", &self.new, has_new),
            ("OldImage", &self.old, has_old),
        ] {
            if let Some(image) = image.as_ref().filter(|_| has) {
                body.insert(member.into(), image.clone());
            }
        }
        body.insert("SequenceNumber".into(), json!(sequence_number(self.n)));
        body.insert("SizeBytes".into(), json!(120));
        body.insert("StreamViewType".into(), json!(self.view));
        let mut record = json!({
            "eventID": event_id(self.n),
            "eventName": self.name,
            "eventVersion": "1.1",
            "eventSource": "aws:dynamodb",
            "awsRegion": "eu-west-1",
            "dynamodb": body,
            "eventSourceARN": self.arn,
        });
        if self.ttl {
            record["userIdentity"] =
                json!({"type": "Service", "principalId": "dynamodb.amazonaws.com"});
        }
        record
    }
}

/// `eventID` of the n-th change.
pub fn event_id(n: u64) -> String {
    format!("{n:032x}")
}

/// Sequence number of the n-th change.
pub fn sequence_number(n: u64) -> String {
    format!("8{n:020}")
}

/// An event of these records.
pub fn event(records: impl IntoIterator<Item = Value>) -> String {
    json!({"Records": records.into_iter().collect::<Vec<_>>()}).to_string()
}

/// An event of these changes.
pub fn batch<'a>(changes: impl IntoIterator<Item = &'a Change>) -> String {
    event(changes.into_iter().map(Change::record))
}

/// A user.
pub fn user(id: u64, name: &str) -> Value {
    json!({
        "PK": {"S": format!("USER#{id}")},
        "SK": {"S": "METADATA"},
        "name": {"S": name},
        "email": {"S": format!("user{id}@example.com")},
        "joinedAt": {"S": "2026-04-30T23:59:59.250Z"},
    })
}

/// An order with a value of every type.
pub fn order(user: u64, id: u64, status: &str) -> Value {
    json!({
        "PK": {"S": format!("USER#{user}")},
        "SK": {"S": format!("ORDER#{id}")},
        "status": {"S": status},
        "total": {"N": format!("{id}.05")},
        "placedAt": {"N": "1777629600123"},
        "tags": {"SS": ["red", "blue", "緑"]},
        "lines": {"L": [
            {"M": {"sku": {"S": "A-1"}, "qty": {"N": "2"}, "price": {"N": "0.5"}}},
            {"M": {"sku": {"S": "B-2"}, "qty": {"N": "1"}, "price": {"N": "9007199254740993.01"}}},
        ]},
        "attrs": {"M": {"gift": {"S": "yes"}, "メモ": {"S": "急ぎ"}}},
        "label": {"B": "AAECAw=="},
        "undeclared": {"L": [{"NULL": true}, {"BOOL": false}, {"NS": ["3", "1e1"]}]},
    })
}

/// A shipment in a state.
pub fn shipment(id: u64, state: &str) -> Value {
    json!({
        "PK": {"S": format!("SHIP#{id}")},
        "SK": {"S": "STATE"},
        "state": {"S": state},
        "carrier": {"S": "post"},
    })
}
