// The change from parameters to others, as a merge patch (RFC 7386).
import { type Schema, type Values, fields, isGroup, isList } from "./schema";

type Parameters = Record<string, unknown>;

// What the form shows of parameters.
export function values(schema: Schema, parameters: Parameters, pointer = ""): Values {
  const found: Record<string, string> = {};
  for (const field of fields(schema, pointer)) {
    const value = parameters[field.name];
    if (value === undefined || value === null) continue;
    if (isGroup(field.schema)) {
      Object.assign(found, values(field.schema, value as Parameters, field.pointer));
    } else {
      found[field.pointer] = isList(field.schema) ? (value as string[]).join("\n") : String(value);
    }
  }
  return found;
}

// What was taken out is null. Lists are replaced as a whole.
export function patch(before: Parameters, after: Parameters): Parameters {
  const changed: Parameters = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, wanted] = [before[name], after[name]];
    if (isObject(old) && isObject(wanted)) {
      const inner = patch(old, wanted);
      if (Object.keys(inner).length > 0) changed[name] = inner;
    } else if (JSON.stringify(old) !== JSON.stringify(wanted)) {
      changed[name] = wanted ?? null;
    }
  }
  return changed;
}

// A change as lines of the claim's file, for people who commit it.
export function lines(change: Parameters, indent = "    "): string[] {
  return Object.entries(change).flatMap(([name, value]) => {
    if (isObject(value)) return [`${indent}${name}:`, ...lines(value, `${indent}  `)];
    if (value === null) return [`${indent}# ${name}: remove this line`];
    return [`${indent}${name}: ${JSON.stringify(value)}`];
  });
}

const isObject = (value: unknown): value is Parameters =>
  typeof value === "object" && value !== null && !Array.isArray(value);
