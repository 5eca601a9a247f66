//! Values that may not be in the lake in the clear: dropped, masked, or hashed under a secret.

use std::fmt::Write;

use dynalake_schemas::Transform;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::json::{Tag, Value, write_value};

/// What stands for a masked value.
const MASK: &str = "***";

/// The key of `hmac_sha256` columns, ready for use.
#[derive(Clone)]
pub(crate) struct HmacKey(Hmac<Sha256>);

impl HmacKey {
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        Hmac::new_from_slice(key).ok().map(Self)
    }
}

/// What the lake shows of a value; `None` where it shows nothing.
///
/// A string is hashed as its UTF-8 text, so that the hash of a known value can be worked out
/// elsewhere; any other type as its canonical DynamoDB JSON.
pub(crate) fn apply(
    transform: Transform,
    key: Option<&HmacKey>,
    value: Value<'_>,
) -> Option<String> {
    match (transform, key) {
        (Transform::Drop, _) | (Transform::HmacSha256, None) => None,
        (Transform::Mask, _) => Some(MASK.to_owned()),
        (Transform::HmacSha256, Some(HmacKey(mac))) => {
            let mut mac = mac.clone();
            if value.tag() == Tag::S {
                mac.update(value.text().as_bytes());
            } else {
                let mut text = String::new();
                write_value(value, &mut text);
                mac.update(text.as_bytes());
            }
            let mut hex = String::with_capacity(64);
            for byte in mac.finalize().into_bytes() {
                write!(hex, "{byte:02x}").ok()?;
            }
            Some(hex)
        }
    }
}
