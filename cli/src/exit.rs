//! How a command ends: exit codes, and failures with their hints.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use dynalake_pipeline::baseline::BaselineError;
use dynalake_pipeline::store::{StoreError, StoreErrorKind};

/// Exit code of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Ok,
    /// Done, and there is something to look at: problems in schemas or data.
    Findings,
    /// The command line, a file it names, or the configuration is wrong.
    Usage,
    /// The lake, the export or the network failed.
    Remote,
    /// Ctrl-C.
    Interrupted,
}

impl Exit {
    /// The number the shell sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Findings => 1,
            Self::Usage => 2,
            Self::Remote => 3,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command could not do its work. Printed once, in `main`; hints follow the message.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Exit code.
    pub(crate) exit: Exit,
    /// One sentence, or one per line; never a customer's value.
    pub(crate) message: String,
    /// What to do next.
    pub(crate) hints: Vec<String>,
}

/// What a command gives back.
pub(crate) type Outcome<T = Exit> = Result<T, Failure>;

impl Failure {
    /// Data or schemas are not as they should be.
    pub(crate) fn findings(message: impl Display) -> Self {
        Self::new(Exit::Findings, message)
    }

    /// The command line or the configuration is wrong.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// The lake, the export or the network failed.
    pub(crate) fn remote(message: impl Display) -> Self {
        Self::new(Exit::Remote, message)
    }

    fn new(exit: Exit, message: impl Display) -> Self {
        Self {
            exit,
            message: message.to_string(),
            hints: Vec::new(),
        }
    }

    /// Adds what to do next.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }
}

impl From<io::Error> for Failure {
    /// Writing to stdout failed. A reader that has seen enough (`| head`) is success.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Exit::Ok, "");
        }
        Self::remote(format!("cannot write to standard output: {error}"))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error.kind() {
            StoreErrorKind::BadKey => Self::usage(error),
            // A folder that may not be written says so itself; it knows no credentials.
            StoreErrorKind::Denied if error.http_status().is_some() => Self::remote(error)
                .hint("check the credentials in use (`AWS_PROFILE`, `AWS_ACCESS_KEY_ID`) and what they may do"),
            StoreErrorKind::Unavailable => Self::remote(error).hint("run the same command again"),
            StoreErrorKind::Changed => {
                Self::remote(error).hint("it was being written: run the same command again")
            }
            _ => Self::remote(error),
        }
    }
}

impl From<BaselineError> for Failure {
    fn from(error: BaselineError) -> Self {
        match error {
            BaselineError::Store(error) => Self::from(error),
            BaselineError::NotFound { .. } => Self::usage(error),
            BaselineError::IsCurrent { .. } => {
                Self::usage(error).hint("`--force` removes it all the same")
            }
            BaselineError::ObjectsMissing { .. }
            | BaselineError::SameSecond { .. }
            | BaselineError::Unreadable { .. } => Self::findings(error),
            _ => Self::remote(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_success() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(failure.exit, Exit::Ok);
        let failure = Failure::from(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(failure.exit, Exit::Remote);
    }
}
