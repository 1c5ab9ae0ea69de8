import { expect, test, vi } from "vitest";
import type { Row } from "../api";
import type { Message } from "./messages";
import { pause } from "./pause";

vi.mock("./worker?sharedworker&url", () => ({ default: "/worker.js" }));
const { next } = await import("./store");

const row = (name: string, phase: string): Row => ({
  namespace: "a",
  name,
  uid: name,
  version: 1,
  phase,
});
const all = (messages: Message[]) =>
  messages.reduce(next, { rows: undefined, staleSince: undefined, isOver: false });

test("the page shows what the stream tells", () => {
  const state = all([
    { kind: "rows", rows: [row("x", "Pending"), row("y", "Ready")], asOf: 1 },
    { kind: "put", row: row("x", "Ready"), asOf: 2 },
    { kind: "put", row: row("z", "Pending"), asOf: 3 },
    { kind: "gone", namespace: "a", name: "y", asOf: 4 },
  ]);
  expect([...(state.rows?.values() ?? [])].map((one) => [one.name, one.phase])).toEqual([
    ["x", "Ready"],
    ["z", "Pending"],
  ]);
});

test("rows that did not change stay the same objects", () => {
  const x = row("x", "Ready");
  const state = all([
    { kind: "rows", rows: [x, row("y", "Ready")], asOf: 1 },
    { kind: "put", row: row("y", "Stopped"), asOf: 2 },
  ]);
  expect(state.rows?.get("a/x")).toBe(x);
});

test("a lost connection is said, and its end, too", () => {
  const lost = all([
    { kind: "rows", rows: [], asOf: 1 },
    { kind: "stale", asOf: 7 },
  ]);
  expect(lost.staleSince).toBe(7);
  expect(next(lost, { kind: "live", asOf: 9 }).staleSince).toBeUndefined();
  expect(next(lost, { kind: "rows", rows: [], asOf: 9 }).staleSince).toBeUndefined();
});

test("who is signed out sees no workspaces", () => {
  const state = all([{ kind: "rows", rows: [row("x", "Ready")], asOf: 1 }, { kind: "ended" }]);
  expect(state).toEqual({ rows: undefined, staleSince: undefined, isOver: true });
});

test("tries are rarer after each failure, and never more than 30 s apart", () => {
  expect([0, 1, 2, 3].map((failures) => pause(failures, 1))).toEqual([1000, 2000, 4000, 8000]);
  expect(pause(50, 1)).toBe(30_000);
  expect(pause(50, 0)).toBe(15_000);
});
