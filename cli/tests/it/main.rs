//! The real binary, run on temporary folders.

#[cfg(test)]
mod audit;
#[cfg(test)]
mod baselines;
#[cfg(test)]
mod compact;
#[cfg(test)]
mod current;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod deployment;
#[cfg(test)]
mod estimate;
#[cfg(test)]
mod export;
#[cfg(test)]
mod help;
#[cfg(test)]
mod incremental;
#[cfg(test)]
mod infer;
#[cfg(test)]
mod inspect;
#[cfg(test)]
mod quarantine;
#[cfg(test)]
mod refusals;

mod replay;
#[cfg(test)]
mod s3_options;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod show;
#[cfg(test)]
mod sql;
#[cfg(test)]
mod tables;
#[cfg(test)]
mod world;
