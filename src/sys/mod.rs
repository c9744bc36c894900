//! Every system call that has no safe wrapper; the only unsafe code.
#![allow(unsafe_code)]

pub mod object;
pub mod probe;
