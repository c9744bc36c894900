//! Enforcement: what a launch may do, made true by the kernel and by the broker.
#![forbid(unsafe_code)]

pub mod egress;
