import { addedNode, writeProject } from "./project.ts";
import { isTemplate, templates } from "./templates.ts";
import { ProjectError } from "./write-files.ts";

/** The choices for a project. In a terminal, missing ones are asked for. */
export interface ProjectChoices {
  readonly name?: string | undefined;
  readonly template?: string | undefined;
  readonly packages?: string | undefined;
  /** Asks nothing: missing choices have their defaults. */
  readonly yes: boolean;
  /** npm's description of itself and its Node, from `npm_config_user_agent`. `undefined` if npm did not start the process. */
  readonly userAgent?: string | undefined;
}

/** Creates a project, and prints the next steps. @throws ProjectError */
export async function createProject(choices: ProjectChoices): Promise<void> {
  const asks = !choices.yes && process.stdin.isTTY === true;
  const { name, template, packages } = asks ? await ask(choices) : { ...defaults, ...given(choices) };
  if (!isTemplate(template)) {
    throw new ProjectError(`there is no template ${template}; there are ${Object.keys(templates).join(", ")}`);
  }
  // Anybody could register a name that is still free.
  if (!packages) throw new ProjectError("name the folder of the packages' tarballs with --packages DIR");
  const nodeMajor = majorOf(choices.userAgent);
  const files = writeProject({ folder: name, template, packages, nodeMajor });
  const note = addedNode(nodeMajor);
  process.stdout.write(
    [
      ...files.filter((file) => !file.startsWith("packages/")).map((file) => `  ${name}/${file}`),
      ...(note ? [note] : []),
      `next: cd ${name} && npm install && npm run dev\n`,
    ].join("\n"),
  );
}

/**
 * Returns the major version of the Node that will install the project. It may be older than this process's, because a checkout
 * installs a newer Node for its commands next to npm's.
 */
const majorOf = (userAgent = ""): number =>
  Number(/\bnode\/v(\d+)/.exec(userAgent)?.[1] ?? process.versions.node.split(".")[0]);

const defaults = { name: "my-functions", template: "hello", packages: "" };

const given = (choices: ProjectChoices) =>
  Object.fromEntries(Object.entries(choices).filter(([, value]) => value !== undefined));

async function ask({ name, template, packages }: ProjectChoices): Promise<typeof defaults> {
  const { isCancel, select, text } = await import("@clack/prompts");
  const answer = async (question: Promise<string | symbol>): Promise<string> => {
    const said = await question;
    if (isCancel(said)) throw new ProjectError("nothing was written");
    return String(said);
  };
  const options = Object.entries(templates).map(([value, hint]) => ({ value, label: value, hint }));
  return {
    name: name ?? (await answer(text({ message: "Name of the project, and its folder", initialValue: defaults.name }))),
    template: template ?? (await answer(select({ message: "Template", options }))),
    packages: packages ?? (await answer(text({ message: "Folder of Watchfire's tarballs (npm run pack)" }))),
  };
}
