import { missed } from "./connection";
import type { ErrorBody, Problem } from "./schema";

export type { Problem };

export class ApiProblem extends Error {
  constructor(
    readonly problem: Problem,
    readonly status: number,
  ) {
    super(problem.what);
  }
}

/** Any error as a problem. */
export function problemOf(error: unknown): Problem {
  if (error instanceof ApiProblem) return error.problem;
  return { what: error instanceof Error ? error.message : String(error) };
}

/** Whether there is no such thing. */
export const isMissing = (error: unknown): boolean => error instanceof ApiProblem && error.status === 404;

const TOKEN = "windtunnel-token";
/** Who shows a field for the token. */
const fields = new Set<() => void>();

/** Takes the token out of the address, so that it is neither seen nor bookmarked. */
export function takeToken(): void {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    sessionStorage.setItem(TOKEN, token);
    history.replaceState(null, "", location.pathname + location.search);
  }
}

export const token = (): string => sessionStorage.getItem(TOKEN) ?? "";

export function setToken(value: string): void {
  sessionStorage.setItem(TOKEN, value.trim());
}

/** Calls when the server has refused the token: it is another server's, or an old one. */
export function onRefused(listener: () => void): () => void {
  fields.add(listener);
  return () => void fields.delete(listener);
}

async function request<T>(method: string, path: string, body?: unknown, signal?: AbortSignal, as: "json" | "text" = "json"): Promise<T> {
  const headers: Record<string, string> = {};
  const file = body instanceof Blob;
  if (file) headers["content-type"] = "application/octet-stream";
  else if (body !== undefined) headers["content-type"] = "application/json";
  if (method !== "GET" && token()) headers["x-windtunnel-token"] = token();
  let response: Response;
  try {
    response = await fetch(`/api/v1/${path}`, {
      method,
      headers,
      signal: signal ?? null,
      body: body === undefined ? null : file ? body : JSON.stringify(body),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    void missed();
    throw new ApiProblem(
      {
        what: "The server doesn't answer.",
        cause: "windtunnel web has probably ended.",
        hint: "start it again; this page goes on by itself.",
      },
      0,
    );
  }
  const answer: unknown = await (response.ok && as === "text" ? response.text() : response.json()).catch(() => null);
  if (response.ok && answer !== null) return answer as T;
  if (response.status === 401 || response.status === 403) {
    sessionStorage.removeItem(TOKEN);
    fields.forEach((field) => field());
  }
  const problem = (answer as ErrorBody | null)?.error;
  throw new ApiProblem(problem ?? { what: `The server answered ${response.status} without saying why.` }, response.status);
}

export const get = <T,>(path: string, signal?: AbortSignal): Promise<T> => request<T>("GET", path, undefined, signal);
export const post = <T,>(path: string, body: unknown): Promise<T> => request<T>("POST", path, body);
/** What is answered as a text, such as a file. */
export const postForText = (path: string, body: unknown): Promise<string> => request<string>("POST", path, body, undefined, "text");
export const remove = <T,>(path: string): Promise<T> => request<T>("DELETE", path);
