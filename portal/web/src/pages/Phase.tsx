import type { Row } from "../api";

// The state of a workspace in a word, and never by colour alone.
export function Phase({ row }: { row: Row }) {
  return <span className={`phase ${row.phase === "Ready" ? "good" : ""}`}>{row.phase}</span>;
}
