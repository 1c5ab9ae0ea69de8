//! The image of a workspace, and the setup that belongs to the image.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use serde_json::Value;

use case::answer;

/// The image in the XR's status. The pool boots the same image.
fn image(name: &str) -> Value {
    let response = answer(&case::request(name));
    let pool = case::pool(&response).unwrap();
    let image = case::status(&response)["image"].clone();
    assert_eq!(
        image["id"], pool["spec"]["forProvider"]["image"]["id"],
        "{name}"
    );
    image
}

#[test]
fn the_image_is_chosen_once() {
    let first = image("new-workspace");
    assert_eq!(first["id"], "ami-00000000000c0de01");
    for later in [
        "ready",
        "image-kept-when-the-catalogue-moves-on",
        "image-kept-when-the-region-leaves-the-catalogue",
        "image-of-a-restored-xr",
        "held-without-a-catalogue",
    ] {
        assert_eq!(image(later), first, "{later}");
    }
}

/// Another `PyTorch` in the catalogue belongs to another image. A workspace keeps its image and the
/// setup for it.
#[test]
fn a_catalogue_that_moves_on_does_not_change_the_setup_of_a_workspace() {
    let user_data = |name: &str| {
        let pool = case::pool(&answer(&case::request(name))).unwrap();
        pool["spec"]["forProvider"]["userData"].clone()
    };
    let moved = user_data("image-kept-when-the-catalogue-moves-on");
    assert_eq!(moved, user_data("new-workspace"));
}

/// A workspace whose setup fails for a wrong entry would otherwise have to be created anew.
#[test]
fn the_catalogue_may_correct_what_it_says_about_the_image_of_a_workspace() {
    let corrected = image("v3-image-entry-corrected");
    assert_eq!(corrected["id"], "ami-00000000000c0de01");
    assert_eq!(corrected["pytorch"]["python"], "/opt/pytorch/bin/python3");
}
