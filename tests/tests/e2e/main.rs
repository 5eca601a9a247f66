//! End to end: the real binaries and the S3 store against a real S3 server, with failures between.
//!
//! One binary, so that one server and one build of the binaries serve all modules.

mod compaction;
mod corpus_streams;
mod event;
mod export;
mod request;
mod stack;
mod store_s3;
mod stream;
mod stream_failures;
mod stream_startup;
mod worker;
mod world;
