//! `why`.

use crate::commands::call::Call;
use crate::grammar::Why;
use crate::output::{self, Format};
use crate::problem::Problem;
use crate::why;
use crate::workspace::Workspace;

/// Says why a workspace is as it is.
pub(super) async fn why(call: Call<'_>, given: &Why) -> Result<u8, Problem> {
    let claim = call.claim(&given.name).await?;
    let workspace = Workspace::new(&claim);
    // A user without the right to read events still gets the rest.
    let events = call.events(workspace).await.unwrap_or_default();
    let answer = why::answer(workspace, &events);
    let terminal = call.host.terminal;
    match given.output.format {
        Format::Json | Format::Yaml => {
            terminal.document(&output::document(&answer.json(), given.output.format))?;
        }
        Format::Name => terminal.data(&workspace.name().into())?,
        Format::Table | Format::Wide => {
            for line in answer.lines() {
                terminal.data(&line)?;
            }
        }
    }
    Ok(0)
}
