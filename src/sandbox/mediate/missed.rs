//! The socket files that were asked for and not connected to, for what a person is told afterwards.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Different paths that are kept; what comes after them is not.
const MOST: usize = 64;

/// Shared by the mediators of a launch and who asks at its end.
#[derive(Debug, Clone, Default)]
pub struct Missed(Arc<Mutex<BTreeSet<PathBuf>>>);

impl Missed {
    pub(super) fn note(&self, path: &Path) {
        let mut paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if paths.len() < MOST {
            paths.insert(path.to_owned());
        }
    }

    /// What was missed so far, as the callers wrote it.
    pub fn paths(&self) -> Vec<PathBuf> {
        let paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paths.iter().cloned().collect()
    }
}
