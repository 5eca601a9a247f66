//! Rolls of real conversions on local folders, compared with full exports of the same instant.

mod crash;
mod parity;
mod schemas;
mod trap;
mod world;
