//! The deployment: its template before judges, its tables against the files, and deployed.

mod columns;
mod deployed;
mod examples;
mod facts;
mod judged;
mod scripts;
mod world;
