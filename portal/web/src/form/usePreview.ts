import { useEffect, useState } from "react";
import { Refused, ask } from "../api";
import type { Outlook } from "./Outlook";

// How long the form waits after the last key, in milliseconds.
const PAUSE = 300;

// What the wish would get. A later wish replaces an earlier question.
export function usePreview(wish: unknown, isWanted: boolean): Outlook | undefined {
  const [outlook, setOutlook] = useState<Outlook>();
  const body = JSON.stringify(wish);
  useEffect(() => {
    if (!isWanted) {
      setOutlook(undefined);
      return;
    }
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      const found = await asked(JSON.parse(body), stop.signal);
      if (!stop.signal.aborted) setOutlook(found);
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [body, isWanted]);
  return outlook;
}

// Without an answer the form goes on: creating judges again.
async function asked(wish: unknown, signal: AbortSignal): Promise<Outlook | undefined> {
  try {
    return await ask<Outlook>("POST", "/api/v1/preview", wish, signal);
  } catch (error) {
    const detail = error instanceof Refused && error.problem.status < 500 ? error.message : "";
    return detail ? { errors: [], obstacle: { reason: "", message: detail } } : undefined;
  }
}
