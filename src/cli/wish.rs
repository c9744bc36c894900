//! Grants as typed, in the words of a launch.

use super::args::Grants;
use crate::launch::Wish;
use crate::policy::Limits;

impl From<Grants> for Wish {
    fn from(grants: Grants) -> Wish {
        let words = |paths: Vec<std::path::PathBuf>| paths.into_iter().map(Into::into).collect();
        Wish {
            profile: grants.profile,
            allow: words(grants.allow),
            read: words(grants.read),
            allow_domains: grants.allow_domain,
            services: grants.service,
            listen_ports: grants.listen_port,
            open_ports: grants.open_port,
            block_net: grants.block_net,
            env: grants.env,
            allow_missing: grants
                .allow_missing
                .into_iter()
                .map(|one| one.full_name().to_owned())
                .collect(),
            bounds: Limits {
                memory: grants.memory,
                processes: grants.processes,
                cpu: grants.cpu,
                ..Limits::default()
            },
            tmp_size: grants.tmp_size,
            workdir: grants.workdir.map(Into::into),
            from: None,
        }
    }
}
