import { useEffect, useState } from "react";
import { type Outlook, Refused, ask } from "../api";

// How long the form waits after the last key, in milliseconds.
const PAUSE = 300;

// What a wish would get; none for no wish. A later wish replaces an earlier question.
export function usePreview(path: string, wish: unknown): Outlook | undefined {
  const [outlook, setOutlook] = useState<Outlook>();
  const body = JSON.stringify(wish);
  useEffect(() => {
    if (body === undefined) {
      setOutlook(undefined);
      return;
    }
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      const found = await asked(path, JSON.parse(body), stop.signal);
      if (!stop.signal.aborted) setOutlook(found);
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [path, body]);
  return outlook;
}

// Without an answer the form goes on: the request that writes is judged again.
async function asked(
  path: string,
  wish: unknown,
  signal: AbortSignal,
): Promise<Outlook | undefined> {
  try {
    return await ask<Outlook>("POST", path, wish, { signal });
  } catch (error) {
    const detail = error instanceof Refused && error.problem.status < 500 ? error.message : "";
    if (!detail) return undefined;
    const obstacle = { condition: "", reason: "", message: detail };
    return { errors: [], warnings: [], obstacle };
  }
}
