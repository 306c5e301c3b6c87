import { idToken, renewedIdToken, type Seen, type Site } from "./site.ts";

/** A kubeconfig, and kubectl's request with it. */
export interface Case {
  readonly name: string;
  /** The case's files by their names. Default kubeconfig: `config`. */
  readonly files: Readonly<Record<string, string | Uint8Array>>;
  /** The files of KUBECONFIG. If they are given, no file is named by an option. */
  readonly listed?: readonly string[];
  readonly context?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /**
   * Differences between the request that the server sees and a plain `GET /version`; `refused` if no request is sent.
   */
  readonly answer: Partial<Seen> | "refused";
}

/** A request without credentials, as the server sees it. */
const nobody: Seen = {
  path: "/version",
  authorization: undefined,
  certificate: undefined,
  serverName: undefined,
  compressed: true,
  impersonation: {},
};

/** The complete request that the server sees for an answer. */
export const expectedOf = (answer: Case["answer"]): Seen | "refused" =>
  answer === "refused" ? answer : { ...nobody, ...answer };

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const script = (body: string): string => `#!/bin/sh\n${body}\n`;
const json = (value: unknown): string => JSON.stringify(value);
const v1 = "client.authentication.k8s.io/v1";
const v1beta1 = "client.authentication.k8s.io/v1beta1";

/** A plugin that prints a text. */
const prints = (text: string): string => script(`cat <<'END'\n${text}\nEND`);
const credential = (status: unknown, apiVersion = v1): string => json({ apiVersion, kind: "ExecCredential", status });
const bearer = (token: string): Partial<Seen> => ({ authorization: `Bearer ${token}` });

