// One stream of changes for all pages of this browser: a browser opens six connections to a host at
// most over HTTP/1.1, and each page would take one.
import type { Row } from "../api";
import { type Message, key } from "./messages";
import { pause } from "./pause";

// The types of workers and of pages exclude each other.
declare const self: { onconnect: ((event: MessageEvent) => void) | null };

const pages = new Set<MessagePort>();
// Nothing until the first list.
let rows: Map<string, Row> | undefined;
let asOf = 0;
let state: "begins" | "live" | "stale" | "ended" = "begins";
let failures = 0;
// The portal says something every 15 seconds. A connection that is silent for longer is lost, even if neither
// end was told.
const SILENCE = 40_000;
// How long a list may take.
const PATIENCE = 20_000;

self.onconnect = (event) => {
  const page = event.ports[0];
  if (!page) return;
  pages.add(page);
  page.onmessage = () => pages.delete(page);
  page.start();
  if (rows) page.postMessage(all(rows));
  if (state === "stale") page.postMessage({ kind: "stale", asOf } satisfies Message);
  // Somebody may have signed in since.
  if (state === "ended") begin();
};

begin();

function begin() {
  state = "begins";
  void list();
}

type Listed = { version: number; items: Row[] };

async function list() {
  const signal = AbortSignal.timeout(PATIENCE);
  const answer = await fetch("/api/v1/workspaces", { signal }).catch(() => undefined);
  if (answer?.status === 401) return end();
  if (!answer?.ok) return again();
  // The connection may be lost in the middle of the answer.
  const listed = await (answer.json() as Promise<Listed>).catch(() => undefined);
  if (!listed) return again();
  const found = new Map(listed.items.map((row) => [key(row), row]));
  rows = found;
  asOf = Date.now();
  tell(all(found));
  follow(listed.version, found);
}

function follow(version: number, rows: Map<string, Row>) {
  const source = new EventSource(`/api/v1/watch?since=${version}`);
  const lost = () => {
    source.close();
    again();
  };
  let silence = setTimeout(lost, SILENCE);
  const close = () => {
    clearTimeout(silence);
    source.close();
  };
  const on = (kind: string, act: (data: string) => void) => {
    source.addEventListener(kind, (event) => {
      clearTimeout(silence);
      silence = setTimeout(lost, SILENCE);
      heard();
      act((event as MessageEvent<string>).data);
    });
  };
  on("put", (data) => {
    const row = JSON.parse(data) as Row;
    rows.set(key(row), row);
    tell({ kind: "put", row, asOf });
  });
  on("gone", (data) => {
    const gone = JSON.parse(data) as { namespace: string; name: string };
    rows.delete(key(gone));
    tell({ kind: "gone", ...gone, asOf });
  });
  on("alive", () => undefined);
  on("reset", () => {
    close();
    // Many pages may be told at the same time.
    setTimeout(list, Math.random() * 1000);
  });
  on("session", (data) => {
    if (!("ended" in JSON.parse(data))) return;
    close();
    end();
  });
  source.onerror = () => {
    // The browser itself connects again after the network failed, and not after a refusal.
    if (source.readyState === EventSource.CLOSED) {
      close();
      again();
    } else stale();
  };
}

function heard() {
  asOf = Date.now();
  failures = 0;
  if (state === "live") return;
  state = "live";
  tell({ kind: "live", asOf });
}

function again() {
  stale();
  setTimeout(list, pause(failures++, Math.random()));
}

function stale() {
  if (state !== "live") return;
  state = "stale";
  tell({ kind: "stale", asOf });
}

function end() {
  state = "ended";
  rows = undefined;
  tell({ kind: "ended" });
}

function all(rows: Map<string, Row>): Message {
  return { kind: "rows", rows: [...rows.values()], asOf };
}

function tell(message: Message) {
  for (const page of pages) page.postMessage(message);
}
