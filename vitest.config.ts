import { configDefaults, defineConfig, type ViteUserConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { realClusterConfigured } from "./test/tools/assets.ts";

// Three workers also on two cores, where vitest would take one: most files wait for sockets, child processes and terms.
const propertySeed = "test/property-seed.setup.ts";
const common = {
  testTimeout: 20_000,
  hookTimeout: 60_000,
  maxWorkers: 3,
  setupFiles: [propertySeed],
  sequence: { hooks: "stack" },
} satisfies ViteUserConfig["test"];

/** Rooms whose files run whole processes, or share a cluster within the file: each file in a process of its own. */
const processes = [
  "audit",
  "trace",
  "cli",
  "catalog",
  "control/function-status",
  "functions",
  "hostile",
  "sandbox",
  "scenarios",
];
const processFiles = processes.map((room) => `test/${room}/**/*.test.ts`);
const packageFiles = ["test/npm/**/*.test.ts"];
const sourceFiles = ["test/layers.test.ts", "test/readme/tells.test.ts"];
const clusterFiles = ["test/conformance/**/*.test.ts", "test/on-cluster/**/*.test.ts"];

/**
 * Files of `npm run test:long`, by name: a file that takes more than ten seconds keeps `npm test` above four minutes on two slow
 * cores. `.ci/run` runs them in a checkout that all users may read, `npm test` in one that no other user may enter: what takes
 * executors with users of their own is long as well.
 */
const longFiles = ["test/**/*.long.test.ts"];
const longClusterFiles = ["test/on-cluster/**/*.long.test.ts"];

/** Files that take longest, in this order before all others of their group: none is left alone at its end. */
const longest = [
  "hostile/greedy/greedy.long",
  "audit/audit.long",
  "cli/validate.long",
  "catalog/deployed.long",
  "sandbox/sandbox",
  "hostile/programs",
  "laws/laws",
  "laws/fleet/fleet",
  "on-cluster/gap/restore",
  "on-cluster/gap/history",
  "on-cluster/source",
  "conformance/history",
  "conformance/rbac",
  "cli/main",
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ project, moduleId }: TestSpecification): number => {
      const at = longest.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return 100 * project.config.sequence.groupOrder + (at < 0 ? longest.length : at);
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

// One suite, a project per cluster; one cluster after the other, so that neither's load is the other's latency.
const clusterProject = (name: string, groupOrder: number, files: { include: string[]; exclude?: string[] }) => ({
  test: {
    ...common,
    ...files,
    name,
    globalSetup: ["test/target/shared-cluster.setup.ts"],
    setupFiles: [propertySeed, "test/target/file.setup.ts"],
    isolate: false,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    sequence: { ...common.sequence, groupOrder },
  },
});

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      // Laws of the sources themselves: part of `npm run check`, because any change may break them.
      { test: { ...common, name: "layers", include: sourceFiles } },
      // Installs packages from the registry: a command of its own.
      {
        test: {
          ...common,
          name: "packages",
          include: packageFiles,
          globalSetup: ["test/npm/tarballs.setup.ts"],
          testTimeout: 120_000,
          hookTimeout: 240_000,
        },
      },
      // In the order of the projects' names, so that the short files of the next one fill up the end.
      { test: { ...common, name: "processes", include: processFiles, exclude: longFiles } },
      { test: { ...common, name: "long", include: longFiles, exclude: longClusterFiles } },
      {
        test: {
          ...common,
          name: "unit",
          include: ["test/**/*.test.ts", "functions/**/*.test.ts"],
          exclude: [
            ...configDefaults.exclude,
            ...processFiles,
            ...clusterFiles,
            ...packageFiles,
            ...longFiles,
            ...sourceFiles,
          ],
          // What they are about keeps nothing between two of them: the files of a worker load it once.
          isolate: false,
        },
      },
      clusterProject("cluster-embedded", 0, { include: clusterFiles, exclude: longFiles }),
      clusterProject("cluster-long", 0, { include: longClusterFiles }),
      ...(realClusterConfigured() ? [clusterProject("cluster-real", 1, { include: clusterFiles })] : []),
    ],
  },
});
