import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { WatchfireError } from "../../runtime/errors.ts";
import { connectKubeconfig } from "../../runtime/kube/kubeconfig.ts";
import { folderOf } from "../tools/folder.ts";

const whole = `apiVersion: v1
kind: Config
current-context: here
clusters:
  - name: c
    cluster: { server: "http://127.0.0.1:1" }
users:
  - name: u
    user: { token: t0p-secret }
contexts:
  - name: here
    context: { cluster: c, user: u }
`;

/** What is said of a kubeconfig that cannot be used, without the folder it lies in. */
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
    ["an empty list", "[]", "config:1:1: the kubeconfig is no map"],
    ["null", "null", "config:1:1: the file declares nothing"],
    ["nothing", "", "config:1:1: the file declares nothing"],
    ["a word", "hello", "config:1:1: the kubeconfig is no map"],
    ["broken YAML", "clusters: [", "config:1:12: not valid YAML: "],
    ["a field twice", `${whole}kind: Config\n`, 'config:13:1 kind: the field "kind" is given a second time'],
    ["clusters that are no list", whole.replace(/clusters:[\s\S]*?users/, "clusters: c\nusers"), "config:4:11 clusters: expected a list"],
    ["a cluster without a server", whole.replace(/{ server.*/, "{}"), "config:6:14 clusters[0].cluster.server: expected an http or https URL"],
    ["a server that is no URL", whole.replace("http://127.0.0.1:1", "127.0.0.1:1"), "clusters[0].cluster.server: expected an http or https URL"],
    ["a token that is no text", whole.replace("t0p-secret", "{ t0p-secret: 1 }"), "config:9:20 users[0].user.token: expected a text"],
    ["no contexts", whole.replace(/contexts:[\s\S]*/, ""), "config: the kubeconfig has no contexts; "],
    ["no current context", whole.replace("current-context: here\n", ""), "config: the kubeconfig names no current context; name one with --context: here"],
    ["a current context that is not there", whole.replace("current-context: here", "current-context: there"), 'config: there is no context "there"; name one with --context: here'],
    ["a context of a cluster that is not there", whole.replace("cluster: c,", "cluster: d,"), 'config: the context here names the cluster "d", which is not there; the clusters are: c'],
    ["a context of a user that is not there", whole.replace("user: u }", "user: v }"), 'config: the context here names the user "v", which is not there; the users are: u'],
    ["a certificate that is not there", whole.replace('1" }', '1", certificate-authority: ca.crt }'), "config: the file of certificate-authority is not there"],
    ["a plugin without a command", whole.replace("token: t0p-secret", "exec: { apiVersion: client.authentication.k8s.io/v1 }"), "the exec section of the user u cannot be used at command"],
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
