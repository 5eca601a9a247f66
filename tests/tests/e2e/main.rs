//! End to end: the real binaries and the S3 store against a real S3 server, with failures between.
//!
//! One binary, so that one server and one build of the binaries serve all modules.

mod export;
mod store_s3;
