//! Protected paths that were absent at the start cannot be covered by a mount without leaving something on the host;
//! what stands there at the end is told before any tool of the host reads it.

use crate::base::AbsPath;
use crate::policy::Policy;

/// The protected paths at which nothing stands now.
pub fn absent(policy: &Policy) -> Vec<AbsPath> {
    let paths = policy
        .protected
        .iter()
        .filter(|protected| protected.kind.is_none())
        .map(|protected| &protected.path);
    paths.filter(|path| !exists(path)).cloned().collect()
}

/// Those of them at which something stands by now.
pub fn appeared(before: &[AbsPath]) -> Vec<AbsPath> {
    before.iter().filter(|path| exists(path)).cloned().collect()
}

fn exists(path: &AbsPath) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}
