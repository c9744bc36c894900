//! Every system call that has no safe wrapper; the only unsafe code.
