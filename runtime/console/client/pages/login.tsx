import { useEffect, useState } from "preact/hooks";
import { login, Refusal } from "../api.tsx";
import { sentence, Words } from "../parts.tsx";
import { navigate, url } from "../route.tsx";

/** Logs in by the code in the URL's fragment, or by a token, or says how to get a link. */
export function LoginPage() {
  const [why, setWhy] = useState<string>();
  const [isAsking, setAsking] = useState(false);
  const { pathname, hash } = url.value;
  const code = pathname === "/login" ? hash.slice(1) : "";
  const enter = (by: Parameters<typeof login>[0]) => {
    setAsking(true);
    setWhy(undefined);
    login(by)
      .then(() => pathname === "/login" && navigate("/", { replace: true }))
      .catch((error: unknown) => setWhy(error instanceof Refusal ? error.message : "the runtime does not answer"))
      .finally(() => setAsking(false));
  };
  useEffect(() => {
    if (code === "") return;
    // The code is used once, and must not stay in the history.
    navigate("/login", { replace: true });
    enter({ code });
  }, [code]);
  if (isAsking || code !== "") return <p class="quiet">Logging in …</p>;
  return (
    <section class="narrow">
      <h1>Log in</h1>
      {why !== undefined && (
        <p class="notice bad" role="alert">
          <Words>{sentence(why)}</Words>
        </p>
      )}
      <p>This browser is not logged in. Print a link that works once:</p>
      <pre class="command">watchfire console</pre>
      <p>For a runtime in a cluster:</p>
      <pre class="command">kubectl watchfire console -n NAMESPACE</pre>
      <TokenForm onToken={(token) => enter({ token })} />
    </section>
  );
}

/** A form for a token. The page neither keeps it nor puts it into a URL. */
function TokenForm({ onToken }: { onToken: (token: string) => void }) {
  const [token, setToken] = useState("");
  const send = (event: Event) => {
    event.preventDefault();
    const given = token.trim();
    setToken("");
    if (given !== "") onToken(given);
  };
  return (
    <form onSubmit={send}>
      <p>
        <label htmlFor="token">Or a token: of Kubernetes, or that of the runtime's data folder</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
      </p>
      <p class="quiet">
        A token of a ServiceAccount: <code>kubectl create token NAME</code>. The runtime keeps your account's name, and
        no token.
      </p>
      <p class="actions">
        <button type="submit" class="primary">
          Log in
        </button>
      </p>
    </form>
  );
}
