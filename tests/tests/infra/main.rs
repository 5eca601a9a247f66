//! The deployment: its template before judges, its tables against the files, and deployed.

mod columns;
mod facts;
mod judged;
