// The workspaces as the stream tells them. Rows that do not change stay the same objects.
import type { Row } from "../api";
import { type Message, key } from "./messages";
import workerAddress from "./worker?sharedworker&url";

export type State = {
  rows: ReadonlyMap<string, Row> | undefined;
  // When the connection was lost; nothing while it is there.
  staleSince: number | undefined;
  isOver: boolean;
};

// The state after a message.
export function next(state: State, message: Message): State {
  switch (message.kind) {
    case "rows":
      return {
        rows: new Map(message.rows.map((row) => [key(row), row])),
        staleSince: undefined,
        isOver: false,
      };
    case "put":
      return { ...state, rows: new Map(state.rows).set(key(message.row), message.row) };
    case "gone": {
      const rows = new Map(state.rows);
      rows.delete(key(message));
      return { ...state, rows };
    }
    case "stale":
      return { ...state, staleSince: message.asOf };
    case "live":
      return { ...state, staleSince: undefined };
    case "ended":
      return { rows: undefined, staleSince: undefined, isOver: true };
  }
}

let state: State = { rows: undefined, staleSince: undefined, isOver: false };
const listeners = new Set<() => void>();

export function subscribe(listener: () => void): () => void {
  connect();
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const snapshot = () => state;

let worker: SharedWorker | undefined;

function connect() {
  if (worker) return;
  // Trusted Types let a worker start from an address only if a named policy allows the address.
  const policy = window.trustedTypes?.createPolicy("portal", {
    createScriptURL: (address) => {
      if (address === workerAddress) return address;
      throw new TypeError(`not a script of the portal: ${address}`);
    },
  });
  const address = policy ? policy.createScriptURL(workerAddress) : workerAddress;
  worker = new SharedWorker(address as string, { type: "module", name: "workspaces" });
  worker.port.onmessage = (event: MessageEvent<Message>) => {
    state = next(state, event.data);
    for (const listener of listeners) listener();
  };
  const { port } = worker;
  window.addEventListener("pagehide", () => port.postMessage("leaves"));
}
