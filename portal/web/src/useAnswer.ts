import { useEffect, useState } from "react";
import { ask } from "./api";

// The answer of the API to a question. The page asks again when `version` is another one. An answer to an earlier
// question does not count, and without an answer the page keeps what it has.
export function useAnswer<T>(path: string, version?: unknown): T | undefined {
  const [answer, setAnswer] = useState<T>();
  useEffect(() => {
    let isWanted = true;
    ask<T>("GET", path).then(
      (found) => isWanted && setAnswer(found),
      () => undefined,
    );
    return () => {
      isWanted = false;
    };
  }, [path, version]);
  return answer;
}
