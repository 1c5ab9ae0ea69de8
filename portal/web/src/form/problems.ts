import { type Complaint, Refused } from "../api";
import { text } from "../text";

// What was refused, at its fields.
export function problems(error: unknown): readonly Complaint[] {
  if (!(error instanceof Refused)) return [{ pointer: "", detail: text.failed }];
  const { errors = [] } = error.problem;
  const whole = `${error.message} (${text.request(error.request)})`;
  return errors.length > 0 ? errors : [{ pointer: "", detail: whole }];
}
