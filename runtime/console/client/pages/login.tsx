import { useEffect, useState } from "preact/hooks";
import { login, Refusal } from "../api.tsx";
import { sentence } from "../parts.tsx";
import { navigate } from "../route.tsx";

/** Logs in by the code in the URL's fragment, or says how to get a link. */
export function LoginPage() {
  const [why, setWhy] = useState<string>();
  const code = location.pathname === "/login" ? location.hash.slice(1) : "";
  useEffect(() => {
    if (code === "") return;
    // The code is used once, and must not stay in the history.
    history.replaceState(null, "", "/login");
    login(code)
      .then(() => navigate("/", { replace: true }))
      .catch((error: unknown) => setWhy(error instanceof Refusal ? error.message : "the runtime does not answer"));
  }, []);
  if (code !== "" && why === undefined) return <p class="quiet">Logging in …</p>;
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
        {"kubectl port-forward deploy/watchfire 9464\nkubectl exec deploy/watchfire -- watchfire console --print"}
      </pre>
    </section>
  );
}
