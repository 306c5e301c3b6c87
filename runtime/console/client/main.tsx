import "./locale.tsx";
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { connected, listen, loggedIn, logout } from "./api.tsx";
import { Keys, places, showKeys } from "./keys.tsx";
import { ApplyPage } from "./pages/apply.tsx";
import { ConfigPage } from "./pages/config.tsx";
import { DeadLettersPage } from "./pages/dead-letters.tsx";
import { ErrorPage } from "./pages/error.tsx";
import { ErrorsPage } from "./pages/errors.tsx";
import { ExplainPage } from "./pages/explain.tsx";
import { FunctionPage } from "./pages/function.tsx";
import { LoginPage } from "./pages/login.tsx";
import { OverviewPage } from "./pages/overview.tsx";
import { RunPage } from "./pages/run.tsx";
import { RunsPage } from "./pages/runs.tsx";
import { SourcesPage } from "./pages/sources.tsx";
import { lastResult } from "./parts.tsx";
import { useIsDev } from "./rights.tsx";
import { url } from "./route.tsx";
import { ThemeChoice } from "./theme.tsx";

/** The page's title, and the page. */
function pageOf({ pathname, searchParams }: URL) {
  const [, first = "", second] = pathname.split("/").map(decodeURIComponent);
  switch (first) {
    case "":
      return { title: "Overview", page: <OverviewPage /> };
    case "functions":
      return { title: second ?? "", page: <FunctionPage name={second ?? ""} /> };
    case "runs":
      return second === undefined
        ? { title: "Runs", page: <RunsPage /> }
        : {
            title: `Run of ${searchParams.get("function") ?? ""}`,
            page: <RunPage id={second} name={searchParams.get("function") ?? ""} />,
          };
    case "errors":
      return second === undefined
        ? { title: "Errors", page: <ErrorsPage /> }
        : { title: "Error", page: <ErrorPage fingerprint={second} /> };
    case "dead-letters":
      return { title: "Dead letters", page: <DeadLettersPage /> };
    case "sources":
      return { title: "Sources", page: <SourcesPage /> };
    case "explain":
      return { title: "Explain", page: <ExplainPage /> };
    case "apply":
      return { title: "Apply", page: <ApplyPage /> };
    case "config":
      return { title: "Configuration", page: <ConfigPage /> };
    default:
      return { title: "No such page", page: <h1>There is no such page</h1> };
  }
}

function App() {
  const { pathname } = url.value;
  const isLogin = pathname === "/login" || loggedIn.value === false;
  const { title, page } = isLogin ? { title: "Log in", page: <LoginPage /> } : pageOf(url.value);
  useEffect(() => {
    document.title = `${title} – Watchfire`;
    lastResult.value = undefined;
  }, [title, pathname]);
  // As a browser does for a new document: reading and tabbing begin in the page.
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) document.getElementById("main")?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [pathname]);
  return (
    <>
      <a class="skip" href="#main" data-raw>
        Skip to the content
      </a>
      <header>
        <a class="brand" href="/">
          Watchfire
        </a>
        {!isLogin && (
          <nav aria-label="Pages">
            {places.map(([href, text]) => (
              <a key={href} href={href} aria-current={isAt(pathname, href) ? "page" : undefined}>
                {text}
              </a>
            ))}
            <DevLink isHere={pathname === "/apply"} />
          </nav>
        )}
        <ThemeChoice />
        {!isLogin && (
          <button type="button" class="plain" onClick={showKeys}>
            Keys
          </button>
        )}
        {!isLogin && (
          <button type="button" class="plain" onClick={logout}>
            Log out
          </button>
        )}
      </header>
      {!connected.value && (
        <p class="notice warn banner" role="status">
          Disconnected: the runtime does not answer. It is asked again every few seconds; what is shown is from before.
        </p>
      )}
      <main id="main" tabIndex={-1}>
        {page}
      </main>
      <Keys />
      <div class="result" role="status" aria-live="polite">
        {lastResult.value && <p class={`notice ${lastResult.value.isBad ? "bad" : "good"}`}>{lastResult.value.text}</p>}
      </div>
    </>
  );
}

/** The link to the page that only `watchfire dev` has. */
function DevLink({ isHere }: { isHere: boolean }) {
  if (!useIsDev()) return null;
  return (
    <a href="/apply" aria-current={isHere ? "page" : undefined}>
      Apply
    </a>
  );
}

const isAt = (pathname: string, href: string): boolean =>
  href === "/" ? pathname === "/" || pathname.startsWith("/functions/") : pathname.startsWith(href);

const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(<App />, root);
}
if (location.pathname !== "/login") void listen();
