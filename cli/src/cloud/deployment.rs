//! A deployed stack: what it is made of, by its outputs.

use std::collections::BTreeMap;

use aws_config::SdkConfig;
use aws_sdk_cloudformation::Client;

use super::refused::refused;
use super::{Functions, Metrics, Workflow, config};
use crate::exit::{Failure, Outcome};

/// A stack of `infra/base.yaml`.
#[derive(Debug)]
pub(crate) struct Deployment {
    /// The stack's name.
    pub(crate) name: String,
    /// CloudFormation's word for its state, such as `UPDATE_COMPLETE`.
    pub(crate) status: String,
    outputs: BTreeMap<String, String>,
    parameters: BTreeMap<String, String>,
    config: SdkConfig,
}

impl Deployment {
    /// Finds a stack in the configured region.
    pub(crate) async fn find(name: &str) -> Outcome<Self> {
        let config = config(None).await?;
        let region = config.region().map(ToString::to_string);
        let region = region.unwrap_or_default();
        let absent = || {
            Failure::usage(format!("there is no stack `{name}` in {region}"))
                .hint("check the name, `AWS_REGION` and `AWS_PROFILE`; `infra/deploy.sh` makes one")
        };
        let call = Client::new(&config).describe_stacks().stack_name(name);
        let stacks = match Box::pin(call.send()).await {
            Ok(answer) => answer.stacks.unwrap_or_default(),
            Err(error) => {
                let refused = refused("looking at the stack", &error);
                // CloudFormation API reference, DescribeStacks: a stack that is not there is a
                // ValidationError.
                let is_absent = refused.code.as_deref() == Some("ValidationError")
                    && refused.message.contains("does not exist");
                return Err(if is_absent {
                    absent()
                } else {
                    refused.needing("cloudformation:DescribeStacks")
                });
            }
        };
        let stack = stacks.into_iter().next().ok_or_else(absent)?;
        let outputs = stack.outputs.unwrap_or_default().into_iter();
        let parameters = stack.parameters.unwrap_or_default().into_iter();
        Ok(Self {
            name: name.to_owned(),
            status: stack
                .stack_status
                .map(|status| status.as_str().to_owned())
                .unwrap_or_default(),
            outputs: outputs
                .filter_map(|one| Some((one.output_key?, one.output_value?)))
                .collect(),
            parameters: parameters
                .filter_map(|one| Some((one.parameter_key?, one.parameter_value?)))
                .collect(),
            config,
        })
    }

    /// An output; each stack of ours has it once it is complete.
    pub(crate) fn output(&self, name: &str) -> Outcome<&str> {
        self.outputs.get(name).map(String::as_str).ok_or_else(|| {
            Failure::usage(format!(
                "stack `{}` ({}) has no output `{name}`",
                self.name, self.status
            ))
            .hint("is it a stack of `infra/deploy.sh`? One that failed or is being made has none yet; deploy it again")
        })
    }

    /// A parameter that the stack was deployed with.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// `s3://…`, as `dynalake` commands take it.
    pub(crate) fn lake(&self) -> Outcome<&str> {
        self.output("LakeUri")
    }

    /// ARN of the source table, where it can be told.
    pub(crate) fn table_arn(&self) -> Option<String> {
        let stream = self.parameter("StreamArn")?;
        Some(stream.split_once("/stream/")?.0.to_owned())
    }

    /// The workflow of exports.
    pub(crate) fn workflow(&self) -> Outcome<Workflow> {
        Ok(Workflow::new(
            &self.config,
            self.output("ExportStateMachineArn")?,
        ))
    }

    /// Functions and mappings.
    pub(crate) fn functions(&self) -> Functions {
        Functions::new(&self.config)
    }

    /// Metrics and alarms.
    pub(crate) fn metrics(&self) -> Metrics {
        Metrics::new(&self.config)
    }
}
