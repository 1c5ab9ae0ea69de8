// The portal's HTTP API.
import { text } from "./text";

export type Row = {
  namespace: string;
  name: string;
  uid: string;
  version: number;
  created?: string;
  owner?: string;
  phase: string;
  message?: string;
  machine?: string;
  ssh?: string;
  hostKeys?: string[];
  stopsAt?: string;
  stopsBecause?: string;
  extension?: { askedUntil: string; grantedUntil?: string; message?: string };
  hourlyUsd?: number;
  soFarUsd?: number;
  fromGit?: boolean;
};

export type Offer = {
  flavor: string;
  placement: string;
  description?: string;
  gpu?: string;
  cpu?: string;
  memory?: string;
  hourlyUsd?: number;
};

// An EC2 instance type. Prices are by region.
export type OfferedType = {
  name: string;
  gpu?: string;
  gpus?: number;
  gpuMemory?: string;
  hourlyUsd?: Record<string, number>;
  refused?: string;
};

export type Catalogue = {
  offers: Offer[];
  ec2: { instanceTypes: OfferedType[]; defaults?: { region?: string }; problem?: string };
};

export type Me = {
  user: string;
  owner?: string;
  namespace?: string;
  problem?: string;
};

export type Problem = {
  title: string;
  status: number;
  detail: string;
  errors?: { pointer: string; detail: string }[];
};

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
    const unknown = { title: "", status: answer.status, detail: answer.statusText };
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
