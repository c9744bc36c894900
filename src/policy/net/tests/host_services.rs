//! Services of the host, reached by name.

use super::*;

#[test]
fn reaches_a_service_by_its_name_and_nothing_else() {
    let mut policy = policy(&["*"], &["no.pinfold"]);
    for text in [
        "model.pinfold=127.0.0.1:11434",
        "six.pinfold=[::1]:8080",
        "no.pinfold=127.0.0.1:1",
    ] {
        let (name, service): (String, Service) = parse_service(text, origin()).unwrap();
        policy.services.insert(name, service);
    }
    let address = "127.0.0.1:11434".parse().unwrap();
    for number in [11434, 80] {
        let service = Decision::Service {
            name: "model.pinfold".into(),
            address,
        };
        assert_eq!(decide(&policy, "Model.Pinfold.", port(number)), service);
    }
    for (name, number) in [
        ("model.pinfold", 443),
        ("127.0.0.1", 11434),
        ("x.model.pinfold", 80),
        ("localhost", 11434),
        ("no.pinfold", 1),
    ] {
        assert!(
            matches!(decide(&policy, name, port(number)), Decision::Refused(_)),
            "{name}:{number}"
        );
    }
    policy.mode = Network::Blocked;
    assert_eq!(
        decide(&policy, "model.pinfold", port(80)),
        Decision::Refused(Refusal::Blocked)
    );
}

#[test]
fn refuses_services_that_are_not_one_private_address_under_a_private_name() {
    for text in [
        "model=127.0.0.1:1",
        "pinfold=127.0.0.1:1",
        "api.openai.com=127.0.0.1:1",
        "m.pinfold=127.0.0.1",
        "m.pinfold=127.1:1",
        "m.pinfold=localhost:1",
        "m.pinfold=127.0.0.1:0",
        "m.pinfold=8.8.8.8:53",
        "m.pinfold=169.254.169.254:80",
        "m.pinfold",
        "m.pinfold=[::ffff:127.0.0.1]:1",
        "m.pinfold=0.0.0.0:1",
    ] {
        assert!(parse_service(text, origin()).is_err(), "{text}");
    }
    assert!(parse_service("m.pinfold=192.168.1.5:8080", origin()).is_ok());
}

proptest::proptest! {
    #[test]
    fn a_normalised_name_stays_as_it_is(text in "\\PC{0,40}") {
        if let Ok(name) = normalise(&text) {
            proptest::prop_assert_eq!(normalise(&name), Ok(name.clone()));
            proptest::prop_assert!(!is_literal(&name) && name.is_ascii() && !name.ends_with('.'));
        }
    }
}
