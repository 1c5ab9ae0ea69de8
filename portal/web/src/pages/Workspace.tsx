import { useState } from "react";
import { type Row, type Whole, ask, said } from "../api";
import { knownHost } from "../knownHost";
import { dollars } from "../money";
import { text } from "../text";
import { useAnswer } from "../useAnswer";
import { Change } from "./Change";
import { Command } from "./Command";
import { Until } from "../Until";
import { Phase } from "./Phase";
import { Timeline } from "./Timeline";

type Props = { row: Row | undefined; name: string; onNote: (note: string) => void };

// One workspace: how to enter it, when it stops, and why it is as it is. `row` comes by the stream, so the page
// follows without being loaded again.
export function Workspace({ row, name, onNote }: Props) {
  if (!row) return <p>{text.noSuch(name)}</p>;
  return (
    <article aria-labelledby="workspace">
      <p>
        <a href="/">{text.back}</a>
      </p>
      <h2 id="workspace">{row.name}</h2>
      <p>
        <Phase row={row} />
        {row.machine && ` · ${row.machine}`}
        {row.message && <small>{row.message}</small>}
      </p>
      <Connect row={row} />
      <Run row={row} onNote={onNote} />
      <Cost row={row} />
      <Change key={row.uid} row={row} onNote={onNote} />
      <Conditions row={row} />
      <Timeline row={row} />
    </article>
  );
}

function Connect({ row }: { row: Row }) {
  const isReady = row.phase === "Ready" && row.ssh !== undefined;
  const host = knownHost(row.name, row.ssh ?? "");
  return (
    <section aria-labelledby="connect">
      <h3 id="connect">{text.connect}</h3>
      {isReady ? <Command command={row.ssh ?? ""} /> : <p>{text.connectNone}</p>}
      {isReady && row.hostKeys && (
        <details>
          <summary>{text.hostKeys}</summary>
          {row.hostKeys.map((key) => (
            <Command key={key} command={`${host} ${key}`} />
          ))}
        </details>
      )}
      {isReady && !row.hostKeys && <small>{text.noHostKeys}</small>}
    </section>
  );
}

const EXTENSIONS = ["1h", "4h"];
const RUNS = ["Ready", "Provisioning", "Interrupted", "Queued"];
const STOPPED = ["Stopped", "Expired", "Stopping"];

function Run({ row, onNote }: { row: Row; onNote: (note: string) => void }) {
  const [problem, setProblem] = useState("");
  async function act(action: string, note: string, body?: unknown) {
    setProblem("");
    try {
      await ask("POST", `/api/v1/workspaces/${row.namespace}/${row.name}/${action}`, body);
      onNote(note);
    } catch (error) {
      setProblem(said(error));
    }
  }
  return (
    <section aria-labelledby="run">
      <h3 id="run">{text.lifecycle}</h3>
      <p>
        {row.stopsAt ? (
          <>
            {text.stopsNext}
            <Until time={row.stopsAt} />
            {text.stopsAt(new Date(row.stopsAt).toLocaleString(), row.stopsBecause ?? "")}
          </>
        ) : (
          text.stopsNever
        )}
      </p>
      <Extension row={row} />
      {problem && <p role="alert">{problem}</p>}
      {RUNS.includes(row.phase) && (
        <>
          {EXTENSIONS.map((by) => (
            <button key={by} onClick={() => act("extend", text.extended(by), { by })}>
              {text.extendBy(by)}
            </button>
          ))}
          <button onClick={() => act("stop", text.stopping(row.name))}>{text.stop}</button>
        </>
      )}
      {STOPPED.includes(row.phase) && (
        <button onClick={() => act("start", text.starting(row.name))}>{text.start}</button>
      )}
    </section>
  );
}

// What was asked for and what was granted are two things: the policy or the budget may have cut it.
function Extension({ row }: { row: Row }) {
  if (!row.extension) return null;
  const { askedUntil, grantedUntil, message } = row.extension;
  const shown = (time: string) => new Date(time).toLocaleString();
  if (!grantedUntil) return <p role="alert">{text.refusedExtension(message ?? "")}</p>;
  if (message) {
    return <p>{text.grantedLess(shown(askedUntil), shown(grantedUntil), message)}</p>;
  }
  return <p>{text.granted(shown(grantedUntil))}</p>;
}

function Cost({ row }: { row: Row }) {
  if (row.hourlyUsd === undefined) return null;
  return (
    <section aria-labelledby="cost">
      <h3 id="cost">{text.cost}</h3>
      <p>
        {text.perHour(dollars(row.hourlyUsd))}
        {row.soFarUsd !== undefined && ` · ${text.soFar(dollars(row.soFarUsd))}`}
      </p>
    </section>
  );
}

// Conditions are not in the stream: the page asks for them when the workspace changes.
function Conditions({ row }: { row: Row }) {
  const whole = useAnswer<Whole>(`/api/v1/workspaces/${row.namespace}/${row.name}`, row);
  if (!whole?.conditions?.length) return null;
  return (
    <section aria-labelledby="conditions">
      <h3 id="conditions">{text.conditions}</h3>
      <div className="wide">
        <table>
          <thead>
            <tr>
              <th scope="col">{text.condition}</th>
              <th scope="col">{text.conditionStatus}</th>
              <th scope="col">{text.reason}</th>
              <th scope="col">{text.since}</th>
            </tr>
          </thead>
          <tbody>
            {whole.conditions.map((one) => (
              <tr key={one.type}>
                <th scope="row">{one.type}</th>
                <td>{one.status}</td>
                <td>
                  {one.reason}
                  {one.message && <small>{one.message}</small>}
                </td>
                <td>
                  {one.lastTransitionTime && new Date(one.lastTransitionTime).toLocaleString()}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
