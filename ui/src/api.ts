/** What went wrong, as the server says it. */
export interface Problem {
  what: string;
  cause?: string | null;
  hint?: string | null;
  exit_code?: number | null;
}

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

const TOKEN = "windtunnel-token";

/** Takes the token out of the address, so that it is neither seen nor bookmarked. */
export function takeToken(): void {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    sessionStorage.setItem(TOKEN, token);
    history.replaceState(null, "", location.pathname + location.search);
  }
}

export const token = (): string => sessionStorage.getItem(TOKEN) ?? "";
export const setToken = (value: string): void => sessionStorage.setItem(TOKEN, value.trim());

async function request<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = {};
  if (body !== undefined) headers["content-type"] = "application/json";
  if (method !== "GET" && token()) headers["x-windtunnel-token"] = token();
  let response: Response;
  try {
    response = await fetch(`/api/v1/${path}`, {
      method,
      headers,
      signal: signal ?? null,
      body: body === undefined ? null : JSON.stringify(body),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiProblem(
      {
        what: "The server doesn't answer.",
        cause: "windtunnel web has probably ended.",
        hint: "Start it again, and reload this page.",
      },
      0,
    );
  }
  const answer: unknown = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer as T;
  const problem = (answer as { error?: Problem } | null)?.error;
  throw new ApiProblem(problem ?? { what: `The server answered ${response.status} without saying why.` }, response.status);
}

export const get = <T,>(path: string, signal?: AbortSignal): Promise<T> => request<T>("GET", path, undefined, signal);
export const post = <T,>(path: string, body: unknown): Promise<T> => request<T>("POST", path, body);
export const remove = <T,>(path: string): Promise<T> => request<T>("DELETE", path);