/** The behaviour of kubectl 1.36 by case. `agreement.long.test.ts` compares the table with the real kubectl. */
export function casesOf(site: Site): readonly Case[] {
  const ca = base64(site.ca);
  const trusted = { server: `https://${site.https}`, "certificate-authority-data": ca };
  const client = { "client-certificate-data": base64(site.certificate), "client-key-data": base64(site.key) };
  const certificate = { certificate: "kube-apiserver" };
  const config = (parts: { cluster?: object | null; user?: unknown; context?: object; more?: object } = {}): string =>
    json({
      apiVersion: "v1",
      kind: "Config",
      "current-context": "c",
      clusters: [{ name: "k", cluster: parts.cluster === undefined ? trusted : parts.cluster }],
      users: [{ name: "u", user: parts.user === undefined ? { token: "t" } : parts.user }],
      contexts: [{ name: "c", context: parts.context ?? { cluster: "k", user: "u" } }],
      ...parts.more,
    });
  const good = config();
  const one = (name: string, file: string | Uint8Array, answer: Case["answer"], more: Partial<Case> = {}): Case => ({
    name,
    answer,
    ...more,
    files: { config: file, ...more.files },
  });
  const byUser = (name: string, user: unknown, answer: Case["answer"], files: Case["files"] = {}): Case =>
    one(name, config({ user }), answer, { files });
  const byCluster = (name: string, cluster: object | null, answer: Case["answer"], files: Case["files"] = {}): Case =>
    one(name, config({ cluster }), answer, { files });
  const exec = (more: object = {}) => ({
    exec: { apiVersion: v1, command: "./plugin", interactiveMode: "Never", ...more },
  });
  const byPlugin = (name: string, plugin: string, answer: Case["answer"], more: object = {}, user: object = {}): Case =>
    byUser(name, { ...exec(more), ...user }, answer, { plugin });
  const works = prints(credential({ token: "made" }));
  const oidc = (more: object) => ({
    "auth-provider": {
      name: "oidc",
      config: {
        "client-id": "watchfire",
        "idp-issuer-url": `https://${site.https}/idp`,
        "idp-certificate-authority-data": ca,
        ...more,
      },
    },
  });
  const yaml = (text: string) => `${text}
clusters: [{ name: k, cluster: { server: "https://${site.https}", certificate-authority-data: ${ca} } }]
contexts: [{ name: c, context: { cluster: k, user: u } }]
`;
  const withUser = (user: string) => yaml(`current-context: c\nusers: [{ name: u, user: { ${user} } }]`);
  const listed = (
    name: string,
    files: Record<string, string>,
    answer: Case["answer"],
    more: Partial<Case> = {},
  ): Case => ({
    name: `KUBECONFIG: ${name}`,
    files,
    listed: Object.keys(files),
    answer,
    ...more,
  });
  const t = bearer("t");

  return [
    // The file's form.
    one("JSON", good, t),
    one("JSON indented with tabs", JSON.stringify(JSON.parse(good), undefined, "\t"), t),
    one("a UTF-8 byte order mark", `\ufeff${good}`, t),
    one("UTF-16, as PowerShell writes it", Buffer.from(`\ufeff${good}`, "utf16le"), t),
    one("Latin-1", Buffer.from(`# caf\u00e9\n${good}`, "latin1"), "refused"),
    one("CRLF", withUser("token: t").replaceAll("\n", "\r\n"), t),
    one("several documents: the first counts", `${withUser("token: t")}---\n${withUser("token: other")}`, t),
    one("several documents, of which the second is broken", `${withUser("token: t")}---\n[`, t),
    one("an empty first document", `---\n---\n${withUser("token: t")}`, "refused"),
    one("an empty file", "", "refused"),
    one("a list", "[]", "refused"),
    one("a word", "hello", "refused"),
    one("broken YAML", "clusters: [", "refused"),
    one("a field twice: the last counts", `${withUser("token: t")}kind: Config\nkind: Config\n`, t),
    one("a token twice: the last counts", withUser("token: first, token: t"), t),
    one("anchors and merged maps", yaml("x: &x { token: t }\ncurrent-context: c\nusers: [{ name: u, user: { <<: *x } }]"), t),
    one("a tag that is not known", withUser("token: !secret t"), t),
    one("a token as binary", withUser("token: !!binary dA=="), t),
    one("YAML 1.2, said in its first line", `%YAML 1.2\n---\n${withUser("token: t")}`, "refused"),
    one("a number without end in a field that is not known", withUser("token: t, x: .inf"), "refused"),
    one("unknown fields", config({ user: { token: "t", tokn: 1 }, more: { surprise: [1] } }), t),
    one("a field in another case is unknown", config({ user: { token: "t", Token: "other" } }), t),
    one("neither apiVersion nor kind", config({ more: { apiVersion: null, kind: "" } }), t),
    one("another apiVersion", config({ more: { apiVersion: "v2" } }), "refused"),
    one("another kind", config({ more: { kind: "Pod" } }), "refused"),
    one("preferences and extensions", config({ more: { preferences: { colors: true }, extensions: [] } }), t),

    // Values of a wrong type make the whole file useless.
    one("a token of digits alone", withUser("token: 123456"), "refused"),
    one("a token of digits in quotes", withUser('token: "123456"'), bearer("123456")),
    one("a token that YAML 1.1 takes for a boolean", withUser("token: yes"), "refused"),
    one("a token that YAML 1.1 takes for an octal number", withUser("token: 0123"), "refused"),
    one("a token that looks like a time", withUser("token: 2001-02-03"), bearer("2001-02-03")),
    one("a token with an underscore among digits", withUser("token: 1_000"), "refused"),
    one("a token that is nearly a number", withUser("token: 1e"), bearer("1e")),
    one("a token of two dots", withUser("token: 1.2.3"), bearer("1.2.3")),
    byUser("a wrong type in a field that is not used", { token: "t", username: 1 }, "refused"),
    byUser("groups that are no list", { token: "t", as: "jane", "as-groups": "devs" }, "refused"),
    byUser("a user that is a list", [], "refused"),
    byCluster("a boolean in quotes", { ...trusted, "insecure-skip-tls-verify": "false" }, "refused"),
    byCluster("authority data that are no base64", { ...trusted, "certificate-authority-data": "&&" }, "refused"),
    one(
      "wrong base64 in an entry that is not used",
      config({ more: { users: [{ name: "u", user: { token: "t" } }, { name: "o", user: { "client-key-data": "a" } }] } }),
      "refused",
    ),
    one("colors that are no boolean", config({ more: { preferences: { colors: "no" } } }), "refused"),
    byUser("null in each field", { token: "t", username: null, exec: null, "as-groups": null, tokenFile: null }, t),

    // Names and contexts.
    one(
      "a name twice",
      config({ more: { users: [{ name: "u", user: { token: "t" } }, { name: "u", user: { token: "other" } }] } }),
      "refused",
    ),
    one(
      "entries that are broken, but not used",
      config({
        more: {
          clusters: [{ name: "k", cluster: trusted }, { name: "old", cluster: { server: "", "certificate-authority": "/gone" } }, null],
          users: [{ name: "u", user: { token: "t" } }, { name: "old", user: null }, { name: "x", user: { exec: {} } }],
          contexts: [{ name: "c", context: { cluster: "k", user: "u" } }, { name: "left", context: {} }],
        },
      }),
      t,
    ),
    one("another context is asked for", config({ more: { "current-context": "gone" } }), t, { context: "c" }),
    one("a context is asked for that is not there", good, "refused", { context: "gone" }),
    one("a current context that is not there", config({ more: { "current-context": "gone" } }), "refused"),
    one("a context of a user that is not there", config({ context: { cluster: "k", user: "gone" } }), "refused"),
    one("a context of a cluster that is not there", config({ context: { cluster: "gone", user: "u" } }), "refused"),
    one(
      "a context of a user that is not there, over plain HTTP",
      config({ cluster: { server: `http://${site.http}` }, context: { cluster: "k", user: "gone" } }),
      {},
    ),
    one("a name with @, : and /", good.replaceAll('"c"', '"arn:aws:eks:eu-1:1:cluster/x y@z"'), t),

    one("an extension without a value", config({ more: { extensions: [{ name: "a" }, { name: "a" }] } }), t),
    one("an extension twice", config({ more: { extensions: [{ name: "a", extension: 1 }, { name: "a", extension: 1 }] } }), "refused"),

    // Several files.
    listed("an empty file, then a good one", { empty: "", good }, t),
    listed("a file of a comment, then a good one", { comment: "# nothing\n", good }, t),
    listed("nulls, as kubectl config unset leaves them", { nulls: '{"clusters":null,"users":null,"contexts":null}', good }, t),
    listed("a broken file beside a good one", { good, broken: "[" }, "refused"),
    listed("files that are not there", { good }, t, { listed: ["", "none", "good", "none", ""] }),
    listed("no file that is there", {}, "refused", { listed: ["none"] }),
    listed("it takes the place of ~/.kube/config even where it names none", { ".kube/config": good }, "refused", {
      listed: ["none"],
    }),
    listed("a folder", { "folder/file": "", good }, "refused", { listed: ["folder", "good"] }),
    listed("the first to name a user wins", { good, other: config({ user: { token: "other" } }) }, t),
    listed(
      "a user of the first file has nothing of the second's",
      { first: json({ users: [{ name: "u", user: { username: "me", password: "pw" } }] }), good },
      { authorization: `Basic ${base64("me:pw")}` },
    ),
    listed(
      "the first current context wins",
      { none: json({ "current-context": "" }), good, other: json({ "current-context": "gone" }) },
      t,
    ),
    listed(
      "contexts in one file, clusters in another",
      { contexts: json({ "current-context": "d", contexts: [{ name: "d", context: { cluster: "k", user: "u" } }] }), good },
      t,
    ),
    listed(
      "a path is relative to the file that it stands in",
      {
        "a/config": json({ users: [{ name: "u", user: { tokenFile: "token" } }] }),
        "b/config": good,
        "a/token": "of a",
        "b/token": "of b",
      },
      bearer("of a"),
      { listed: ["a/config", "b/config"] },
    ),
    { name: "~/.kube/config", files: { ".kube/config": good }, listed: [], answer: t },

    // The server.
    byCluster("a path", { ...trusted, server: `https://${site.https}/k8s/clusters/x/` }, { ...t, path: "/k8s/clusters/x/version" }),
    byCluster("a path with a query", { ...trusted, server: `https://${site.https}/x?a=b` }, { ...t, path: "/x/version" }),
    byCluster("a path that is not clean", { ...trusted, server: `https://${site.https}/a//b%2Fc/` }, { ...t, path: "/a/b/c/version" }),
    byCluster("a path with a space", { ...trusted, server: `https://${site.https}/a b` }, { ...t, path: "/a%20b/version" }),
    byCluster("a path that cannot be decoded", { ...trusted, server: `https://${site.https}/%zz` }, "refused"),
    byCluster("a backslash", { ...trusted, server: `https://${site.https}\\x` }, "refused"),
    byCluster("an address that is short", { server: `127.1:${site.http.split(":")[1]}` }, "refused"),
    byCluster("a name and a password in the server: they count", { ...trusted, server: `https://a:b%40@${site.https}` }, {
      authorization: `Basic ${base64("a:b@")}`,
    }),
    byCluster("a name and a password in the server, over plain HTTP", { server: `a:b@${site.http}` }, { authorization: `Basic ${base64("a:b")}` }),
    byCluster("the server's own certificate as the authority", { ...trusted, "certificate-authority-data": base64(site.certificate) }, t),
    byCluster("a scheme in capitals", { ...trusted, server: `HTTPS://${site.https}` }, t),
    byCluster("IPv6", { ...trusted, server: `https://[::1]:${site.port}` }, t),
    byCluster("a host name", { ...trusted, server: `https://localhost:${site.port}` }, { ...t, serverName: "localhost" }),
    byCluster("no scheme: plain HTTP, and no credentials", { server: site.http }, {}),
    byCluster("plain HTTP: no credentials", { server: `http://${site.http}` }, {}),
    byCluster("no scheme, but a path", { server: `${site.http}/x` }, "refused"),
    byCluster("a space before the server", { ...trusted, server: ` https://${site.https}` }, "refused"),
    byCluster("a scheme without slashes", { ...trusted, server: `https:${site.https}` }, "refused"),
    byCluster("another scheme", { ...trusted, server: `ftp://${site.https}` }, "refused"),
    byCluster("no server", { "certificate-authority-data": ca }, "refused"),
    byCluster("no cluster", null, "refused"),
    byCluster("no trust", { server: `https://${site.https}` }, "refused"),
    byCluster("an authority by its file", { server: `https://${site.https}`, "certificate-authority": "ca.crt" }, t, { "ca.crt": site.ca }),
    byCluster("an authority among other text", { ...trusted, "certificate-authority-data": base64(`Issuer: x\n${site.ca}end`) }, t),
    byCluster(
      "an authority after a broken certificate",
      { ...trusted, "certificate-authority-data": base64(`-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n${site.ca}`) },
      t,
    ),
    byCluster("an authority that is none", { ...trusted, "certificate-authority-data": base64("none") }, "refused"),
    byCluster("an authority's file that is not there", { server: `https://${site.https}`, "certificate-authority": "gone" }, "refused"),
    byCluster("an authority's file that is not there, over HTTP", { server: site.http, "certificate-authority": "gone" }, "refused"),
    byCluster("an authority's file that is empty", { server: `https://${site.https}`, "certificate-authority": "ca" }, "refused", { ca: "" }),
    byCluster("an authority by data and by file", { ...trusted, "certificate-authority": "ca.crt" }, "refused", { "ca.crt": site.ca }),
    byCluster("base64 with line breaks", { ...trusted, "certificate-authority-data": ca.replace(/.{64}/g, "$&\n") }, t),
    byCluster("no verification", { server: `https://${site.https}`, "insecure-skip-tls-verify": true }, t),
    byCluster("no verification, and an authority", { ...trusted, "insecure-skip-tls-verify": true }, "refused"),
    byCluster("tls-server-name", { ...trusted, "tls-server-name": "kubernetes.default.svc" }, { ...t, serverName: "kubernetes.default.svc" }),
    byCluster("a tls-server-name that the certificate lacks", { ...trusted, "tls-server-name": "x.example" }, "refused"),
    byCluster("disable-compression", { ...trusted, "disable-compression": true }, { ...t, compressed: false }),
    byCluster("an empty proxy-url", { ...trusted, "proxy-url": "" }, t),
    byCluster("a proxy-url where nobody listens", { ...trusted, "proxy-url": "http://127.0.0.1:1" }, "refused"),
    byCluster("a proxy-url of another scheme", { ...trusted, "proxy-url": "ftp://127.0.0.1:1" }, "refused"),
    byCluster("a proxy-url without a scheme", { ...trusted, "proxy-url": "127.0.0.1:3128" }, "refused"),

    // The user.
    byUser("no credentials", {}, "refused"),
    byUser("null", null, "refused"),
    byUser("empty texts", { token: "", tokenFile: "", username: "" }, "refused"),
    byUser("a token that ends with a newline", { token: "t\n" }, "refused"),
    byUser("a token outside ASCII", { token: "\u00fc" }, { authorization: "Bearer \u00c3\u00bc" }),
    byUser("a token's file", { tokenFile: "token" }, bearer("filed"), { token: " filed\n" }),
    byUser("a token's file that is not there", { tokenFile: "token" }, "refused"),
    byUser("a token's file that is empty", { tokenFile: "token" }, "refused", { token: "" }),
    byUser("a token's file of white space", { tokenFile: "token" }, "refused", { token: " \n" }),
    byUser("a token and a file: the file counts", { token: "t", tokenFile: "token" }, bearer("filed"), { token: "filed\n" }),
    byUser("a token and a file that is not there", { token: "t", tokenFile: "token" }, t),
    byUser("a token and a file that is empty", { token: "t", tokenFile: "token" }, t, { token: "" }),
    byUser("a password", { username: "bob", password: "p:\u00e4%s" }, { authorization: `Basic ${base64("bob:p:\u00e4%s")}` }),
    byUser("a username without a password", { username: "bob" }, { authorization: `Basic ${base64("bob:")}` }),
    byUser("a password without a username", { password: "pw" }, "refused"),
    byUser("a token and a password", { token: "t", username: "bob", password: "pw" }, "refused"),
    byUser("a token's file and a username", { tokenFile: "token", username: "bob" }, "refused", { token: "filed" }),
    byUser("a client certificate", client, certificate),
    byUser("a client certificate by files", { "client-certificate": "./a/crt", "client-key": "key" }, certificate, {
      "a/crt": site.certificate,
      key: site.key,
    }),
    byUser("a client certificate by data, its key by file", { ...client, "client-key-data": "", "client-key": "key" }, certificate, {
      key: site.key,
    }),
    byUser("a client certificate and a token", { ...client, token: "t" }, { ...certificate, ...t }),
    byUser("a client certificate without a key", { "client-certificate-data": client["client-certificate-data"] }, "refused"),
    byUser("a key without a client certificate", { token: "t", "client-key-data": base64("none"), "client-key": "gone" }, t),
    byUser("a client certificate by data and by file", { ...client, "client-certificate": "crt" }, "refused", { crt: site.certificate }),
    byUser("a client certificate with another's key", { ...client, "client-key-data": base64(site.otherKey) }, "refused"),
    byUser("a client certificate after another", { ...client, "client-certificate-data": base64(site.ca + site.certificate) }, "refused"),
    byUser("a client certificate that is not there", { "client-certificate": "gone", "client-key": "gone" }, "refused"),
    byUser("a client certificate that is none", { ...client, "client-certificate-data": base64("none"), token: "t" }, "refused"),
    byUser("as", { token: "t", as: "jane", "as-uid": "1", "as-groups": ["devs", "ops"], "as-user-extra": { "Acme.com/x%": ["1", "2"] } }, {
      ...t,
      impersonation: {
        "impersonate-user": "jane",
        "impersonate-uid": "1",
        "impersonate-group": "devs, ops",
        "impersonate-extra-acme.com%2fx%25": "1, 2",
      },
    }),
    byUser("as somebody outside ASCII", { token: "t", as: "j\u00fcrgen" }, { ...t, impersonation: { "impersonate-user": "j\u00c3\u00bcrgen" } }),
    byUser("groups without as", { token: "t", "as-groups": ["system:masters"] }, "refused"),
    byUser("as without credentials", { as: "jane" }, "refused"),
    one("as, over plain HTTP", config({ cluster: { server: `http://${site.http}` }, user: { token: "t", as: "jane" } }), {
      impersonation: { "impersonate-user": "jane" },
    }),

    // A plugin.
    byPlugin("a plugin beside the kubeconfig", works, bearer("made")),
    one("a plugin of the folder above", config({ user: exec({ command: "../scripts/plugin" }) }), bearer("made"), {
      files: { "sub/config": config({ user: exec({ command: "../scripts/plugin" }) }), "scripts/plugin": works },
      listed: ["sub/config"],
    }),
    one("a plugin on PATH", config({ user: exec({ command: "plugin" }) }), bearer("made"), {
      files: { "bin/plugin": works },
      environment: { PATH: "FOLDER/bin:/usr/bin:/bin" },
    }),
    one("a plugin that is not on PATH", config({ user: exec({ command: "plugin-of-nobody" }) }), "refused"),
    one("a plugin's own PATH does not find it", config({ user: exec({ command: "plugin", env: [{ name: "PATH", value: "." }] }) }), "refused", {
      files: { plugin: works },
    }),
    byUser("a plugin that may not be run", exec({ command: "./text" }), "refused", { text: works }),
    byPlugin("a text that no line says the program of", works.slice(works.indexOf("cat")), "refused"),
    byPlugin("a slash after the plugin's name", works, bearer("made"), { command: "./plugin/" }),
    byPlugin("a byte order mark before what is printed", prints(`\ufeff${credential({ token: "made" })}`), bearer("made")),
    byPlugin("a spec of a wrong type is printed", prints(json({ apiVersion: v1, kind: "ExecCredential", spec: 1, status: { token: "made" } })), "refused"),
    byPlugin("arguments and variables", script(`printf '${credential({ token: "%s" })}' "$1-$A-$HOME2"`), bearer("x-1-2"), {
      args: ["x"],
      env: [{ name: "A", value: "0" }, { name: "A", value: "1" }, { name: "HOME2", value: "2" }],
    }),
    byPlugin("null in args, env and hints", works, bearer("made"), { args: null, env: null, installHint: null, provideClusterInfo: null }),
    byPlugin("a variable without a name", works, "refused", { env: [{ value: "1" }] }),
    byPlugin("a variable whose value is a number", works, "refused", { env: [{ name: "A", value: 1 }] }),
    byPlugin("no apiVersion", works, "refused", { apiVersion: "" }),
    byPlugin("no command", works, "refused", { command: "" }),
    byPlugin("v1alpha1, which is gone", prints(credential({ token: "made" }, v1.replace("v1", "v1alpha1"))), "refused", { apiVersion: "client.authentication.k8s.io/v1alpha1" }),
    byPlugin("no interactiveMode", works, "refused", { interactiveMode: null }),
    byPlugin("no interactiveMode before v1", prints(credential({ token: "made" }, v1beta1)), bearer("made"), { apiVersion: v1beta1, interactiveMode: null }),
    byPlugin("an unknown interactiveMode", works, "refused", { interactiveMode: "Sometimes" }),
    byPlugin("interactiveMode Always, without a terminal", works, "refused", { interactiveMode: "Always" }),
    byPlugin("interactiveMode IfAvailable", works, bearer("made"), { interactiveMode: "IfAvailable" }),
    byPlugin("a plugin that reads its input gets none", script(`read x; printf '${credential({ token: "%s" })}' "got-$x"`), bearer("got-")),
    byPlugin("another apiVersion is printed", prints(credential({ token: "made" }, v1beta1)), "refused"),
    byPlugin("no apiVersion is printed", prints(json({ kind: "ExecCredential", status: { token: "made" } })), "refused"),
    byPlugin("another kind is printed", prints(json({ apiVersion: v1, kind: "Config", status: { token: "made" } })), "refused"),
    byPlugin("YAML is printed", prints(`apiVersion: ${v1}\nkind: ExecCredential\nstatus: { token: made }`), bearer("made")),
    byPlugin("nothing is printed", script("exit 0"), "refused"),
    byPlugin("something else is printed", prints("please sign in"), "refused"),
    byPlugin("something else is printed before", prints(`hello\n${credential({ token: "made" })}`), "refused"),
    byPlugin("something else is printed after", prints(`${credential({ token: "made" })}\nbye`), "refused"),
    byPlugin("something is printed to stderr", script(`echo warning >&2; ${works.slice(works.indexOf("cat"))}`), bearer("made")),
    byPlugin("a plugin that fails after it printed", script(`${works.slice(works.indexOf("cat"))}exit 1`), "refused"),
    byPlugin("no status", prints(json({ apiVersion: v1, kind: "ExecCredential" })), "refused"),
    byPlugin("an empty status", prints(credential({})), "refused"),
    byPlugin("a token that is a number", prints(credential({ token: 1 })), "refused"),
    byPlugin("a token with a newline", prints(credential({ token: "made\n" })), "refused"),
    byPlugin("a certificate alone", prints(credential({ clientCertificateData: site.certificate })), "refused"),
    byPlugin("a key alone, beside a token", prints(credential({ token: "made", clientKeyData: site.key })), "refused"),
    byPlugin("a certificate and its key", prints(credential({ clientCertificateData: site.certificate, clientKeyData: site.key })), certificate),
    byPlugin("a certificate, its key and a token", prints(credential({ token: "made", clientCertificateData: site.certificate, clientKeyData: site.key })), {
      ...certificate,
      ...bearer("made"),
    }),
    byPlugin("a certificate with another's key", prints(credential({ clientCertificateData: site.certificate, clientKeyData: site.otherKey })), "refused"),
    byPlugin("credentials that have ended are sent all the same", prints(credential({ token: "made", expirationTimestamp: "2001-01-01T00:00:00Z" })), bearer("made")),
    byPlugin("credentials that end later", prints(credential({ token: "made", expirationTimestamp: "2099-01-01T00:00:00.5+01:00" })), bearer("made")),
    byPlugin("credentials that end at null", prints(credential({ token: "made", expirationTimestamp: null })), bearer("made")),
    byPlugin("an end that is no time", prints(credential({ token: "made", expirationTimestamp: "tomorrow" })), "refused"),
    byPlugin("an end that is empty", prints(credential({ token: "made", expirationTimestamp: "" })), "refused"),
    byPlugin("a token beside a plugin: the token counts", script("exit 1"), t, {}, { token: "t" }),
    byPlugin("a password beside a plugin", script("exit 1"), { authorization: `Basic ${base64("bob:pw")}` }, {}, { username: "bob", password: "pw" }),
    byPlugin("a client certificate beside a plugin", script("exit 1"), certificate, {}, client),
    byPlugin("a plugin that cannot be used, beside a token", works, "refused", { interactiveMode: null }, { token: "t" }),
    byPlugin("a plugin and an auth-provider", works, "refused", {}, oidc({ "id-token": renewedIdToken })),
    one(
      "over plain HTTP no plugin runs",
      config({ cluster: { server: `http://${site.http}` }, user: exec() }),
      {},
      { files: { plugin: script("exit 1") } },
    ),

    // An identity provider.
    byUser("an id token", oidc({ "id-token": renewedIdToken }), bearer(renewedIdToken)),
    byUser("an id token that has ended, and a refresh token", oidc({ "id-token": idToken(1), "refresh-token": "r" }), bearer(renewedIdToken)),
    byUser("a refresh token alone", oidc({ "refresh-token": "r" }), bearer(renewedIdToken)),
    byUser("a refresh token that is refused", oidc({ "refresh-token": "stolen" }), "refused"),
    byUser("an id token that has ended", oidc({ "id-token": idToken(1) }), "refused"),
    byUser("an id token that is none", oidc({ "id-token": "x" }), "refused"),
    byUser("an id token that says no end, and a refresh token", oidc({ "id-token": "a.e30.c", "refresh-token": "r" }), bearer(renewedIdToken)),
    byUser("an identity provider's authority that is none", oidc({ "id-token": renewedIdToken, "idp-certificate-authority-data": base64("x") }), "refused"),
    byUser("an identity provider without a client", oidc({ "client-id": "", "id-token": renewedIdToken }), "refused"),
    byUser("an identity provider beside a token", { token: "t", ...oidc({ "id-token": renewedIdToken }) }, t),
    byUser("an auth-provider that is gone", { "auth-provider": { name: "gcp", config: { "access-token": "a" } } }, "refused"),
    byUser("an auth-provider that nobody knows", { "auth-provider": { name: "x" } }, "refused"),
    byUser("a number in an auth-provider's config", { token: "t", ...oidc({ expiry: 1 }) }, "refused"),
  ]; // biome-ignore format: a table
}

