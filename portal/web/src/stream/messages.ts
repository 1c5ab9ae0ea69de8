// What the worker tells the pages of this browser.
import type { Row } from "../api";

export type Message =
  | { kind: "rows"; rows: Row[]; asOf: number }
  | { kind: "put"; row: Row; asOf: number }
  | { kind: "gone"; namespace: string; name: string; asOf: number }
  // The connection is lost; what the pages show is of this time.
  | { kind: "stale"; asOf: number }
  | { kind: "live"; asOf: number }
  // Nobody is signed in any more. Trying again has no use.
  | { kind: "ended" };

export const key = (of: { namespace: string; name: string }) => `${of.namespace}/${of.name}`;
