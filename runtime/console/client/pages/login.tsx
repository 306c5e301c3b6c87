import { useEffect, useState } from "preact/hooks";
import { login, Refusal } from "../api.tsx";
import { sentence } from "../parts.tsx";
import { navigate, url } from "../route.tsx";

/** Logs in by the code in the URL's fragment, or says how to get a link. */
export function LoginPage() {
  const [why, setWhy] = useState<string>();
  const [isAsking, setAsking] = useState(false);
  const { pathname, hash } = url.value;
  const code = pathname === "/login" ? hash.slice(1) : "";
  useEffect(() => {
    if (code === "") return;
    setAsking(true);
    // The code is used once, and must not stay in the history.
    navigate("/login", { replace: true });
    login(code)
      .then(() => navigate("/", { replace: true }))
      .catch((error: unknown) => setWhy(error instanceof Refusal ? error.message : "the runtime does not answer"))
      .finally(() => setAsking(false));
  }, [code]);
  if (isAsking || code !== "") return <p class="quiet">Logging in …</p>;
  return (
    <section class="narrow">
      <h1>Log in</h1>
      {why !== undefined && (
        <p class="notice bad" role="alert">
          {sentence(why)}
        </p>
      )}
      <p>This browser is not logged in. Print a link that works once:</p>
      <pre class="command">watchfire console</pre>
      <p>It reads the token in the runtime's data folder. In a pod, forward the port and print the link there:</p>
      <pre class="command">
        {
          "kubectl port-forward watchfire-0 9464\nkubectl exec watchfire-0 -c watchfire -- \\\n  watchfire console --print"
        }
      </pre>
    </section>
  );
}
