//! The Packer template of the examples.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use function_ec2::image_build::PYTHON;

fn template() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/image/workspace.pkr.hcl");
    std::fs::read_to_string(file).unwrap()
}

fn blocks<'a>(body: &'a hcl::Body, name: &'a str) -> impl Iterator<Item = &'a hcl::Block> {
    body.blocks()
        .filter(move |block| block.identifier() == name)
}

#[test]
fn the_template_parses_and_its_build_uses_its_source() {
    let body: hcl::Body = hcl::from_str(&template()).unwrap();
    let source = blocks(&body, "source").next().unwrap();
    let labels: Vec<_> = source
        .labels()
        .iter()
        .map(hcl::BlockLabel::as_str)
        .collect();
    let build = blocks(&body, "build").next().unwrap();
    let used = build.body().attributes().find(|one| one.key() == "sources");
    let expected = hcl::Expression::from(vec![format!("source.{}", labels.join("."))]);
    assert_eq!(used.unwrap().expr(), &expected);
}

#[test]
fn every_variable_of_the_template_is_declared() {
    let text = template();
    let body: hcl::Body = hcl::from_str(&text).unwrap();
    let declared: Vec<_> = blocks(&body, "variable")
        .map(|block| block.labels()[0].as_str())
        .collect();
    let mut used = 0;
    for rest in text.split("var.").skip(1) {
        let name: String = rest
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        assert!(declared.contains(&name.as_str()), "{name}");
        used += 1;
    }
    assert!(used >= declared.len());
}

/// Otherwise the template would wait for a file that the machine never gets.
#[test]
fn the_template_waits_for_the_interpreter_that_the_user_data_makes() {
    assert!(template().contains(PYTHON));
}
