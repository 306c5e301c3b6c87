import { type Power, powers } from "../../runtime/rbac/powers.ts";

const places: Readonly<Record<Power["where"], string>> = {
  Runtime: "the runtime's",
  System: "kube-system",
  Anywhere: "any",
  Cluster: "none",
};

/** A row for each grant for which `validate`, `rbac` and `deploy` print a warning. */
export const powersTable = (): string =>
  [
    "| verbs | resources | namespace | reaches | source |",
    "| --- | --- | --- | --- | --- |",
    ...powers.map(
      ({ verbs, resources, group, where, isByName, reached, source }) =>
        `| ${verbs.join(", ")} | ${resources.map((each) => code(each, group)).join(", ")}${isByName ? ", by name" : ""} | ${places[where]} | ${reached} | ${source.split(", ").map(link).join(", ")} |`,
    ),
  ].join("\n");

const code = (resource: string, group: string): string => {
  const [plural, ...subresource] = resource.split("/");
  return `\`${[group === "" ? plural : `${plural}.${group}`, ...subresource].join("/")}\``;
};

/** A link that is named after its last part; the name of another project's rule is unchanged. */
function link(source: string): string {
  if (!/^https:|\.md$/.test(source)) return source;
  const name = source.split(/[/#]/).findLast((part) => part !== "") ?? source;
  return `[${name.replace(/\.md$/, "").replaceAll("-", " ")}](${source})`;
}
