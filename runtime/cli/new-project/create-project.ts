import { addedNode, writeProject } from "./project.ts";
import { isTemplate, templates } from "./templates.ts";
import { ProjectError } from "./write-files.ts";

/** What is asked for; what is left out is asked in a terminal. */
export interface Wishes {
  readonly name?: string | undefined;
  readonly template?: string | undefined;
  readonly packages?: string | undefined;
  /** Asks nothing: what is left out has its default. */
  readonly yes: boolean;
  /** npm's words about itself and its Node, as it sets them in `npm_config_user_agent`; undefined where npm started nothing. */
  readonly userAgent?: string | undefined;
}

/** Makes a project, and says what to do next. @throws ProjectError */
export async function createProject(wishes: Wishes): Promise<void> {
  const asks = !wishes.yes && process.stdin.isTTY === true;
  const { name, template, packages } = asks ? await ask(wishes) : { ...defaults, ...given(wishes) };
  if (!isTemplate(template)) {
    throw new ProjectError(`there is no template ${template}; there are ${Object.keys(templates).join(", ")}`);
  }
  // A name that nobody has registered could be anybody's.
  if (!packages) throw new ProjectError("name the folder of the packages' tarballs with --packages DIR");
  const nodeMajor = majorOf(wishes.userAgent);
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
 * The major version of the Node that will install the project. It may be older than ours: beside npm's own Node, a checkout
 * brings one for its commands.
 */
const majorOf = (userAgent = ""): number =>
  Number(/\bnode\/v(\d+)/.exec(userAgent)?.[1] ?? process.versions.node.split(".")[0]);

const defaults = { name: "my-functions", template: "hello", packages: "" };

const given = (wishes: Wishes) => Object.fromEntries(Object.entries(wishes).filter(([, value]) => value !== undefined));

async function ask({ name, template, packages }: Wishes): Promise<typeof defaults> {
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
