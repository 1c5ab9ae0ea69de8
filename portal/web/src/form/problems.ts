import { type Complaint, type Outlook, Refused } from "../api";
import { text } from "../text";

// What is marked at fields: what was refused, and what the preview says of them.
export function complained(
  refused: readonly Complaint[],
  outlook: Outlook | undefined,
): readonly Complaint[] {
  return [...refused, ...(outlook?.errors ?? []), ...(outlook?.warnings ?? [])];
}

// What was refused, at its fields.
export function problems(error: unknown): readonly Complaint[] {
  if (!(error instanceof Refused)) return [{ pointer: "", detail: text.failed }];
  const { errors = [] } = error.problem;
  const whole = `${error.message} (${text.request(error.request)})`;
  return errors.length > 0 ? errors : [{ pointer: "", detail: whole }];
}
