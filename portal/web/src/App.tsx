import { useEffect, useState, useSyncExternalStore } from "react";
import { type Me, ask } from "./api";
import { Create } from "./pages/Create";
import { Workspace } from "./pages/Workspace";
import { Workspaces } from "./pages/Workspaces";
import { type State, snapshot, subscribe } from "./stream/store";
import { text } from "./text";

export function App() {
  const state = useSyncExternalStore(subscribe, snapshot);
  const [me, setMe] = useState<Me>();
  const [note, setNote] = useState("");
  useEffect(() => {
    if (!state.isOver) ask<Me>("GET", "/api/v1/me").then(setMe, () => setMe(undefined));
  }, [state.isOver]);

  async function signOut() {
    await ask("POST", "/logout").catch(() => undefined);
    window.location.assign("/");
  }

  return (
    <>
      <a className="skip" href="#content">
        {text.skip}
      </a>
      <header>
        <h1>{text.title}</h1>
        {me && !state.isOver && (
          <p>
            {text.signedInAs(me.user)} <button onClick={signOut}>{text.signOut}</button>
          </p>
        )}
      </header>
      <main id="content" tabIndex={-1}>
        <p className="note" role="status">
          {note}
        </p>
        {state.isOver ? (
          <section>
            <p>{text.signedOut}</p>
            <a className="button" href={`/login?returnTo=${encodeURIComponent(here())}`}>
              {text.signIn}
            </a>
          </section>
        ) : me?.problem ? (
          <section role="alert">
            <h2>{text.noAccount}</h2>
            <p>{me.problem}</p>
          </section>
        ) : (
          <Page state={state} me={me} onNote={setNote} />
        )}
      </main>
    </>
  );
}

type PageProps = { state: State; me: Me | undefined; onNote: (note: string) => void };

// The page of the address: all workspaces, or one.
function Page({ state, me, onNote }: PageProps) {
  const [, kind, ...name] = window.location.pathname.split("/");
  if (kind === "workspaces" && name.length === 2) {
    const chosen = name.join("/");
    if (!state.rows) return <p>{text.loading}</p>;
    return (
      <>
        <Stale since={state.staleSince} />
        <Workspace row={state.rows.get(chosen)} name={chosen} onNote={onNote} />
      </>
    );
  }
  // Nothing moves when the rows arrive.
  if (!state.rows) return <p>{text.loading}</p>;
  return (
    <>
      <Stale since={state.staleSince} />
      <Workspaces rows={state.rows} onNote={onNote} />
      <Create me={me} onNote={onNote} />
    </>
  );
}

function Stale({ since }: { since: number | undefined }) {
  if (since === undefined) return null;
  return <p role="alert">{text.stale(new Date(since).toLocaleTimeString())}</p>;
}

const here = () => window.location.pathname + window.location.search;
