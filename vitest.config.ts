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
 * Files of `npm run test:long`: those that take longest, and that would keep `npm test` above four minutes on two slow cores.
 * `.ci/run` runs them in a checkout that all users may read, `npm test` in one that no other user may enter: what takes executors
 * with users of their own is here as well.
 */
const long = [
  "on-cluster/replicas",
  "on-cluster/fleet",
  "on-cluster/damaged-slot",
  "on-cluster/carry-fleet",
  "hostile/executors",
  "hostile/greedy/greedy",
  "catalog/deploy",
  "audit/audit",
  "audit/nats",
  "trace/trace",
  "journal/nats/store",
  "journal/nats/bodies",
  "journal/nats/loss",
  "journal/nats/room",
  "journal/nats/damage",
  "laws/jetstream",
  "cli/mistakes",
  "cli/executor",
  "catalog/deployed",
  "on-cluster/deployed",
  "on-cluster/least-privilege",
  "on-cluster/checkpoint-store",
  "catalog/ownership",
  "catalog/takeover",
  "catalog/under-load",
  "catalog/signed-build",
  "catalog/rivals",
  "cli/stalled-reader",
  "cli/validate",
  "cli/build",
  "scenarios/restart",
  "scenarios/two-clusters",
  "scenarios/shared-folder",
  "scenarios/nats-stalled",
  "scenarios/nats-away",
  "hostile/patient",
  "chart/odd-values",
  "sandbox/containment",
  "sandbox/suspects",
  "sandbox/unheard",
  "sandbox/supervisor",
  "bundle/limits",
  "chart/carry-over",
  "chart/chart",
  "chart/names",
  "cli/dead-letters",
  "cli/hot-reload",
  "cli/dev-keys",
  "cli/dev-types",
  "cli/signals",
  "cli/validate-types",
  "readme/deploying",
  "readme/operating",
  "engine/slow",
  "engine/reconcile/many-keys",
  "sandbox/words",
  "sandbox/places",
  "catalog/signing-guide",
  "hostile/fuzz",
  "on-cluster/gap/missing",
  "functions/myapp",
  "scenarios/redeliver",
  "sandbox/event",
  "readme/first-function",
  "on-cluster/open-store-nats",
  "cli/fixtures",
  "journal/sqlite/known-rows",
  "cli/record",
  "scenarios/stream",
  "cli/cluster-faults",
  "cel/real-server",
  "scenarios/explain",
  "chart/admission",
  "cli/samples",
  "scenarios/scope",
  "cli/init",
  "cli/recipes",
  "cli/real-cluster",
  "scenarios/pause",
  "informer/text-scan",
  "cluster/schema/real-server",
  "engine/schedule/scheduled-trigger",
  "hostile/small-volume",
  "sandbox/log",
  "sandbox/batch",
  "sandbox/caps",
  "sandbox/numbers",
  "observe/log-writer",
  "scenarios/failure",
  "cluster/cluster",
  "journal/sqlite/files",
  "engine/filter/hostile-conditions",
  "on-cluster/identity",
  "hostile/supervisor",
  "bundle/outside",
  "sandbox/trust-groups",
  "sandbox/isolation",
  "cli/kubectl",
  "on-cluster/open-store",
  "chart/fleet",
  "sandbox/entries",
  "sandbox/ahead",
  "sandbox/large-frames",
  "cli/types",
  "functions/configmap-sync",
  "scenarios/schedule",
  "manifest/all-clock-changes",
  "console/walk",
  "kube/kubeconfig/agreement",
  "chart/definition",
  "cli/validate-cluster",
  "cel/cost",
  "cli/json-output",
  "cli/dev-env",
];
const longFiles = long.map((name) => `test/${name}.test.ts`);
const isOnCluster = (file: string) => file.startsWith("test/on-cluster/");

/** Files that take longer than ten seconds, in this order before all others of their group: none is left alone at its end. */
const longest = [
  ...long,
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
      { test: { ...common, name: "long", include: longFiles.filter((file) => !isOnCluster(file)) } },
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
      clusterProject("cluster-long", 0, { include: longFiles.filter(isOnCluster) }),
      ...(realClusterConfigured() ? [clusterProject("cluster-real", 1, { include: clusterFiles })] : []),
    ],
  },
});
