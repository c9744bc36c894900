//! No thread can gain privileges by exec, and every id is the one that is mapped.

use super::{Moment, each_thread};
use crate::verify::Finding;
use crate::verify::facts::Facts;
use crate::verify::subject::Subject;

pub fn check(facts: &Facts, subject: &Subject, _: Moment) -> Vec<Finding> {
    each_thread("privileges", facts, |_, thread| {
        let status = &thread.status;
        if status.no_new_privs != 1 {
            return Some("no_new_privs is not set".into());
        }
        let foreign_uid = status.uids.iter().find(|uid| **uid != subject.uid.outside);
        let foreign_gid = status.gids.iter().find(|gid| **gid != subject.gid.outside);
        match (foreign_uid, foreign_gid) {
            (Some(uid), _) => Some(format!("it runs as user {uid}, not {}", subject.uid.outside)),
            (None, Some(gid)) => Some(format!("it runs as group {gid}, not {}", subject.gid.outside)),
            (None, None) => None,
        }
    })
}
