import { useState } from "react";
import { text } from "../text";

// A line for a terminal, and a button that copies it.
export function Command({ command }: { command: string }) {
  const [isCopied, setCopied] = useState(false);
  async function copy() {
    await navigator.clipboard.writeText(command);
    setCopied(true);
  }
  return (
    <p className="command">
      <code>{command}</code> <button onClick={copy}>{text.copy}</button>
      <span role="status">{isCopied && text.copied}</span>
    </p>
  );
}
