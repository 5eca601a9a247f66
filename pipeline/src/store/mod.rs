//! Where objects go.
