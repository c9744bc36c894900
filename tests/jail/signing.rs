//! Commits are signed through an agent's socket that was granted: the key itself is never inside.

use crate::place::{Ended, Place, finish};
use crate::protected::git;
use std::path::PathBuf;
use std::process::Command;

/// A repository, a key that an agent outside holds, and the profile that grants its socket.
struct Signer {
    place: Place,
    variables: Vec<(&'static str, String)>,
    /// What ends the agent.
    end: Vec<String>,
    socket: PathBuf,
}

impl Signer {
    fn new() -> Signer {
        let place = Place::new();
        git(&place, &["init", "-q"]);
        git(&place, &["config", "user.name", "Ann"]);
        git(&place, &["config", "user.email", "ann@example.org"]);
        Signer {
            place,
            variables: Vec::new(),
            end: Vec::new(),
            socket: PathBuf::new(),
        }
    }

    /// GnuPG's own folder is not the default one: that one's socket may be the person's who runs this.
    fn gpg() -> Signer {
        let mut signer = Signer::new();
        let keys = signer.place.home.join("keys").display().to_string();
        signer.variables = vec![("GNUPGHOME", keys)];
        signer.end = ["gpgconf", "--kill", "gpg-agent"].map(str::to_owned).to_vec();
        let make = "mkdir -m 700 \"$GNUPGHOME\"; gpg -q --batch --passphrase '' --quick-gen-key 'Ann <ann@example.org>' ed25519 sign never
                    gpgconf --list-dirs agent-socket";
        let made = finish(signer.equip(signer.place.command("sh").args(["-ec", make]))).expect(0);
        signer.socket = made.out().trim().into();
        git(&signer.place, &["config", "user.signingkey", "ann@example.org"]);
        signer
    }

    fn ssh() -> Signer {
        let mut signer = Signer::new();
        signer.socket = signer.place.path().join("agent");
        let socket = signer.socket.display().to_string();
        signer.variables = vec![("SSH_AUTH_SOCK", socket)];
        let make = "ssh-keygen -q -t ed25519 -N '' -f ../key; ssh-agent -a \"$SSH_AUTH_SOCK\" | sed -n 's/.*PID=\\([0-9]*\\);.*/\\1/p'
                    ssh-add -q ../key; printf 'ann@example.org %s' \"$(cat ../key.pub)\" > ../signers";
        let made = finish(signer.equip(signer.place.command("sh").args(["-ec", make]))).expect(0);
        signer.end = vec!["kill".into(), made.out().trim().into()];
        let key = std::fs::read_to_string(signer.place.path().join("key.pub")).unwrap();
        let signers = signer.place.path().join("signers").display().to_string();
        for (name, value) in [
            ("gpg.format", "ssh"),
            ("user.signingkey", &format!("key::{key}")),
            ("gpg.ssh.allowedSignersFile", &signers),
        ] {
            git(&signer.place, &["config", name, value]);
        }
        signer
    }

    fn equip<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.envs(self.variables.iter().map(|(name, value)| (name, value)))
    }

    /// Signs a commit inside; `grants` are the entries of `filesystem`.
    fn sign(&self, grants: &str, options: &[&str]) -> Ended {
        let profile = self.place.path().join("signing.json");
        std::fs::write(
            &profile,
            format!(r#"{{"extends": "default", "filesystem": {{{grants}}}}}"#),
        )
        .unwrap();
        let mut all = vec!["--profile", profile.to_str().unwrap()];
        all.extend(options);
        let script = "git commit -qS --allow-empty -m signed && test ! -e ../key && test ! -e ../home/keys/private-keys-v1.d/*.key";
        finish(self.equip(&mut self.place.sh(&all, script)))
    }

    fn socket(&self) -> String {
        format!(r#""unix_socket": ["{}"]"#, self.socket.display())
    }

    #[track_caller]
    fn is_signed(&self) {
        finish(self.equip(self.place.command("git").args(["verify-commit", "HEAD"]))).expect(0);
    }
}

impl Drop for Signer {
    fn drop(&mut self) {
        let mut command = self.place.command(&self.end[0]);
        let _ = self.equip(command.args(&self.end[1..])).output();
    }
}

#[test]
fn a_commit_is_signed_with_gpg_through_the_granted_socket_and_not_without() {
    let signer = Signer::gpg();
    let keyring = r#""read_file": ["$HOME/keys/pubring.kbx"]"#;
    let options = ["--env", "GNUPGHOME"];
    let refused = signer.sign(keyring, &options).expect(128);
    assert!(
        refused.err().contains("the command needs gpg's agent"),
        "{}",
        refused.err()
    );
    assert!(refused.err().contains("S.gpg-agent: it signs"), "{}", refused.err());
    assert!(refused.err().contains("filesystem.unix_socket"), "{}", refused.err());
    signer
        .sign(&format!("{keyring}, {}", signer.socket()), &options)
        .expect(0);
    signer.is_signed();
}

#[test]
fn a_commit_is_signed_with_an_ssh_key_through_the_granted_socket_and_not_without() {
    let signer = Signer::ssh();
    let refused = signer.sign("", &[]).expect(128);
    assert!(refused.err().contains("agent socket"), "{}", refused.err());
    // The variable alone leads nowhere: the socket is not there.
    let refused = signer.sign("", &["--env", "SSH_AUTH_SOCK"]).expect(128);
    assert!(refused.err().contains("agent"), "{}", refused.err());
    let granted = r#""unix_socket": ["$SSH_AUTH_SOCK"]"#;
    signer.sign(granted, &["--env", "SSH_AUTH_SOCK"]).expect(0);
    signer.is_signed();
}

#[test]
fn why_names_an_agents_socket_that_is_not_granted() {
    let signer = Signer::ssh();
    let question = format!("unix:{}", signer.socket.display());
    let mut command = signer.place.command(crate::place::program());
    let answer = finish(command.args(["why", &question])).expect(1);
    let line = format!("no line grants the socket {}", signer.socket.display());
    assert!(answer.out().contains(&line), "{}", answer.out());
}
