// The portal's HTTP API.
import type { components } from "./described";
import { text } from "./text";

type Schemas = components["schemas"];

// The portal leaves out what is not there, so nothing of these is null.
type Sent<T> = T extends readonly (infer U)[]
  ? Sent<U>[]
  : T extends object
    ? { [K in keyof T]: Sent<Exclude<T[K], null>> }
    : T;

export type Row = Sent<Schemas["Row"]>;
export type Offer = Sent<Schemas["Offer"]>;
export type OfferedType = Sent<Schemas["OfferedType"]>;
export type Catalogue = Sent<Schemas["Catalogue"]>;
export type Outlook = Sent<Schemas["Forecast"]>;
export type Timeline = Sent<Schemas["Timeline"]>;
export type Whole = Sent<Schemas["Whole"]>;
export type Problem = Sent<Schemas["Problem"]>;
export type Complaint = Sent<Schemas["Violation"]>;
// Here null says that there is none.
export type Me = Schemas["Me"];

// What the portal refused. `request` is in its log, too.
export class Refused extends Error {
  constructor(
    readonly problem: Problem,
    readonly request: string,
  ) {
    super(problem.detail);
  }
}

// What a person reads about something that failed.
export const said = (error: unknown) => (error instanceof Refused ? error.message : text.failed);

// `tag` is the ETag of what the person edited.
type More = { tag?: string | undefined; signal?: AbortSignal };

export async function ask<T>(
  method: string,
  path: string,
  body?: unknown,
  more: More = {},
): Promise<T> {
  return (await asked<T>(method, path, body, more)).content;
}

// An answer with its ETag.
export async function asked<T>(
  method: string,
  path: string,
  body?: unknown,
  { tag, signal }: More = {},
): Promise<{ content: T; tag: string }> {
  const headers: Record<string, string> = {};
  if (method !== "GET") headers["X-XSRF-TOKEN"] = token();
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (tag !== undefined) headers["If-Match"] = tag;
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const answer = await fetch(path, { method, headers, ...(signal && { signal }), ...sent });
  if (!answer.ok) {
    const problem = (await answer.json().catch(() => undefined)) as Problem | undefined;
    const unknown = { type: "", title: "", status: answer.status, detail: answer.statusText };
    throw new Refused(problem ?? unknown, answer.headers.get("X-Request-Id") ?? "");
  }
  const content = await answer.text();
  return {
    content: (content === "" ? undefined : JSON.parse(content)) as T,
    tag: answer.headers.get("ETag") ?? "",
  };
}

// The token of the session, which a page of another site cannot read.
function token(): string {
  const found = document.cookie.split("; ").find((cookie) => cookie.startsWith("XSRF-TOKEN="));
  return found?.slice("XSRF-TOKEN=".length) ?? "";
}
