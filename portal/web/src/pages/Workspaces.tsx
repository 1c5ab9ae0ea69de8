import { useEffect, useRef, useState } from "react";
import { type Row, ask, said } from "../api";
import { dollars } from "../money";
import { Until } from "../Until";
import { text } from "../text";
import { Phase } from "./Phase";

type Props = {
  rows: ReadonlyMap<string, Row>;
  onNote: (note: string) => void;
};

export function Workspaces({ rows, onNote }: Props) {
  const [chosen, setChosen] = useState<Row>();
  useReady(rows, onNote);
  const sorted = [...rows.values()].sort((a, b) => a.name.localeCompare(b.name));
  return (
    <section aria-labelledby="workspaces">
      <h2 id="workspaces">{text.workspaces}</h2>
      {sorted.length === 0 ? (
        <p>{text.empty}</p>
      ) : (
        <div className="wide">
          <table>
            <thead>
              <tr>
                <th scope="col">{text.name}</th>
                <th scope="col">{text.phase}</th>
                <th scope="col">{text.machine}</th>
                <th scope="col">{text.price}</th>
                <th scope="col">{text.stops}</th>
                <th scope="col">{text.connect}</th>
                <th scope="col">{text.actions}</th>
              </tr>
            </thead>
            <tbody>
              {sorted.map((row) => (
                <Line key={row.uid} row={row} onRemove={setChosen} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {chosen && <Remove row={chosen} onEnd={() => setChosen(undefined)} onNote={onNote} />}
    </section>
  );
}

function Line({ row, onRemove }: { row: Row; onRemove: (row: Row) => void }) {
  return (
    <tr>
      <th scope="row">
        <a href={`/workspaces/${row.namespace}/${row.name}`}>{row.name}</a>
      </th>
      <td>
        <Phase row={row} />
        {row.message && <small>{row.message}</small>}
      </td>
      <td>{row.machine}</td>
      <td>{row.hourlyUsd !== undefined && text.perHour(dollars(row.hourlyUsd))}</td>
      <td>
        {row.stopsAt && <Until time={row.stopsAt} />}
      </td>
      <td>{row.phase === "Ready" && row.ssh && <code>{row.ssh}</code>}</td>
      <td>
        {row.fromGit ? (
          <span title={text.fromGitWhy}>{text.fromGit}</span>
        ) : (
          <button aria-label={text.removeNamed(row.name)} onClick={() => onRemove(row)}>
            {text.remove}
          </button>
        )}
      </td>
    </tr>
  );
}

type RemoveProps = { row: Row; onEnd: () => void; onNote: (note: string) => void };

function Remove({ row, onEnd, onNote }: RemoveProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => dialog.current?.showModal(), []);

  async function remove() {
    try {
      await ask("DELETE", `/api/v1/workspaces/${row.namespace}/${row.name}`);
      onNote(text.removing(row.name));
      onEnd();
    } catch (error) {
      setProblem(said(error));
    }
  }

  return (
    <dialog ref={dialog} onClose={onEnd} aria-labelledby="question">
      <h3 id="question">{text.removeQuestion(row.name)}</h3>
      <p>{text.removeWarning}</p>
      {problem && <p role="alert">{problem}</p>}
      <button autoFocus onClick={() => dialog.current?.close()}>
        {text.keep}
      </button>
      <button className="danger" onClick={remove}>
        {text.remove}
      </button>
    </dialog>
  );
}

// Says it when a workspace becomes ready while the page is open.
function useReady(rows: ReadonlyMap<string, Row>, onNote: (note: string) => void) {
  const before = useRef<ReadonlyMap<string, Row>>(undefined);
  useEffect(() => {
    for (const [key, row] of rows) {
      const known = before.current?.get(key);
      if (known && known.phase !== "Ready" && row.phase === "Ready") {
        onNote(text.becameReady(row.name));
      }
    }
    before.current = rows;
  }, [rows, onNote]);
}
