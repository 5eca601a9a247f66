//! The ARN of a table, taken apart.

use std::fmt;

/// `arn:<partition>:dynamodb:<region>:<account>:table/<name>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableArn {
    text: String,
    region: String,
    name: String,
}

impl TableArn {
    /// Reads an ARN.
    ///
    /// # Errors
    /// The sentence that says what it is instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let not = |what: &str| Err(format!("`{text}` {what}"));
        let parts: Vec<&str> = text.splitn(6, ':').collect();
        let [arn, partition, service, region, account, resource] = parts.as_slice() else {
            return not("is no ARN; a table's is `arn:aws:dynamodb:REGION:ACCOUNT:table/NAME`");
        };
        let plain = |text: &str, extra: &[u8]| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || extra.contains(&byte))
        };
        let account_is = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
        if *arn != "arn"
            || !partition.starts_with("aws")
            || *service != "dynamodb"
            || !plain(region, b"-")
            || !account_is
        {
            return not("is not the ARN of a table, `arn:aws:dynamodb:REGION:ACCOUNT:table/NAME`");
        }
        match resource.strip_prefix("table/") {
            Some(name) if plain(name, b"_.-") => Ok(Self {
                text: text.to_owned(),
                region: (*region).to_owned(),
                name: name.to_owned(),
            }),
            Some(name) if name.contains("/stream/") => {
                not("is the ARN of a stream; give the part before `/stream/`")
            }
            _ => not("is not the ARN of a table, `arn:aws:dynamodb:REGION:ACCOUNT:table/NAME`"),
        }
    }

    /// The ARN.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The table's region.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The AWS CLI's command that turns point-in-time recovery on.
    pub fn enable_recovery_command(&self) -> String {
        format!(
            "aws dynamodb update-continuous-backups --region {} --table-name {} \
             --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true",
            self.region, self.name
        )
    }
}

impl fmt::Display for TableArn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