/** Cases of the cluster information that a plugin receives and prints as its token. */
export function informedCasesOf(site: Site): readonly (Pick<Case, "name" | "files"> & { readonly info: object })[] {
  const plugin = script(
    `printf '${credential({ token: "%s" })}' "$(printf %s "$KUBERNETES_EXEC_INFO" | base64 | tr -d '\\n')"`,
  );
  const ca = base64(site.ca);
  const exec = (cluster: object, more: object) =>
    json({
      "current-context": "c",
      clusters: [{ name: "k", cluster }],
      users: [
        { name: "u", user: { exec: { apiVersion: v1, command: "./plugin", interactiveMode: "Never", ...more } } },
      ],
      contexts: [{ name: "c", context: { cluster: "k", user: "u" } }],
    });
  const info = (cluster?: object) => ({
    apiVersion: v1,
    kind: "ExecCredential",
    spec: { ...(cluster && { cluster }), interactive: false },
  });
  const server = `https://${site.https}`;
  const extension = { audience: "a", numbers: [1, 1.5], nested: { x: null } };
  const extensions = [
    { name: "other", extension: 1 },
    { name: "client.authentication.k8s.io/exec", extension },
  ];
  const told = { provideClusterInfo: true };
  return [
    { name: "nothing, unless it asks", files: { config: exec({ server, "certificate-authority-data": ca, extensions }, {}), plugin }, info: info() },
    {
      name: "the authority of a file as data",
      files: { config: exec({ server, "certificate-authority": "ca.crt" }, told), "ca.crt": site.ca, plugin },
      info: info({ server, "certificate-authority-data": ca, config: null }),
    },
    {
      name: "what the cluster holds for it",
      files: { config: exec({ server, "certificate-authority-data": ca, extensions }, told), plugin },
      info: info({ server, "certificate-authority-data": ca, config: extension }),
    },
    {
      name: "how the cluster is reached",
      files: {
        config: exec({ server: `${server}/x?a=b`, "insecure-skip-tls-verify": true, "tls-server-name": "kubernetes", "disable-compression": true }, told),
        plugin,
      },
      info: info({
        server: `${server}/x`,
        "insecure-skip-tls-verify": true,
        "tls-server-name": "kubernetes",
        "disable-compression": true,
        config: null,
      }),
    },
  ]; // biome-ignore format: a table
}
