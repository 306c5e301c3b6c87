import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { reasonHeader } from "../../control/access/reason.ts";
import type { Topic } from "../schemas.ts";

/** The page's half of the session. Each origin has its own, so it is safe from other ports of this machine. */
const stored = "watchfire-proof";

const reasonName: typeof reasonHeader = "watchfire-reason";

/** Whether this browser is logged in; `undefined` until the first answer. */
export const loggedIn = signal<boolean | undefined>(undefined);
/** Whether changes arrive. */
export const connected = signal(true);

const listeners = new Set<(topics: readonly Topic[] | "beat") => void>();

/** The reason that the runtime returned for refusing a request. */
export class Refusal extends Error {
  /** The code of the fault, if it has one. */
  readonly code: string | undefined;

  constructor(message: string, code: string | undefined) {
    super(message);
    this.code = code;
  }
}

async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  const proof = localStorage.getItem(stored) ?? "";
  const headers = { "content-type": "application/json", "x-watchfire-proof": proof, ...init.headers };
  const response = await fetch(path, { ...init, headers });
  if (response.status === 401) loggedIn.value = false;
  if (response.ok) return response;
  const said = (await response.json().catch(() => ({}))) as {
    error?: string;
    fault?: { code: string; what: string; hint: string };
  };
  throw new Refusal(
    said.fault ? `${said.fault.what}: ${said.fault.hint}` : (said.error ?? `the runtime answered ${response.status}`),
    said.fault?.code,
  );
}

/** Asks for JSON. Whole numbers beyond a double's stay as they came. */
export async function get<T>(path: string): Promise<T> {
  const text = await (await ask(path)).text();
  loggedIn.value = true;
  return JSON.parse(text, keepDigits) as T;
}

function keepDigits(_: string, value: unknown, { source }: { source?: string } = {}): unknown {
  const isRounded = typeof value === "number" && source !== undefined && String(value) !== source;
  const { rawJSON } = JSON as { rawJSON?: (text: string) => unknown };
  return isRounded && /^-?\d+$/.test(source) && rawJSON ? rawJSON(source) : value;
}

/** Sends a change. `reason`: why, in the caller's words; empty without one. */
export async function post<T>(path: string, body: unknown = {}, reason = ""): Promise<T> {
  const headers: Record<string, string> = reason === "" ? {} : { [reasonName]: encodeURIComponent(reason) };
  const answer = (await (await ask(path, { method: "POST", body: JSON.stringify(body), headers })).json()) as T;
  for (const hear of listeners) hear(["functions", "runs", "sources", "dead-letters"]);
  return answer;
}

/** Exchanges the one-time code, or a token, for a session. */
export async function login(by: { readonly code: string } | { readonly token: string }): Promise<void> {
  const { proof } = await post<{ proof: string }>("/api/session", by);
  localStorage.setItem(stored, proof);
  loggedIn.value = true;
  void listen();
}

export async function logout(): Promise<void> {
  await ask("/api/session", { method: "DELETE" }).catch(() => undefined);
  localStorage.removeItem(stored);
  loggedIn.value = false;
}

export interface Loaded<T> {
  readonly data?: T | undefined;
  /** Why the last request failed; `data` is then from before. */
  readonly error?: string | undefined;
}

/** Milliseconds from an answer to the next request for the same data. A slow answer is followed by a pause of so many times its duration. */
const leastMs = 120;
const restFactor = 4;
/** Milliseconds until a request is repeated that had no answer. */
const retryMs = 2_000;

/** Asks for a path, and again whenever one of the topics changes. `everyMs`: and so often, while the page can be seen. */
export function useData<T>(path: string | undefined, topics: readonly Topic[], everyMs?: number): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T> & { path?: string }>({});
  useEffect(() => {
    if (path === undefined) return;
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isAsking = false;
    let again = false;
    let nextAt = 0;
    const load = async () => {
      const began = performance.now();
      timer = undefined;
      isAsking = true;
      again = false;
      let isFailed = false;
      try {
        const data = await get<T>(path);
        if (!isOver) setLoaded({ data, path });
      } catch (error) {
        isFailed = !(error instanceof Refusal);
        const why = error instanceof Refusal ? error.message : "the runtime does not answer";
        if (!isOver) setLoaded((before) => ({ ...(before.path === path ? before : {}), path, error: why }));
      }
      isAsking = false;
      const ended = performance.now();
      nextAt = ended + Math.max(leastMs, (ended - began) * restFactor);
      if (isOver) return;
      if (again) timer = setTimeout(load, nextAt - ended);
      // The stream of changes may never have been interrupted, so nothing else would ask again.
      else if (isFailed) timer = setTimeout(load, retryMs);
    };
    const hear = (changed: readonly Topic[] | "beat") => {
      if (changed !== "beat" && !changed.some((topic) => topics.includes(topic))) return;
      if (isAsking) again = true;
      // A change is shown at once, and those that follow it together.
      else timer ??= setTimeout(load, Math.max(0, nextAt - performance.now()));
    };
    void load();
    listeners.add(hear);
    const repeated = everyMs && setInterval(() => !document.hidden && connected.value && hear("beat"), everyMs);
    return () => {
      isOver = true;
      clearInterval(repeated);
      clearTimeout(timer);
      listeners.delete(hear);
    };
  }, [path]);
  return loaded.path === path ? loaded : {};
}

let isListening = false;

const isLoggedOut = (): boolean => loggedIn.value === false;

/** Resolves once the page can be seen. A hidden page closes its stream: a browser has six connections to one origin. */
function untilVisible(): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", () => resolve(), { once: true });
  });
}

/** Receives changes, and connects again when the runtime is back. An EventSource could not send the proof. */
export async function listen(): Promise<void> {
  if (isListening) return;
  isListening = true;
  for (let delayMs = 500; !isLoggedOut(); delayMs = Math.min(delayMs * 2, 5_000)) {
    await untilVisible();
    const hidden = new AbortController();
    const hide = () => document.hidden && hidden.abort();
    document.addEventListener("visibilitychange", hide);
    try {
      const response = await ask("/api/events", { signal: hidden.signal });
      connected.value = true;
      delayMs = 500;
      for (const hear of listeners) hear("beat");
      await readEvents(response);
    } catch {
      // Asked again below.
    }
    document.removeEventListener("visibilitychange", hide);
    if (hidden.signal.aborted) continue;
    connected.value = isLoggedOut();
    await new Promise((resolve) => setTimeout(resolve, delayMs));
  }
  connected.value = true;
  isListening = false;
}

// Another page of this browser has logged in.
addEventListener("storage", ({ key, newValue }) => {
  if (key !== stored || newValue === null) return;
  loggedIn.value = undefined;
  void listen();
});

async function readEvents({ body }: Response): Promise<void> {
  if (!body) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += part.value;
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) {
      const data = /^data: (.*)$/m.exec(event)?.[1];
      const topics =
        event.includes("event: changed") && data ? (JSON.parse(data) as { topics: Topic[] }).topics : "beat";
      for (const hear of listeners) hear(topics);
    }
  }
}
