import { signal } from "@preact/signals";

/** The URL of the page: it holds the page's whole state. */
export const url = signal(new URL(location.href));

const take = () => {
  url.value = new URL(location.href);
};

addEventListener("popstate", take);

/** Opens a page of the console without loading the document again. */
export function navigate(to: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  take();
  if (!replace) scrollTo(0, 0);
}

// Links are links: only a plain click on one within the console is taken over.
addEventListener("click", (event) => {
  const link = (event.target as Element).closest("a");
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || !isPlain || link.origin !== location.origin || link.target !== "" || "raw" in link.dataset) return;
  event.preventDefault();
  navigate(link.href);
});

/** Sets parameters of the URL; an empty value removes its parameter. */
export function setQuery(changes: Readonly<Record<string, string>>): void {
  const next = new URL(location.href);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "") next.searchParams.delete(name);
    else next.searchParams.set(name, value);
  }
  navigate(next.href, { replace: true });
}

export const functionHref = (name: string): string => `/functions/${encodeURIComponent(name)}`;
export const runHref = (name: string, id: string): string =>
  `/runs/${encodeURIComponent(id)}?function=${encodeURIComponent(name)}`;
