// Makes isolates with a bootstrap whose run calls many functions, and prints the CPU time of each, in milliseconds.
import { IsolateFactory } from "../../runtime/sandbox/executor/isolate.ts";

const body = Array.from(
  { length: 40 },
  (_, line) => `if (value === ${line}) value = [value, { line: ${line} }].length;`,
);
const called = (no: number) => `function called${no}(value) { ${body.join(" ")} return value; } called${no}(-1);`;
const doors = ["pump", "drain", "blame", "loaded", "begin"].map((name) => `${name}() {}`).join(", ");
const functions = Array.from({ length: 1_000 }, (_, no) => called(no)).join("\n");
const factory = new IsolateFactory(`(() => {\n${functions}\n__watchfire_executor = { ${doors} };\n})();`, "bootstrap");

const times: number[] = [];
for (let made = 0; made < 8; made++) {
  const before = process.cpuUsage();
  factory.make(64, "{}", () => process.exit(1));
  const { user, system } = process.cpuUsage(before);
  times.push((user + system) / 1000);
}
process.stdout.write(JSON.stringify(times));
process.exit(0);
