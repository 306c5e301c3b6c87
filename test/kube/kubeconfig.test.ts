import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { connectKubeconfig } from "../../runtime/kube/kubeconfig.ts";
import { folderOf } from "../tools/folder.ts";

const whole = `apiVersion: v1
kind: Config
current-context: here
clusters:
  - name: c
    cluster: { server: "https://127.0.0.1:1" }
users:
  - name: u
    user: { token: t0p-secret }
contexts:
  - name: here
    context: { cluster: c, user: u }
`;

/** The error for an unusable kubeconfig, without the path of its folder. */
async function refusal(text: string | Uint8Array, context?: string): Promise<string> {
  const folder = folderOf({ config: text });
  const failure = await connectKubeconfig({ file: join(folder, "config"), context, environment: {} }).then(
    () => expect.unreachable("it was accepted"),
    (error: unknown) => error,
  );
  expect(failure).toBeInstanceOf(WatchfireError);
  return (failure as WatchfireError).message.replaceAll(`${folder}/`, "");
}

describe("a kubeconfig that cannot be used is refused in our words, with its place and what to do", () => {
  const cases: [what: string, text: string, said: string][] = [
    ["an empty list", "[]", "config:1:1: the kubeconfig is not a map"],
    ["a word", "hello", "config:1:1: the kubeconfig is not a map"],
    ["broken YAML", "clusters: [", "config:1:12: not valid YAML: "],
    ["clusters that are no list", whole.replace(/clusters:[\s\S]*?users/, "clusters: c\nusers"), "config:4:11 clusters: expected a list"],
    ["a name that stands twice", whole.replace("users:", "  - name: c\n    cluster: {}\nusers:"), 'config:7:11 clusters[1].name: "c" is the name of an entry before this one'],
    ["a cluster without a server", whole.replace(/{ server.*/, "{}"), "config: the cluster c has no server; write its address as `server: https://HOST:PORT`"],
    ["a server that is no URL", whole.replace("https://127.0.0.1:1", "https:/127.0.0.1"), "config: the cluster c has a server that is neither an http or https URL"],
    ["a token that is no text", whole.replace("t0p-secret", "{ t0p-secret: 1 }"), "config:9:20 users[0].user.token: expected a text"],
    ["a token of digits alone", whole.replace("t0p-secret", "4711"), "config:9:20 users[0].user.token: expected a text"],
    ["another kind", whole.replace("Config", "Pod"), "config:2:7 kind: expected Config"],
    ["no contexts", whole.replace(/contexts:[\s\S]*/, ""), "config: the kubeconfig has no contexts; name one that has, with --kubeconfig"],
    ["nothing", "", "config: the kubeconfig has no contexts; name one that has, with --kubeconfig"],
    ["no current context", whole.replace("current-context: here\n", ""), "config: the kubeconfig names no current context; name one with --context: here"],
    ["a current context that is not there", whole.replace("current-context: here", "current-context: there"), 'config: there is no context "there"; name one with --context: here'],
    ["a context of a cluster that is not there", whole.replace("cluster: c,", "cluster: d,"), 'config: the context here names the cluster "d", which is not there; the clusters are: c'],
    ["a context of a user that is not there", whole.replace("user: u }", "user: v }"), 'config: the context here names the user "v", which is not there; the users are: u'],
    ["a context without a user", whole.replace(", user: u }", " }"), "config: the context here names no user; the users are: u"],
    ["a certificate that is not there", whole.replace('1" }', '1", certificate-authority: ca.crt }'), 'config: the cluster c has a certificate-authority that is not there, got "ca.crt"'],
    ["an authority that is no certificate", whole.replace('1" }', '1", certificate-authority-data: bm9uZQ== }'), "config: the certificate authority of the cluster holds no certificate"],
    ["a user without credentials", whole.replace("token: t0p-secret", ""), "config: the user u has no credentials, and the runtime cannot ask for a name and a password as kubectl does"],
    ["a plugin without a command", whole.replace("token: t0p-secret", "exec: { apiVersion: client.authentication.k8s.io/v1 }"), "config: the user u has an exec section without a command"],
    ["a plugin that is for a person at a terminal", whole.replace("token: t0p-secret", "exec: { apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Always }"), "config: the user u has a plugin that asks a person at a terminal"],
  ]; // biome-ignore format: a table
  it.each(cases)("%s", async (_what, text, said) => {
    const message = await refusal(text);
    expect(message).toContain(said);
    expect(message).toMatch(/^WF_KUBE_CONFIG config[: ]/);
    expect(message).not.toContain("t0p-secret");
  });

  it("text that is not UTF-8", async () => {
    expect(await refusal(Buffer.from(`# caf\u00e9\n${whole}`, "latin1"))).toContain(
      "config:1:6: the file is not UTF-8",
    );
  });

  it("a context that is asked for and not there", async () => {
    expect(await refusal(whole, "elsewhere")).toContain('config: there is no context "elsewhere"; name one of: here');
  });

  it.each([
    ["a file that is not there", (folder: string) => join(folder, "none"), "there is no such file"],
    ["a folder", (folder: string) => folder, "it is a folder, not a file"],
  ])("%s", async (_what, file, said) => {
    const folder = folderOf({});
    await expect(connectKubeconfig({ file: file(folder), environment: {} })).rejects.toMatchObject({
      code: "WF_KUBE_CONFIG",
      message: expect.stringContaining(`${file(folder)}: ${said}`),
    });
  });
});
