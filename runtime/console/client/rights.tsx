import type { SessionAnswer } from "../schemas.ts";
import { useData } from "./api.tsx";
import { Words } from "./parts.tsx";

/** What the session may do. */
export interface Rights {
  /** True until the runtime has answered: it decides again for each change. */
  readonly mayWrite: boolean;
  /** What is missing, and how to get it. */
  readonly why?: string | undefined;
}

/** Asks whether the session may change a function; without a name, all of them. */
export function useRights(name?: string): Rights {
  const query = name ? `?function=${encodeURIComponent(name)}` : "";
  const { data } = useData<SessionAnswer>(`/api/session${query}`, []);
  return { mayWrite: data?.mayUpdate ?? true, why: data?.why };
}

/** Whether the runtime is that of `watchfire dev`. */
export const useIsDev = (): boolean => useData<SessionAnswer>("/api/session", []).data?.isDev === true;

/** The id of the sentence that explains disabled buttons. */
export const deniedId = "denied";

/** Explains why the buttons next to it are disabled. */
export function Denied({ of: { why } }: { of: Rights }) {
  if (why === undefined) return null;
  return (
    <span class="quiet" id={deniedId}>
      You may look, and change nothing here: <Words>{why}</Words>.
    </span>
  );
}
