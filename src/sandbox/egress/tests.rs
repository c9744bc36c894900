//! The broker over real sockets. `127.0.0.1` plays the host's loopback, which is never dialled for a name; the
//! servers of granted names listen on `127.0.0.2`.

mod crowd;
mod denials;
mod double;
mod records;
mod requests;
mod streams;
