import type { Complaint } from "../api";

// The schema of a claim's parameters, as the cluster has it. Nothing here knows a field by its name.

export type Schema = {
  type?: string;
  description?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  enum?: (string | null)[];
  default?: unknown;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  required?: string[];
};

// What a person wrote, by the JSON pointer of the field. A field without text is not sent.
export type Values = Readonly<Record<string, string>>;

export type Field = { pointer: string; name: string; schema: Schema };

// The pointer of a field within another one (RFC 6901).
export const within = (pointer: string, name: string) =>
  `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;

export const isGroup = (schema: Schema) => schema.properties !== undefined;

export const isList = (schema: Schema) => schema.type === "array";

export function fields(schema: Schema, pointer: string): Field[] {
  return Object.entries(schema.properties ?? {}).map(([name, one]) => ({
    pointer: within(pointer, name),
    name,
    schema: one,
  }));
}

// The parameters that a person wants. Groups without a field are left out.
export function parameters(schema: Schema, values: Values, pointer = ""): Record<string, unknown> {
  const wanted: Record<string, unknown> = {};
  for (const field of fields(schema, pointer)) {
    const value = isGroup(field.schema)
      ? parameters(field.schema, values, field.pointer)
      : written(field.schema, values[field.pointer] ?? "");
    const isEmpty = typeof value === "object" && value !== null && Object.keys(value).length === 0;
    if (value !== undefined && !isEmpty) wanted[field.name] = value;
  }
  return wanted;
}

// A number that is none goes to the server as it is, which says what is wrong with it.
function written(schema: Schema, text: string): unknown {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  if (isList(schema)) {
    return trimmed
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "");
  }
  if (schema.type === "boolean") return trimmed === "true";
  if (schema.type === "integer" || schema.type === "number") {
    return Number.isNaN(Number(trimmed)) ? trimmed : Number(trimmed);
  }
  return trimmed;
}

// What is wrong with a field: with the field itself, or with something in it that has no place of its own.
export function complaints(errors: readonly Complaint[], pointer: string): string[] {
  const isOf = (error: Complaint) =>
    error.pointer === pointer || error.pointer.startsWith(`${pointer}/`);
  return errors.filter(isOf).map((error) => error.detail);
}

// What no field of the form can be marked with.
export function elsewhere(errors: readonly Complaint[], pointers: readonly string[]): string[] {
  const isShown = (error: Complaint) =>
    pointers.some((one) => error.pointer === one || error.pointer.startsWith(`${one}/`));
  return errors.filter((error) => !isShown(error)).map((error) => error.detail);
}

// The pointers of all fields that a person can write into.
export function pointers(schema: Schema, pointer: string): string[] {
  return fields(schema, pointer).flatMap((field) =>
    isGroup(field.schema) ? pointers(field.schema, field.pointer) : [field.pointer],
  );
}

// "allowedCidrs" as people write it: "Allowed CIDRs". `spellings` has the words with a spelling of their own.
export function title(name: string, spellings: Readonly<Record<string, string>>): string {
  const words = name
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/Gi B$/, "GiB")
    .split(" ")
    .map((word) => spellings[word.toLowerCase()] ?? word.toLowerCase());
  const all = words.join(" ");
  return all.charAt(0).toUpperCase() + all.slice(1);
}

// The first sentence of a description, without the marks of code.
export function summary(description: string | undefined): string {
  const plain = (description ?? "").replaceAll("`", "").replaceAll(/\s+/g, " ");
  const end = plain.search(/\.( |$)/);
  return end < 0 ? plain : plain.slice(0, end + 1);
}
